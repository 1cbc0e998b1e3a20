"""What becomes an extractor, `python -m kb.parser.extractor_exec`: it takes on limits, gives up rights, and runs it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from kb.parser.drop_privileges import confine_program, end_with, limit

NOT_NOW: Final = 75
"""The exit status of what may succeed another time: `EX_TEMPFAIL` of `sysexits.h`."""

TASKS: Final = 512
"""How many processes and threads an extractor may have."""

FILES: Final = 256
"""How many files and sockets each of them may have open: what waits in a socket is memory that no limit counts."""

HOST: Final = "pid:[4026531836]"
"""The processes of the machine itself, as Linux calls them: a container sees only its own."""

NEEDED: Final = {"files", "network", "processes", "writing"}
"""What must be impossible for a command, or it does not run."""

UNCONFINED: Final = (
    "it was not run, because this system cannot keep it from your files (Linux can, with Landlock and seccomp);"
    " KB_EXTRACTORS_UNCONFINED=1 runs it all the same"
)


def main() -> None:
    """Become the command that the arguments name, after all limits are set and all rights given up."""
    told = arguments().parse_args()
    end_with(told.engine)
    limit(told.address_space, **limits(told.largest_file))
    confined = confine_program(told.command, told.scratch, may_connect=told.may_connect)
    if told.report:
        print(json.dumps(confined))
        return
    if not (told.may_connect or told.unconfined or set(confined) >= NEEDED):
        print(UNCONFINED, file=sys.stderr)
        sys.exit(NOT_NOW)
    become(told.command)


def arguments() -> argparse.ArgumentParser:
    """Return what reads the arguments."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", type=int, required=True, help="the process with which it ends")
    parser.add_argument("--address-space", type=int, required=True, help="in bytes, of each process")
    parser.add_argument("--largest-file", type=int, required=True, help="in bytes")
    parser.add_argument("--scratch", required=True, help="the folder that it may write to")
    parser.add_argument("--may-connect", action="store_true", help="it is kb's own, and passes the file on")
    parser.add_argument("--unconfined", action="store_true", help="it runs even where it cannot be confined")
    parser.add_argument("--report", action="store_true", help="print what would be impossible, and run nothing")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser


def become(command: list[str]) -> None:
    """Run a command in the place of this process."""
    try:
        os.execv(command[0], command)  # noqa: S606 - no shell is what is meant
    except OSError as error:
        print(error.strerror, file=sys.stderr)
        sys.exit(NOT_NOW)


def limits(largest_file: int) -> dict[str, int]:
    """Return what bounds the process, besides its memory; its tasks where all that this limit counts can be seen."""
    tasks = {"nproc": sum(user_threads(os.getuid())) + TASKS} if sees_all_processes() else {}
    return {"core": 0, "fsize": largest_file, "nofile": FILES} | tasks


def sees_all_processes() -> bool:
    """Return whether `/proc` shows the processes of the whole machine, which the limit on them counts."""
    try:
        return os.readlink("/proc/self/ns/pid") == HOST  # noqa: PTH115 - it is no path
    except OSError:
        return False


def user_threads(user: int) -> Iterator[int]:
    """Yield how many threads each process of a user has."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
            if folder.stat().st_uid == user:
                yield int((folder / "stat").read_bytes().rpartition(b")")[2].split()[17])


if __name__ == "__main__":
    main()
