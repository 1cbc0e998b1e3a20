"""A model on several cores at once, each of which computes something else."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from kb.api.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from onnxruntime import InferenceSession

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 8
"""How many batches are computed at once: each takes some 30 MB meanwhile. More cores are shared out among them."""

Batch = TypeVar("Batch")
Result = TypeVar("Result")


class CorePool:
    """A session on one core, opened when it is first needed, and a thread for each core.

    Cores that share a batch wait for each other at every operator, and for one that another thread took. Where there is
    enough to do, each gets more done with a batch of its own.

    Args:
        open_session: opens a session on so many cores.
        cores: how many there are.
        shared: the session on all of them, which serves where no other can be opened.
    """

    def __init__(self, open_session: Callable[[int], InferenceSession], cores: int, shared: InferenceSession) -> None:
        each = -(-cores // MOST_AT_ONCE)
        self._open = partial(open_session, each)
        self._opening = threading.Lock()
        self._session: InferenceSession | None = None
        self._shared = shared
        self._threads = ThreadPoolExecutor(cores // each, "kb-model")

    @property
    def session(self) -> InferenceSession:
        """The session, which any number of threads may run."""
        with self._opening:
            if self._session is None:
                try:
                    self._session = self._open()
                except ModelError as error:
                    logger.warning("until the next start ingestion and many searches take longer: %s", error.detail)
                    self._session = self._shared
            return self._session

    def map(self, run: Callable[[InferenceSession, Batch], Result], batches: Sequence[Batch]) -> Iterator[Result]:
        """Run batches, and yield what they give in their order."""
        return self._threads.map(partial(run, self.session), batches)
