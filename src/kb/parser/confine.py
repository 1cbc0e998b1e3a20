"""What the parser process gives up for good before it reads a file, so that a file that takes it over gains nothing.

Landlock and seccomp are Linux's own and ask for no privileges. Where the kernel or a container has only one of them,
that one holds alone.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kb.api.models import Restriction

_SET_DUMPABLE, _SET_SECCOMP, _SET_NO_NEW_PRIVS = 4, 22, 38
_SECCOMP_MODE_FILTER: Final = 2
_CAPABILITY_VERSION: Final = 0x20080522

_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_RIGHTS_OF_FILES: Final = 0b111 | 1 << 14 | 1 << 15
_FILE_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many kinds of access to files each version of Landlock knows; later ones as many as the last."""
_PORTS_SINCE, _SCOPES_SINCE = 4, 6
_ALL_OF_TWO: Final = 0b11

_SYSCALLS: Final = {
    # name: its number on x86-64, and on ARM64
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "pread64": (17, 67),
    "readv": (19, 65),
    "writev": (20, 66),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "getpid": (39, 172),
    "exit": (60, 93),
    "sigaltstack": (131, 132),
    "gettid": (186, 178),
    "futex": (202, 98),
    "getdents64": (217, 61),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "newfstatat": (262, 79),
    "getrandom": (318, 278),
}
"""All that reading bytes, computing, and loading a module take."""
_OPENAT, _TGKILL = (257, 56), (234, 131)


_FORBIDDEN_TO_PROGRAMS: Final = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "setpgid": (109, 154),
    "setsid": (112, 157),
    "ptrace": (101, 117),
    "mount": (165, 40),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "perf_event_open": (298, 241),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
}
"""What no extractor needs. It stays in its group, so that all of it is killed together."""
_SOCKET, _CLONE = (41, 198), (56, 220)
_SELF_ONLY: Final = (_TGKILL, (302, 261))
"""A signal to a thread, and limits: programs have these for themselves."""

_CLONE3: Final = (435, 435)
"""Its flags cannot be seen; libraries know how to do without it."""
_NEW_NAMESPACES: Final = 0x7E020000
_X32: Final = 0x40000000

_READ_BY_PROGRAMS: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store"),
    *("/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime"),
    *("/etc/ssl", "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/dev/urandom", "/dev/zero"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/self", "/sys/devices/system/cpu"),
)
"""Where programs, what they are made of, and what they ask of the system lie."""


class _Architecture(NamedTuple):
    audit: int
    column: int


_ARCHITECTURES: Final = {"x86_64": _Architecture(0xC000003E, 0), "aarch64": _Architecture(0xC00000B7, 1)}
_POINTER_BYTES: Final = 8

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16


def forbid_inspection() -> None:
    """Close this process's memory and environment to other processes of its user."""
    if sys.platform == "linux":
        _libc().prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def confine() -> list[Restriction]:
    """Give up all that reading files does not take; returns what is impossible from here on.

    It counts for this thread and those that it starts.
    """
    if sys.platform != "linux":
        return []
    libc = _libc()
    restrictions: set[Restriction] = set()
    _drop_capabilities(libc)
    libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if _forbid_files(libc, dict.fromkeys(sys.path, _READ_FILE | _READ_DIR)):
        restrictions |= {"files", "writing"}
    if _install(libc, lambda architecture: _filter(architecture, os.getpid())):
        restrictions |= {"writing", "network", "processes"}
    return sorted(restrictions)


