"""Notifications about ended jobs, for clients that wait for one."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class JobWaiters:
    """Publishes from any thread, to coroutines of any event loop, that jobs have ended.

    Args:
        look_seconds: how often a waiter checks the job itself, if jobs end in other processes and notifications may be
            lost.
    """

    def __init__(self, look_seconds: float | None = None) -> None:
        self.look_seconds = look_seconds
        self._lock = threading.Lock()
        self._subscribers: defaultdict[int, set[Subscription]] = defaultdict(set)
        self._closed = False

    def publish(self, job_id: int) -> None:
        """Wake every waiter of this job. Its result must already be in the store."""
        with self._lock:
            for subscription in self._subscribers.get(job_id, ()):
                subscription.wake()

    def close(self) -> None:
        """Wake every waiter for good, because the engine stops."""
        with self._lock:
            self._closed = True
            for subscriptions in self._subscribers.values():
                for subscription in subscriptions:
                    subscription.wake()

    @contextmanager
    def subscribe(self, job_id: int) -> Iterator[Subscription]:
        """Subscribe to the end of a job. Check the job afterwards, because it may have ended before."""
        subscription = Subscription(self)
        with self._lock:
            self._subscribers[job_id].add(subscription)
        try:
            yield subscription
        finally:
            with self._lock:
                self._subscribers[job_id].discard(subscription)
                if not self._subscribers[job_id]:
                    del self._subscribers[job_id]

    @property
    def closed(self) -> bool:
        """Whether nothing will be published any more."""
        return self._closed


class Subscription:
    """One coroutine's wait for one job."""

    def __init__(self, ends: JobWaiters) -> None:
        self._ends = ends
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """End the current wait, or failing that, the next one."""
        with suppress(RuntimeError):  # its loop is closed, and nobody waits any more
            self._loop.call_soon_threadsafe(self._woken.set)

    async def wait(self, deadline: float) -> bool:
        """Wait until the job may have ended, or until the loop's time `deadline`; return whether to keep waiting."""
        look = self._ends.look_seconds
        until = deadline if look is None else min(deadline, self._loop.time() + look)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                if not self._ends.closed:
                    await self._woken.wait()
        self._woken.clear()
        return not self._ends.closed and self._loop.time() < deadline
