"""The number and duration of operations in the last hour, kept in memory by minute."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

MINUTES: Final = 60
BOUNDS: Final = tuple(0.0005 * 1.3**step for step in range(52))
"""The upper bounds of the histogram, from 0.5 ms to a few minutes."""


@dataclass(frozen=True, slots=True)
class MinuteCounts:
    """A count, and the median and the 95th percentile of the durations, in seconds."""

    count: int
    p50: float | None
    p95: float | None


class LastHour:
    """Counts of the last sixty minutes.

    Args:
        clock: returns the seconds since some moment.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts = [[0] * (len(BOUNDS) + 1) for _ in range(MINUTES)]
        self._minute = int(clock() // 60)

    def add(self, seconds: float) -> None:
        """Count an operation with its duration."""
        with self._lock:
            self._turn()
            self._counts[self._minute % MINUTES][bisect_left(BOUNDS, seconds)] += 1

    def minutes(self) -> list[MinuteCounts]:
        """Return the minutes, the current one last."""
        with self._lock:
            self._turn()
            order = [(self._minute + 1 + step) % MINUTES for step in range(MINUTES)]
            return [_minute(self._counts[place]) for place in order]

    def hour(self) -> MinuteCounts:
        """Return the sum of all minutes."""
        with self._lock:
            self._turn()
            return _minute([sum(column) for column in zip(*self._counts, strict=True)])

    def _turn(self) -> None:
        """Clear the minutes that have passed since the last call."""
        now = int(self._clock() // 60)
        for minute in range(max(self._minute + 1, now - MINUTES + 1), now + 1):
            self._counts[minute % MINUTES] = [0] * (len(BOUNDS) + 1)
        self._minute = now


def _minute(counts: Sequence[int]) -> MinuteCounts:
    total = sum(counts)
    return MinuteCounts(total, _quantile(counts, total, 0.5), _quantile(counts, total, 0.95))


def _quantile(counts: Sequence[int], total: int, share: float) -> float | None:
    if not total:
        return None
    place = bisect_left(list(accumulate(counts)), share * total)
    return BOUNDS[min(place, len(BOUNDS) - 1)]
