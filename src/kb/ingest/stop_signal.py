"""The signal by which long work learns that the engine stops."""

import threading

from kb.api.errors import Stopped


class StopSignal:
    """Whether the engine was asked to stop. Long work checks it regularly."""

    def __init__(self) -> None:
        self._requested = threading.Event()

    def request(self) -> None:
        """Make all work end at its next check."""
        self._requested.set()

    @property
    def is_requested(self) -> bool:
        return self._requested.is_set()

    def check(self) -> None:
        """Return, unless the engine stops.

        Raises:
            Stopped: the engine stops.
        """
        if self.is_requested:
            raise Stopped
