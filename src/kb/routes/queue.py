"""Requests that take a while wait for their turn, and not too many of them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from kb.api.errors import Busy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Scope

HAS_TURN: Final = "kb.has_turn"
"""What a request's scope has under this name is true once it has waited."""


class TurnQueue:
    """A context that a request runs in; the others wait outside, first come, first served.

    Args:
        limit: how many may run or wait.
        at_once: how many may run: more would only take the interpreter's lock from each other.
        refusal: what those are told who come when there are so many.
    """

    def __init__(self, limit: int, at_once: int, refusal: str | None = None) -> None:
        self._limit = limit
        self._refusal = refusal
        self._count = 0
        self._turns = asyncio.Semaphore(at_once)

    @asynccontextmanager
    async def turn(self, scope: Scope) -> AsyncIterator[None]:
        """Wait for a turn, which lasts as long as the request: one that is tried again has its turn still.

        Raises:
            Busy: too many wait already.
        """
        if HAS_TURN in scope:
            yield
            return
        async with self:
            scope[HAS_TURN] = True
            yield

    async def __aenter__(self) -> None:
        """Wait for a turn.

        Raises:
            Busy: too many wait already.
        """
        if self._count >= self._limit:
            raise Busy(self._refusal)
        self._count += 1
        try:
            await self._turns.acquire()
        except BaseException:
            self._count -= 1
            raise

    async def __aexit__(self, *_: object) -> None:
        """Let the next one in."""
        self._count -= 1
        self._turns.release()
