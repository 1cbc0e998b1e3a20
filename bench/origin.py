"""Where figures come from: the commit, the date, the command and the machine."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]


def git(*arguments: str) -> str:
    """Return the output of git in this repository."""
    return subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


def commit() -> str:
    """Return this tree's commit, and whether the sources differ from it."""
    changed = git("status", "--porcelain", "--untracked-files=no", "src", "bench", ":!bench/found")
    return git("rev-parse", "--short=8", "HEAD") + ("+changes" if changed else "")


def origin() -> dict[str, object]:
    """Return the origin of figures that are measured now."""
    module = sys.modules["__main__"].__spec__
    program = ["-m", module.name.removesuffix(".__main__")] if module else sys.argv[:1]
    precision = [f"KB_PRECISION={os.environ['KB_PRECISION']}"] if "KB_PRECISION" in os.environ else []
    return {
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "command": shlex.join([*precision, "python", *program, *sys.argv[1:]]),
        "machine": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "load": round(os.getloadavg()[0], 2),
            "python": platform.python_version(),
        },
    }


def processor() -> str:
    """Return the name of the processor."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


class Record:
    """A file in bench/found for the figures of a measurement that begins now."""

    def __init__(self, file: str) -> None:
        self._file, self._origin = Path(file), origin()

    def save(self, figures: object) -> None:
        """Write figures by row and column, with six digits."""
        found = json.loads(json.dumps(figures), parse_float=lambda digits: float(f"{float(digits):.6g}"))
        self._file.write_text(dumped(self._origin | {"figures": found}))


def dumped(record: object) -> str:
    """Return JSON with a line for each row."""
    text = json.dumps(record, indent=1, ensure_ascii=False)
    return re.sub(r"\{[^{}]*\}", lambda row: re.sub(r"\s*\n\s*", " ", row[0]), text) + "\n"
