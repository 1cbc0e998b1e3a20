"""Wait for another process, thread or task."""

from __future__ import annotations

import asyncio
import inspect
import time

import pytest

SECONDS = 200
"""The longest wait on a busy machine. It is less than a test's timeout, which could not name the missing event."""


def eventually(what, probe, until=bool):
    """Return the first answer of `probe` that passes `until`. If none does in time, fail and name `what` did not happen."""
    for pause in _pauses():
        if until(answer := probe()):
            return answer
        time.sleep(pause)
    return _fail(what, answer)


async def eventually_async(what, probe, until=bool):
    """The same without blocking the event loop; `probe` may be a coroutine function."""
    for pause in _pauses():
        answer = probe()
        if inspect.isawaitable(answer):
            answer = await answer
        if until(answer):
            return answer
        await asyncio.sleep(pause)
    return _fail(what, answer)


def _pauses():
    """Short waits first, then longer ones."""
    deadline, pause = time.monotonic() + SECONDS, 0.005
    while time.monotonic() < deadline:
        yield pause
        pause = min(pause * 1.2, 0.05)


def _fail(what, answer):
    pytest.fail(f"not within {SECONDS} seconds: {what}; last seen: {answer!r}")