def confine_program(command: Sequence[str], scratch: str, engine: int, *, may_connect: bool) -> None:
    """Give up what a program does not need that reads one file and prints what it finds.

    It may read and run what the system has, and what its command names by a full path; and write into a folder.

    Args:
        command: the program and its arguments.
        scratch: the folder.
        engine: the process that it may do nothing to.
        may_connect: whether it may use the network.
    """
    if sys.platform != "linux":
        return
    libc = _libc()
    _drop_capabilities(libc)
    libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    named = [part for word in command for part in (word, word.partition("=")[2]) if part.startswith("/")]
    modules = (
        [*sys.path, sys.prefix, sys.base_prefix] if may_connect else []
    )  # what passes a file on is our own program
    readable = dict.fromkeys((*_READ_BY_PROGRAMS, *named, *modules), _READ_FILE | _READ_DIR | _EXECUTE)
    written = {"/dev/null": _READ_FILE | _WRITE_FILE, scratch: ~_EXECUTE}
    _forbid_files(libc, readable | written, ports=not may_connect)
    _install(libc, lambda architecture: _program_filter(architecture, engine, may_connect=may_connect))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Make root a user like any other: it could look into the engine otherwise."""
    libc.capset(struct.pack("Ii", _CAPABILITY_VERSION, 0), bytes(24))


def _forbid_files(libc: ctypes.CDLL, allowed: Mapping[str, int], *, ports: bool = True) -> bool:
    """Allow no files but these, each what its rights say, and if `ports` are forbidden no port, by Landlock."""
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
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        libc.syscall(_LANDLOCK_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)


def _install(libc: ctypes.CDLL, instructions_for: Callable[[_Architecture], Iterator[bytes]]) -> bool:
    """Allow only the system calls that a filter lets pass, by seccomp."""
    architecture = _ARCHITECTURES.get(os.uname().machine)
    if architecture is None or struct.calcsize("P") != _POINTER_BYTES:
        return False
    program = b"".join(instructions_for(architecture))
    instructions = ctypes.create_string_buffer(program, len(program))
    counted = struct.pack("HP", len(program) // 8, ctypes.addressof(instructions))
    return not libc.prctl(_SET_SECCOMP, _SECCOMP_MODE_FILTER, counted, 0, 0)


def _filter(architecture: _Architecture, own_pid: int) -> Iterator[bytes]:
    # Libraries know how to do without a call that the kernel does not have.
    refuse = _instruction(_RETURN, _REFUSE | errno.ENOSYS)
    allow = _instruction(_RETURN, _ALLOW)
    yield _instruction(_LOAD, _ARCHITECTURE_AT)
    yield _instruction(_IF_EQUAL, architecture.audit, skip_if=1)
    yield refuse
    yield _instruction(_LOAD, _NUMBER_AT)
    for numbers in _SYSCALLS.values():
        yield _instruction(_IF_EQUAL, numbers[architecture.column], skip_unless=1)
        yield allow
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
    yield _instruction(_IF_EQUAL, _OPENAT[architecture.column], skip_unless=4)
    yield _instruction(_LOAD, _ARGUMENTS_AT + 2 * 8)
    yield _instruction(_IF_ANY_BIT, writing, skip_unless=1)
    yield _instruction(_RETURN, _REFUSE | errno.EACCES)
    yield allow
    yield _instruction(_IF_EQUAL, _TGKILL[architecture.column], skip_unless=3)  # abort() is a signal to oneself
    yield _instruction(_LOAD, _ARGUMENTS_AT)
    yield _instruction(_IF_EQUAL, own_pid, skip_unless=1)
    yield allow
    yield refuse


def _program_filter(architecture: _Architecture, engine: int, *, may_connect: bool) -> Iterator[bytes]:
    refuse, allow = _instruction(_RETURN, _REFUSE | errno.EPERM), _instruction(_RETURN, _ALLOW)
    yield _instruction(_LOAD, _ARCHITECTURE_AT)
    yield _instruction(_IF_EQUAL, architecture.audit, skip_if=1)
    yield refuse
    yield _instruction(_LOAD, _NUMBER_AT)
    yield _instruction(_IF_AT_LEAST, _X32, skip_unless=1)
    yield refuse
    yield _instruction(_IF_EQUAL, _CLONE3[architecture.column], skip_unless=1)
    yield _instruction(_RETURN, _REFUSE | errno.ENOSYS)
    forbidden = [*_FORBIDDEN_TO_PROGRAMS.values(), *(() if may_connect else (_SOCKET,))]
    for numbers in forbidden:
        yield _instruction(_IF_EQUAL, numbers[architecture.column], skip_unless=1)
        yield refuse
    for numbers in _SELF_ONLY:
        yield _instruction(_IF_EQUAL, numbers[architecture.column], skip_unless=4)
        yield _instruction(_LOAD, _ARGUMENTS_AT)
        yield _instruction(_IF_EQUAL, engine, skip_unless=1)
        yield refuse
        yield allow
    yield _instruction(_IF_EQUAL, _CLONE[architecture.column], skip_if=1)
    yield allow
    yield _instruction(_LOAD, _ARGUMENTS_AT)
    yield _instruction(_IF_ANY_BIT, _NEW_NAMESPACES, skip_unless=1)
    yield refuse
    yield allow


def _instruction(code: int, value: int, *, skip_if: int = 0, skip_unless: int = 0) -> bytes:
    return struct.pack("HBBI", code, skip_if, skip_unless, value)
