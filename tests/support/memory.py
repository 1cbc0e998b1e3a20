"""Limits on a worker's memory, so that the suite runs on a laptop next to other programs."""

from __future__ import annotations

import gc
import os
from pathlib import Path

from kb_cli.runtime.allocator import trim

STATUS = Path("/proc/self/status")
MOST_MB = int(os.environ.get("KB_TEST_MEMORY_MB", "1024"))
GROWTH_MB, FREED_MB = 40, 20
"""After so much more a worker looks for garbage, which takes a fifth of a second, or only gives back freed memory."""


class Memory:
    """The memory of this process."""

    def __init__(self):
        self._kept_mb = self._collected_mb = 0

    def give_back(self):
        """Collect garbage and give back what the allocator keeps, if there is much more than after the last time."""
        now = _status_mb("VmRSS")
        if now > self._collected_mb + GROWTH_MB:
            gc.collect()
            trim()
            self._kept_mb = self._collected_mb = _status_mb("VmRSS")
        elif now > self._kept_mb + FREED_MB:
            trim()
            self._kept_mb = _status_mb("VmRSS")


def peak_mb():
    """Return the most memory that this process ever had, in MB; 0 where the system does not say."""
    return _status_mb("VmHWM")


def _status_mb(name):
    lines = STATUS.read_text().splitlines() if STATUS.exists() else []
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith(f"{name}:")), 0)
