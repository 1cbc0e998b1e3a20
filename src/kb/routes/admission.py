"""Requests that take a while wait for their turn, and not too many of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from starlette.types import Scope

from kb.api.errors import Busy

HAS_TURN: Final = "kb.has_turn"
"""What a request's scope has under this name is true once it has waited."""

PAUSE, LONGEST_PAUSE = 0.3, 1.0
"""A turn gives way for so many times as long as it took, and for so many seconds at most: an exact search of a million
chunks takes some.
"""


class Admission:
    """A context that a request runs in; the others wait outside, first come, first served.

    Args:
        limit: how many may run or wait.
        at_once: how many may run: more would only take the interpreter's lock from each other.
        refusal: what those are told who come when there are so many.
        gives_way: whether there is other work, for which a queue that is never empty would leave too little time.
        clock: monotonic seconds, for how long turns take.
    """

    def __init__(
        self,
        limit: int,
        at_once: int,
        refusal: str | None = None,
        gives_way: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._limit = limit
        self._at_once = at_once
        self._refusal = refusal
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
        """Wait for a turn, which lasts as long as the request: one that is tried again has its turn still.

        Raises:
            Busy: too many wait already.
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
        """Let the next one in; while turns give way, after a pause in proportion to this one."""
        self._count -= 1
        if self._count >= self._at_once and self._gives_way():
            asyncio.get_running_loop().call_later(min(PAUSE * seconds, LONGEST_PAUSE), self._turns.release)
        else:
            self._turns.release()
