"""The model on the CPU, while a GPU fails."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Model = TypeVar("Model")

RETRY_SECONDS = 60.0
"""How long a GPU that failed is left alone. Each batch that it refuses costs time and lines in the log."""

log = logging.getLogger(__name__)


class Substitute(Generic[Model]):
    """Opens the model on the CPU when the GPU first fails, and keeps it.

    Args:
        device: the name of the GPU.
        open_model: opens the model on the CPU.
        clock: the time in seconds.
    """

    def __init__(
        self, device: str, open_model: Callable[[], Model], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._device = device
        self._open = open_model
        self._clock = clock
        self._lock = threading.Lock()
        self._model: Model | None = None
        self._retry_at = 0.0

    @property
    def is_needed(self) -> bool:
        """Whether the GPU failed a moment ago."""
        return self._clock() < self._retry_at

    def report(self, reason: str) -> None:
        """Leave the GPU alone for a while."""
        with self._lock:
            if not self.is_needed:
                log.error(
                    "%s failed (%s): the CPU computes instead, and %s is tried again every %d seconds; if it does not"
                    " recover, restart kb",
                    self._device,
                    reason,
                    self._device,
                    RETRY_SECONDS,
                )
            self._retry_at = self._clock() + RETRY_SECONDS

    def model(self) -> Model:
        """Return the model on the CPU.

        Raises:
            ModelError: it cannot be opened.
        """
        with self._lock:
            if self._model is None:
                self._model = self._open()
            return self._model
