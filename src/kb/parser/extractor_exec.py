"""Sets limits, drops rights, and becomes an extractor: `python -m kb.parser.extractor_exec`."""

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
"""The exit status of a failure that may pass later: `EX_TEMPFAIL` of `sysexits.h`."""

TASKS: Final = 512
"""The maximum number of processes and threads of an extractor."""

FILES: Final = 256
"""The maximum number of open files and sockets per process. No limit counts the memory of data waiting in a socket."""

HOST: Final = "pid:[4026531836]"
"""Linux's name for the process namespace of the machine itself; a container has its own."""

NEEDED: Final = {"files", "network", "processes", "writing"}
"""The restrictions without which a command does not run."""

UNCONFINED: Final = (
    "it did not run, because this system cannot keep it from your files (Linux with Landlock and seccomp can);"
    " set KB_EXTRACTORS_UNCONFINED=1 to run it without protection"
)


def main() -> None:
    """Become the command in the arguments, after setting all limits and giving up all rights."""
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
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", type=int, required=True, help="the process whose end also ends the command")
    parser.add_argument("--address-space", type=int, required=True, help="the maximum memory of each process, in bytes")
    parser.add_argument("--largest-file", type=int, required=True, help="the maximum size of a file, in bytes")
    parser.add_argument("--scratch", required=True, help="the folder in which the command may write")
    parser.add_argument("--may-connect", action="store_true", help="allow connections, for kb's own command")
    parser.add_argument("--unconfined", action="store_true", help="run the command even if it cannot be confined")
    parser.add_argument("--report", action="store_true", help="print the restrictions and run nothing")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser


def become(command: list[str]) -> None:
    try:
        os.execv(command[0], command)  # noqa: S606 - a shell is not wanted
    except OSError as error:
        print(error.strerror, file=sys.stderr)
        sys.exit(NOT_NOW)


def limits(largest_file: int) -> dict[str, int]:
    """Return the process limits other than memory; the number of tasks only if all tasks that count are visible."""
    others = {"core": 0, "fsize": largest_file, "nofile": FILES}
    if sys.platform == "win32" or not sees_all_processes():
        return others
    return others | {"nproc": sum(user_threads(os.getuid())) + TASKS}


def sees_all_processes() -> bool:
    """Return whether `/proc` shows the processes of the whole machine, which the limit on tasks counts."""
    try:
        return os.readlink("/proc/self/ns/pid") == HOST  # noqa: PTH115 - it is not a path
    except OSError:
        return False


def user_threads(user: int) -> Iterator[int]:
    """Yield the number of threads of each process of a user."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # the process has ended in the meantime
            if folder.stat().st_uid == user:
                yield int((folder / "stat").read_bytes().rpartition(b")")[2].split()[17])


if __name__ == "__main__":
    main()
