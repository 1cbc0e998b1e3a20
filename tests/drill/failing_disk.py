"""A disk that fails at the n-th change (`failing_disk.c`), for each n in turn.

Run as a program under the library, which forks for each n: `python -m tests.drill.failing_disk ACTION ERROR EVERY FOLDER`.
ERROR is EIO, ENOSPC or KILL. It prints the number of changes that were tried, or ends with what was lost.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kb.api.errors import KbError
from tests.conftest import without_settings

SOURCE = Path(__file__).with_suffix(".c")
ROOT = Path(__file__).parents[2]
LONGEST = 60
"""Seconds after which an action that hangs is ended."""


def build(folder):
    """The library, or None without a compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "failing_disk.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-w", "-o", library, SOURCE, "-ldl"], check=True)
    return library


def fail_at_each_change(library, model, action, error, folder, every=1):
    """Let an action fail at its first change of the disk, at the next of so many, and so on.

    Return how many there were, and what was said.
    """
    command = [sys.executable, "-m", "tests.drill.failing_disk", action, error, str(every), folder]
    environment = without_settings() | {"LD_PRELOAD": str(library), "KB_MODEL_DIR": str(model)}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr + ended.stdout
    return int(ended.stdout), ended.stderr


@dataclass
class Disk:
    """The disk below a folder. Within `failing`, its change with the number `last` fails, as `failing_disk.c` says."""

    folder: Path
    last: int
    error: int
    changes: int = 0

    @contextmanager
    def failing(self):
        """The block of what may fail. It goes on behind an error that kb, SQLite or the system reports."""
        library = ctypes.CDLL(None)
        library.fail_at(os.fsencode(self.folder), ctypes.c_long(self.last), self.error)
        try:
            yield
        except (KbError, OSError) as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        finally:
            self.changes += library.changes()
            library.fail_at(b"", ctypes.c_long(0), 0)


def run_apart(function, *words):
    """Run a function in a fork, which ends as a kill would. Return the lines that it yielded, and its exit status."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.close(reader)
        signal.alarm(LONGEST)
        try:
            for line in function(*words) or ():
                os.write(writer, json.dumps(line).encode() + b"\n")
            os._exit(0)
        except BaseException:  # noqa: BLE001 - the status tells it
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        lines = [json.loads(line) for line in file]
    return lines, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def try_once(action, source, place, disk):
    """Let an action fail in a copy of a place, and check what it left; return whether anything failed."""

    def act():
        yield from action.act(place, disk)
        yield disk.changes

    shutil.copytree(source, place)
    lines, status = run_apart(act)
    if status not in (0, -signal.SIGKILL):
        sys.exit(f"{disk}: the action ended with {status}")
    changes = disk.last if status else lines.pop()
    if run_apart(action.check, place, lines)[1]:
        sys.exit(f"{disk}: what was acknowledged: {lines}")
    shutil.rmtree(place)
    return changes >= disk.last


def main():
    from tests.drill.actions import ACTIONS

    name, error, every, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    action, source = ACTIONS[name](), folder / "whole"
    source.mkdir()
    if run_apart(action.prepare, source)[1]:
        sys.exit("the place cannot be prepared")
    number = getattr(errno, error, 0)
    last = 1
    while try_once(action, source, folder / "place", Disk(folder / "place", last, number)):
        last += every
    print(last // every)


if __name__ == "__main__":
    main()
