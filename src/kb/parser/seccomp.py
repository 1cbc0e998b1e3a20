"""The system calls that a confined process may make: filters for Linux's seccomp that list the allowed calls.

Linux runs a filter at each call. It is a program that compares the call's number and some of its arguments.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from kb.parser.allowed_syscalls import JUDGED, OF_PARSER, OF_PROGRAMS, TO_CONNECT, Numbers

_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_POINTER_BYTES: Final = 8
_INSTRUCTION_BYTES: Final = 8

_FIRST_OF_NEW: Final = 424
"""From this number on, calls have the same number on all architectures, and programs can do without them."""

_NEW_NAMESPACES, _CLONE_PARENT = 0x7E020000, 0x8000
_FILE_COMMANDS: Final = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1031, 1032)
"""Commands of `fcntl`: descriptors, flags, locks and the size of a pipe, but not signals when a file changes."""

_DEVICE_COMMANDS: Final = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""Commands of `ioctl`: the type of a terminal, the number of bytes to read, and flags of a descriptor."""

_OWN_COMMANDS: Final = (3, 15, 16, 21, 23, 38, 39, 0x53564D41)
"""Commands of `prctl`: names of threads and memory, and dropped rights, but not to outlive or hide from the engine."""

_INTERNET: Final = (2, 10, 16)
"""Families of sockets: IPv4, IPv6, and the kernel's own (netlink), which lists this machine's addresses."""


class _Architecture(NamedTuple):
    audit: int
    column: int


_ARCHITECTURES: Final = {"x86_64": _Architecture(0xC000003E, 0), "aarch64": _Architecture(0xC00000B7, 1)}

_LOAD, _AND, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_WORD: Final = 4
_ACCESS_MODE: Final = 0o3


def allow_parser(libc: ctypes.CDLL) -> bool:
    """Allow this process only the calls for reading bytes; return whether the system can."""
    return _install(libc, _parser_filter)


def allow_program(libc: ctypes.CDLL, *, may_connect: bool) -> bool:
    """Allow this process and its children only the calls for reading one file; return whether the system can."""
    return _install(libc, lambda column: _program_filter(column, may_connect=may_connect))


def _install(libc: ctypes.CDLL, rules_for: Callable[[int], Iterator[bytes]]) -> bool:
    if sys.platform != "linux":
        return False
    architecture = _ARCHITECTURES.get(os.uname().machine)
    if architecture is None or struct.calcsize("P") != _POINTER_BYTES:
        return False
    checked = [
        _instruction(_LOAD, _ARCHITECTURE_AT),
        _instruction(_IF_EQUAL, architecture.audit, skip_if=1),
        _refuse(errno.ENOSYS),
        _instruction(_LOAD, _NUMBER_AT),
    ]
    program = b"".join((*checked, *rules_for(architecture.column)))
    instructions = ctypes.create_string_buffer(program, len(program))
    counted = struct.pack("HP", len(program) // _INSTRUCTION_BYTES, ctypes.addressof(instructions))
    return not libc.prctl(_SET_SECCOMP, _SECCOMP_MODE_FILTER, counted, 0, 0)


def _parser_filter(column: int) -> Iterator[bytes]:
    yield from _allow(OF_PARSER.values(), column)
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
    yield from _of(JUDGED["openat"], column, [*_unless_bits(2, writing), _refuse(errno.EACCES)])
    yield from _of(JUDGED["tgkill"], column, [*_among(0, [os.getpid()]), _refuse(errno.ENOSYS)])  # abort()
    yield _refuse(errno.ENOSYS)  # libraries can do without a call that the kernel lacks


def _program_filter(column: int, *, may_connect: bool) -> Iterator[bytes]:
    refuse = _refuse(errno.EPERM)
    yield from _allow(OF_PROGRAMS.values(), column)
    rules = {
        "open": _unless_emptied(1),
        "openat": _unless_emptied(2),
        "tgkill": _among(0, [os.getpid()]),
        "prlimit64": _among(0, [0]),  # the process itself
        "sched_setaffinity": _among(0, [0]),
        "fcntl": _among(1, _FILE_COMMANDS),
        "ioctl": _among(1, _DEVICE_COMMANDS),
        "prctl": _among(0, _OWN_COMMANDS),
        "clone": _unless_bits(0, _NEW_NAMESPACES | _CLONE_PARENT),
        "sendto": _unless_address(4),
    }
    if may_connect:
        yield from _allow(TO_CONNECT.values(), column)
        rules |= {"socket": _among(0, _INTERNET), "sendto": iter([_return(_ALLOW)])}
    for name, allowing in rules.items():
        yield from _of(JUDGED[name], column, [*allowing, refuse])
    yield _instruction(_IF_AT_LEAST, _FIRST_OF_NEW, skip_unless=1)
    yield _refuse(errno.ENOSYS)
    yield refuse


def _allow(allowed: Iterable[Numbers], column: int) -> Iterator[bytes]:
    for numbers in allowed:
        yield from _of(numbers, column, [_return(_ALLOW)])


def _of(numbers: Numbers, column: int, rules: list[bytes]) -> Iterator[bytes]:
    """Yield the rules of one call, which end by refusing or allowing it."""
    if (number := numbers[column]) is not None:
        yield _instruction(_IF_EQUAL, number, skip_unless=len(rules))
        yield from rules


def _among(argument: int, values: Iterable[int]) -> Iterator[bytes]:
    """Allow a call whose 32-bit argument is one of these values."""
    yield _load(argument)
    for value in values:
        yield _instruction(_IF_EQUAL, value, skip_unless=1)
        yield _return(_ALLOW)


def _unless_bits(argument: int, bits: int) -> Iterator[bytes]:
    """Allow a call whose argument has none of these bits."""
    yield _load(argument)
    yield _instruction(_IF_ANY_BIT, bits, skip_if=1)
    yield _return(_ALLOW)


def _unless_emptied(argument: int) -> Iterator[bytes]:
    """Allow opening a file, unless to read and truncate it: before Linux 6.2, Landlock does not cover truncation."""
    yield _load(argument)
    yield _instruction(_AND, _ACCESS_MODE | os.O_TRUNC)
    yield _instruction(_IF_EQUAL, os.O_RDONLY | os.O_TRUNC, skip_if=1)
    yield _return(_ALLOW)


def _unless_address(argument: int) -> Iterator[bytes]:
    """Allow sending only to the peer of a connected socket."""
    yield _load(argument)
    yield _instruction(_IF_EQUAL, 0, skip_unless=3)
    yield _instruction(_LOAD, _ARGUMENTS_AT + argument * 8 + _WORD)
    yield _instruction(_IF_EQUAL, 0, skip_unless=1)
    yield _return(_ALLOW)


def _load(argument: int) -> bytes:
    return _instruction(_LOAD, _ARGUMENTS_AT + argument * 8)


def _return(action: int) -> bytes:
    return _instruction(_RETURN, action)


def _refuse(error: int) -> bytes:
    return _return(_REFUSE | error)


def _instruction(code: int, value: int, *, skip_if: int = 0, skip_unless: int = 0) -> bytes:
    return struct.pack("HBBI", code, skip_if, skip_unless, value)
