"""The child process for backups and checks, `python -m kb.repair.child_process`, so that searches continue.

It reads its task from standard input and reports on standard output, with one line of JSON per step.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kb.api.errors import KbError, StartError
from kb.backup.make import back_up
from kb.backup.restore import verify_backups
from kb.parser.drop_privileges import end_with, forbid_inspection
from kb.repair.doctor import RESTORE, Findings, advice, check_data, repair_files
from kb.settings import Settings
from kb.store.sqlite.verify import Remedy

Step = Callable[[str], None]

NICE: Final = 10
MAX_FAULTS: Final = 100
"""The maximum number of reported faults."""

PAUSE_SECONDS: Final = 0.5
"""The minimum interval between two progress reports."""


def main() -> None:
    """Run the requested task, and report its result."""
    engine = int(sys.argv[1])
    end_with(engine)
    give_way()
    forbid_inspection()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unfinished files are removed on exit
    asked = json.loads(sys.stdin.read())
    try:
        done = ACTIONS[asked["action"]](Settings.model_validate(asked["settings"]), lambda text: report(step=text))
    except (KbError, StartError) as error:
        done = {"error": str(error)}
    except OSError as error:
        done = {"error": f"{error.filename or 'A file'}: {error.strerror or error}"}
    report(**done)


def give_way() -> None:
    """Lower the priority of this process; if memory runs out, the kernel ends it first."""
    if hasattr(os, "nice"):
        os.nice(NICE)
    if sys.platform == "linux":
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", "ascii")


def report(**fields: object) -> None:
    """Write a line for the engine."""
    print(json.dumps(fields), flush=True)


def make_backup(settings: Settings, step: Step) -> dict[str, Any]:
    """Back up to the backup folder."""
    target = backup_folder(settings)
    step(f"backing up to {target}")
    made = back_up(settings, target, settings.backup_keep, _counted(step))
    return {"faults": first_faults(made.warnings)}


def _counted(step: Step) -> Callable[[], None]:
    """Return a callback that counts copied pieces and reports the count at intervals."""
    count, reported_at = 0, time.monotonic()

    def checkpoint() -> None:
        nonlocal count, reported_at
        count += 1
        if time.monotonic() - reported_at > PAUSE_SECONDS:
            reported_at = time.monotonic()
            step(f"copying, piece {count:,}")

    return checkpoint


def verify(settings: Settings, step: Step) -> dict[str, Any]:
    """Verify every backup, and restore the newest as a test; the engine's next start removes leftovers."""
    return {
        "faults": first_faults(
            list(
                verify_backups(
                    backup_folder(settings), step, settings.staging_dir, settings.backup_key, settings.files_dir
                )
            )
        )
    }


def first_faults(faults: list[str]) -> list[str]:
    """Return the first faults and the number of the others: there may be one per file."""
    return [*faults[:MAX_FAULTS], f"and {len(faults) - MAX_FAULTS:,} more"] if len(faults) > MAX_FAULTS else faults


def check(settings: Settings, step: Step) -> dict[str, Any]:
    found = check_data(settings, lambda name: step(f"checking {name}"))
    noted = {} if list(found) == [RESTORE] else advice(settings)
    return {"findings": findings(found | {name: ([text], Remedy.NOTICE) for name, text in noted.items()})}


def repair(settings: Settings, step: Step) -> dict[str, Any]:
    """Make the repairs that are possible while the engine runs, and check the data again."""
    repair_files(settings)
    return check(settings, step)


def findings(results: Findings) -> list[dict[str, Any]]:
    """Return the findings in the form of the API."""
    return [
        {
            "check": name,
            "faults": faults,
            "remedy": remedy.value,
            "is_notice": remedy is Remedy.NOTICE,
            "is_repairable": remedy is Remedy.FILES,
        }
        for name, (faults, remedy) in results.items()
    ]


def backup_folder(settings: Settings) -> Path:
    """Return the backup folder, which these tasks require."""
    assert settings.backup_dir  # noqa: S101 - `MaintenanceTasks.begin` checks it
    return settings.backup_dir


ACTIONS: Final[dict[str, Callable[[Settings, Step], dict[str, Any]]]] = {
    "back-up": make_backup,
    "verify": verify,
    "check": check,
    "repair": repair,
}

if __name__ == "__main__":
    main()
