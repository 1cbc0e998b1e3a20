"""Queues for requests that take a while, with a limit on waiting requests."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from starlette.types import Scope

from kb.api.errors import Busy

HAS_TURN: Final = "kb.has_turn"
"""The key in a request's scope that is true once the request has waited."""

PAUSE, LONGEST_PAUSE = 0.3, 1.0
"""The pause after a turn if other work waits: this share of the turn's time, and at most this number of seconds."""


class Admission:
    """A queue: some requests run, and the others wait, first come, first served.

    Args:
        limit: the maximum number of requests that run or wait.
        at_once: the maximum number that run, because more would only compete for the interpreter's lock.
        requested: what there is too much of beyond the limit, for the message; None for searches.
        gives_way: returns whether other work waits, which a queue that is never empty would starve.
        clock: returns monotonic seconds, to time turns.
    """

    def __init__(
        self,
        limit: int,
        at_once: int,
        requested: str | None = None,
        gives_way: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._limit = limit
        self._at_once = at_once
        self._refusal = requested and f"Too many {requested} (at most {limit} at once). Try again in a second."
        self._gives_way = gives_way
        self._clock = clock
        self._count = 0
        self._turns = asyncio.Semaphore(at_once)

    @property
    def is_crowded(self) -> bool:
        """Whether more than one request runs or waits."""
        return self._count > 1

    @asynccontextmanager
    async def turn(self, scope: Scope) -> AsyncIterator[None]:
        """Wait for a turn, which lasts as long as the request, including a second attempt.

        Raises:
            Busy: too many requests wait.
        """
        if HAS_TURN in scope:
            yield
            return
        await self._begin()
        begun = self._clock()
        try:
            scope[HAS_TURN] = True
            yield
        finally:
            self._end(self._clock() - begun)

    async def _begin(self) -> None:
        if self._count >= self._limit:
            raise Busy(self._refusal)
        self._count += 1
        try:
            await self._turns.acquire()
        except BaseException:
            self._count -= 1
            raise

    def _end(self, seconds: float) -> None:
        """Start the next turn; if other work waits, after a pause in proportion to this turn."""
        self._count -= 1
        if self._count >= self._at_once and self._gives_way():
            asyncio.get_running_loop().call_later(min(PAUSE * seconds, LONGEST_PAUSE), self._turns.release)
        else:
            self._turns.release()
