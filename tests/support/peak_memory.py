"""How much memory a worker of the suite may take, so that the suite runs on a laptop beside other programs."""

from __future__ import annotations

import os
from pathlib import Path

MOST_MB = int(os.environ.get("KB_TEST_MEMORY_MB", "1024"))


def peak_mb():
    """Return the most memory that this process ever had, in MB; 0 where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM:")), 0)
