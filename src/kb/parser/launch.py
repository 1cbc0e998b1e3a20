"""What becomes an extractor, `python -m kb.parser.launch`: it takes on limits, gives up rights, and runs it."""

from __future__ import annotations

import os
import sys
from typing import Final

from kb.parser.confine import confine_program

NOT_NOW: Final = 75
"""The exit status of what may succeed another time: `EX_TEMPFAIL` of `sysexits.h`."""


def main() -> None:
    """Become the command that the arguments name, after the limits: who started it, memory, output, network, folder."""
    engine, address_space, largest_file, network, scratch, *command = sys.argv[1:]
    end_with(int(engine))
    limit(int(address_space), int(largest_file))
    confine_program(command, scratch, int(engine), may_connect=network == "network")
    try:
        os.execv(command[0], command)  # noqa: S606 - no shell is what is meant
    except OSError as error:
        print(error.strerror, file=sys.stderr)
        sys.exit(NOT_NOW)


def end_with(engine: int) -> None:
    """See to it that this process does not outlive the engine's reader."""
    if sys.platform != "linux":
        return
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != engine:
        sys.exit(1)


def limit(address_space: int, largest_file: int) -> None:
    """Bound what the process and each that it starts may take."""
    if sys.platform == "win32":
        return
    import resource

    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: largest_file}
    if sys.platform == "linux":
        limits[resource.RLIMIT_AS] = address_space
    for each, value in limits.items():
        _, hard = resource.getrlimit(each)
        lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(each, (lowest, lowest))


if __name__ == "__main__":
    main()
