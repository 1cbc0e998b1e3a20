"""Requests that take a while wait for their turn, and not too many of them."""

from __future__ import annotations

import asyncio

from kb.api.errors import Busy


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
