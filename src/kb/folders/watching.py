"""Watch a folder for changes: with notifications of the system, or by polling all of it."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Final

from kb.folders.disk_view import mounts_around
from kb.folders.own_data import is_in_own_data, is_own_data
from kb.folders.timed_reads import ask_folder

TICK_MILLISECONDS: Final = 500
"""Interval of the check for changes."""

POLL_SECONDS: Final = 5.0
"""Interval of polling, if the system sends no notifications."""

AGAIN_SECONDS: Final = 3600.0
"""After this time, kb asks the system for notifications again."""

INOTIFY: Final = Path("/proc/sys/fs/inotify")
IN_CREATE: Final = 0x100
LIMITS: Final = {errno.ENOSPC: "max_user_watches", errno.EMFILE: "max_user_instances"}
"""The exhausted limit for each error number."""

State = frozenset[tuple[str, int, int, int]]


async def watch(folder: Path, say: Callable[[str], None]) -> AsyncGenerator[bool, None]:
    """Yield at every tick whether something has changed, until the folder cannot be watched any more.

    After a disk was connected or removed, or another folder took the place, the folder must be watched again. `say`
    gets messages about limits of the system.
    """
    if not is_short(folder):
        place, looked = _place(folder), time.monotonic()
        async with aclosing(_watch(folder, say)) as ticks:
            async for is_changed in ticks:
                yield is_changed
                if time.monotonic() - looked > POLL_SECONDS:
                    looked = time.monotonic()
                    if _place(folder) != place:
                        yield True
                        return
    if is_short(folder):
        async with aclosing(poll(folder)) as looks:
            async for is_changed in looks:
                yield is_changed


def _place(folder: Path) -> tuple[object, ...]:
    """Return what changes if other files appear at a path: the system goes on watching a folder that was moved away."""
    try:
        status = ask_folder(folder, Path.stat)
    except OSError:
        return (mounts_around(folder),)
    return mounts_around(folder), status.st_dev, status.st_ino


async def _watch(folder: Path, say: Callable[[str], None]) -> AsyncGenerator[bool, None]:
    """Watch with notifications of the system, and record a shortage of watches."""
    from watchfiles import Change, DefaultFilter, awatch

    usual = DefaultFilter()

    def is_relevant(change: Change, path: str) -> bool:
        return usual(change, path) and not is_in_own_data(Path(path), folder)

    ticks = awatch(
        folder,
        watch_filter=is_relevant,
        yield_on_timeout=True,
        rust_timeout=TICK_MILLISECONDS,
        ignore_permission_denied=True,
    )
    async with aclosing(ticks):
        try:
            async for changes in ticks:
                if shortage(folder) == errno.ENOSPC:  # the system does not say which folders it cannot watch
                    note_shortage(folder, errno.ENOSPC, say)
                    return
                yield bool(changes)
        # The next round reports that the folder does not exist.
        except* FileNotFoundError:
            pass
        # A file whose name is not UTF-8 changed, or the system stopped watching.
        except* (RuntimeError, OSError) as errors:
            if (reason := shortage(folder)) is not None:
                note_shortage(folder, reason, say)
            else:
                say(f"starting to watch the folder again: {errors.exceptions[0]}")


async def poll(folder: Path) -> AsyncGenerator[bool, None]:
    """Poll all of the folder, until the system may be able to send notifications again."""
    before: State | None = None
    while is_short(folder) and await asyncio.to_thread(folder.is_dir):
        now = await asyncio.to_thread(folder_state, folder)
        yield now != before
        before = now
        await asyncio.sleep(POLL_SECONDS)


_short: dict[Path, tuple[float, list[int]]] = {}
"""When the watches ran out for a folder, and the limits at that time. Giving up frees the watches, so that their number
would look sufficient again.
"""

_said: set[str] = set()


def note_shortage(folder: Path, reason: int, say: Callable[[str], None]) -> None:
    """Record that the system has no watches left for a folder, and say so once."""
    _short[folder] = time.monotonic(), limits()
    if (line := explain(reason)) not in _said:
        _said.add(line)
        say(line)


def is_short(folder: Path) -> bool:
    """Return whether the watches ran out for a folder a while ago, and the limits have not been raised since."""
    if folder not in _short:
        return False
    since, before = _short[folder]
    return time.monotonic() - since < AGAIN_SECONDS and limits() == before


def limits() -> list[int]:
    """Return the limits that may be exhausted; 0 for an unknown one."""
    return [system_limit(name) for name in LIMITS.values()]


def system_limit(name: str) -> int:
    """Return a limit of the system; 0 if unknown."""
    try:
        return int((INOTIFY / name).read_text())
    except (OSError, ValueError):
        return 0


def folder_state(folder: Path) -> State:
    """Return a state that differs after any change in the folder."""
    states: set[tuple[str, int, int, int]] = set()
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as scan:
                entries = list(scan)
        except OSError:
            continue
        if is_own_data({entry.name for entry in entries}):
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
                continue
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                states.add((entry.path, status.st_mtime_ns, status.st_size, status.st_ino))
    return frozenset(states)


def shortage(folder: Path) -> int | None:
    """Return why the system cannot watch more folders, as an error number; None if it can or need not."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(os.O_CLOEXEC)
    if descriptor < 0:
        return ctypes.get_errno() if ctypes.get_errno() in LIMITS else None
    try:
        watched = libc.inotify_add_watch(descriptor, os.fsencode(folder), IN_CREATE)
        return errno.ENOSPC if watched < 0 and ctypes.get_errno() == errno.ENOSPC else None
    finally:
        os.close(descriptor)


def explain(reason: int) -> str:
    """Return a message with the exhausted limit, the way to raise it, and the effect until then."""
    limit = LIMITS[reason]
    now = system_limit(limit)
    more = max(2 * now, 524_288 if reason == errno.ENOSPC else 1024)
    what = "folders" if reason == errno.ENOSPC else "programs that watch folders"
    return (
        f"the system cannot watch more {what} (fs.inotify.{limit} is {now}), so kb looks for changes every"
        f" {POLL_SECONDS:g} seconds. To raise the limit: sudo sysctl fs.inotify.{limit}={more}"
    )
