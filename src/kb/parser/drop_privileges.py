"""The rights that the parser process gives up before it reads a file, so that a file that takes it over gains nothing.

Landlock and seccomp are parts of Linux that need no privileges. If the kernel or a container lacks one of them, kb uses
only the other.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kb.parser.seccomp import allow_parser, allow_program

if TYPE_CHECKING:
    from kb.api.fields import Restriction

_SET_DEATH_SIGNAL, _SET_DUMPABLE, _SET_NO_NEW_PRIVS = 1, 4, 38
_CAPABILITY_VERSION: Final = 0x20080522

_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_PATH_ONLY: Final = 0o10000000
"""`os.O_PATH`, which only Linux has."""
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_RIGHTS_OF_FILES: Final = 0b111 | 1 << 14 | 1 << 15
_FILE_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""The number of kinds of file access in each version of Landlock; later versions have as many as the last."""
_PORTS_SINCE, _SCOPES_SINCE = 4, 6
_ALL_OF_TWO: Final = 0b11

_READ_BY_PROGRAMS: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store"),
    *("/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime"),
    *("/etc/ssl", "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/dev/urandom", "/dev/zero"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/self", "/sys/devices/system/cpu"),
)
"""The folders and files of programs, their libraries, and the system data they read."""


def end_with(engine: int) -> None:
    """End this process when the engine ends, even while it reads a file."""
    if sys.platform != "linux":
        return  # on other systems it ends when it next waits for a request
    _libc().prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != engine:
        sys.exit(1)


def limit(address_space: int, **others: int) -> None:
    """Limit the resources of this process and of each process that it starts.

    Args:
        address_space: in bytes; only Linux enforces it.
        others: other limits, named after their `RLIMIT_` constant in lower case: `fsize` is the size of a file.
    """
    if sys.platform == "win32":
        return
    import resource

    limits = others | ({"as": address_space} if sys.platform == "linux" else {})
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name.upper()}")
        _, hard = resource.getrlimit(kind)
        lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (lowest, lowest))


def forbid_inspection() -> None:
    """Close this process's memory and environment to other processes of its user."""
    if sys.platform == "linux":
        _libc().prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def confine() -> list[Restriction]:
    """Give up every right that reading files does not need, and return the restrictions now in force.

    They apply to this thread and to the threads that it starts.
    """
    if sys.platform != "linux":
        return []
    libc = _libc()
    restrictions: set[Restriction] = set()
    _drop_capabilities(libc)
    libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if _forbid_files(libc, dict.fromkeys(sys.path, _READ_FILE | _READ_DIR)):
        restrictions |= {"files", "writing"}
    if allow_parser(libc):
        restrictions |= {"writing", "network", "processes"}
    return sorted(restrictions)


def confine_program(command: Sequence[str], scratch: str, *, may_connect: bool) -> list[Restriction]:
    """Give up every right that a program does not need to read one file and print its text.

    It may read and run the system's files and the full paths in its command, and write to one folder. Returns the
    restrictions now in force. Only Landlock and seccomp together protect files: Landlock does not cover permissions of
    files, and seccomp does not see which file is opened.

    Args:
        command: the program and its arguments.
        may_connect: whether it may use the network.
    """
    if sys.platform != "linux":
        return []
    libc = _libc()
    _drop_capabilities(libc)
    libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    named = [part for word in command for part in (word, word.partition("=")[2]) if part.startswith("/")]
    modules = [*sys.path, sys.prefix, sys.base_prefix] if may_connect else []  # a program that sends a file is kb's own
    readable = dict.fromkeys((*_READ_BY_PROGRAMS, *named, *modules), _READ_FILE | _READ_DIR | _EXECUTE)
    written = {"/dev/null": _READ_FILE | _WRITE_FILE, scratch: ~_EXECUTE}
    has_landlock = _forbid_files(libc, readable | written, ports=not may_connect)
    has_seccomp = allow_program(libc, may_connect=may_connect)
    restrictions: set[Restriction] = {"files", "writing"} if has_landlock and has_seccomp else set()
    if has_seccomp:
        restrictions |= {"processes"} if may_connect else {"network", "processes"}
    return sorted(restrictions)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Remove the capabilities of root, with which it could inspect the engine."""
    libc.capset(struct.pack("Ii", _CAPABILITY_VERSION, 0), bytes(24))


def _forbid_files(libc: ctypes.CDLL, allowed: Mapping[str, int], *, ports: bool = True) -> bool:
    """Allow only these files, each with its rights, and forbid network ports if `ports` is true, with Landlock."""
    version = libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION)
    if version < 1:
        return False
    rights = (1 << _FILE_RIGHTS.get(version, max(_FILE_RIGHTS.values()))) - 1
    forbidden_ports = _ALL_OF_TWO if ports and version >= _PORTS_SINCE else 0
    scopes = _ALL_OF_TWO if version >= _SCOPES_SINCE else 0
    attributes = struct.pack("QQQ", rights, forbidden_ports, scopes)
    ruleset = libc.syscall(_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return False
    try:
        for path in filter(os.path.exists, allowed):
            _allow(libc, ruleset, path, allowed[path] & rights)
        return not libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    if not os.path.isdir(path):  # noqa: PTH112 - Path is not imported for it
        rights &= _RIGHTS_OF_FILES
    opened = os.open(path, _PATH_ONLY)
    try:
        libc.syscall(_LANDLOCK_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)
