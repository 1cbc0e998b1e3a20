"""Rate limits per caller."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from typing import Final

MAX_CALLERS: Final = 10_000
"""The number of callers remembered; beyond it, those who called least recently are forgotten."""


class GCRA:
    """Limits calls by the generic cell rate algorithm: a minute's calls may come at once or spread over it.

    Args:
        per_minute: the calls allowed per caller.
        clock: returns monotonic seconds.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_minute = per_minute
        self._interval = 60 / per_minute
        self._clock = clock
        self._arrivals: dict[str, float] = {}
        """Each caller's theoretical arrival time: when all of its calls are available again. In the order of calls."""

    def acquire(self, caller: str) -> float:
        """Count a call. Return 0 if it is allowed, otherwise the seconds until one is."""
        now = self._clock()
        arrival = max(self._arrivals.get(caller, now), now) + self._interval
        wait = arrival - now - 60
        if wait > 1e-6:
            return wait
        if len(self._arrivals) >= MAX_CALLERS:
            for other in list(islice(self._arrivals, MAX_CALLERS // 2)):
                del self._arrivals[other]
        self._arrivals.pop(caller, None)  # a dictionary keeps the place of a known key, and the first are forgotten
        self._arrivals[caller] = arrival
        return 0

    def wait(self, caller: str) -> float:
        """Return the seconds until a call is allowed, without counting one."""
        if caller not in self._arrivals:
            return 0
        return max(0, self._arrivals[caller] + self._interval - self._clock() - 60)
