"""A model on several cores at once, each of which computes something else."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from onnxruntime import InferenceSession

Batch = TypeVar("Batch")
Result = TypeVar("Result")


class CorePool:
    """A session on one core, opened when it is first needed, and a thread for each core.

    Cores that share a batch wait for each other at every operator, and for one that another thread took. Where there is
    enough to do, each gets more done with a batch of its own.

    Args:
        open_one: opens the session.
        cores: how many there are.
    """

    def __init__(self, open_one: Callable[[], InferenceSession], cores: int) -> None:
        self._open_one = open_one
        self._opening = threading.Lock()
        self._session: InferenceSession | None = None
        self._threads = ThreadPoolExecutor(cores, "kb-model")

    @property
    def session(self) -> InferenceSession:
        """The session, which any number of threads may run."""
        with self._opening:
            if self._session is None:
                self._session = self._open_one()
            return self._session

    def map(self, run: Callable[[InferenceSession, Batch], Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """Run batches, and yield what they give in their order."""
        return self._threads.map(partial(run, self.session), batches)
