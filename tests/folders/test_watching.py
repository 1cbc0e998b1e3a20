"""A system that can watch no more folders: a sync checks for changes at intervals and reports this once."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os

import pytest
import watchfiles

from kb.folders import watching
from kb.folders.watching import watch
from kb_cli.runtime.output import print_error


class Libc:
    """A system that has no watches left while somebody watches."""

    is_full = True

    def inotify_init1(self, _flags):
        return os.open(os.devnull, os.O_RDONLY)

    def inotify_add_watch(self, *_arguments):
        if self.is_full:
            ctypes.set_errno(errno.ENOSPC)
        return -1 if self.is_full else 1


@pytest.fixture
def full(monkeypatch, tmp_path):
    """A folder in a system without watches; `attempts` is how often it was asked to watch."""
    libc, attempts, real = Libc(), [], watchfiles.awatch
    (tmp_path / "limits").mkdir()
    for name in watching.LIMITS.values():
        (tmp_path / "limits" / name).write_text("8192\n")
    (tmp_path / "vault").mkdir()
    monkeypatch.setattr(watching, "INOTIFY", tmp_path / "limits")
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(watching, "TICK_MILLISECONDS", 20)
    monkeypatch.setattr(watching.ctypes, "CDLL", lambda *_, **__: libc)

    def count(*arguments, **options):
        attempts.append(1)
        return real(*arguments, **options)

    monkeypatch.setattr(watchfiles, "awatch", count)
    watching._said.clear()
    yield libc, tmp_path / "vault", attempts
    watching._short.clear()


async def look(folder, ticks):
    """Look until so many ticks have come."""
    seen = []
    async for is_changed in watch(folder, print_error):
        seen.append(is_changed)
        if len(seen) == ticks:
            (folder / "new.md").write_text("words")
        if len(seen) > ticks + 3:
            break
    return seen


def test_looking_goes_on_although_giving_up_freed_the_watches_and_it_is_said_once(full, capsys):
    libc, folder, attempts = full

    async def go():
        await asyncio.sleep(0)
        seen = await look(folder, 1)
        libc.is_full = False  # kb's own watches were those that had run out
        return seen + await look(folder, 5)

    seen = asyncio.run(go())
    assert len(attempts) == 1
    assert any(seen[-5:]), "what changes is seen"
    assert capsys.readouterr().err.count("the system cannot watch more folders") == 1


def test_a_limit_that_was_raised_is_tried_at_once(full):
    libc, folder, attempts = full
    asyncio.run(look(folder, 1))
    libc.is_full = False
    (watching.INOTIFY / "max_user_watches").write_text("524288\n")
    asyncio.run(look(folder, 1))
    assert len(attempts) == 2


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_folder_that_another_one_replaced_is_watched_anew(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(watching, "TICK_MILLISECONDS", 20)
    old, new, vault = (tmp_path / name for name in ("old", "new", "vault"))
    new.mkdir()
    if kind == "link":
        old.mkdir()
        vault.symlink_to(old)
    else:
        vault.mkdir()

    async def until_it_ends():
        ticks = [is_changed async for is_changed in watch(vault, print_error) if replace(is_changed)]
        return ticks[-1]

    def replace(_):
        if kind == "link" and vault.readlink() == old:
            (tmp_path / "aside").symlink_to(new)
            (tmp_path / "aside").replace(vault)
        elif kind == "folder" and not old.exists():
            vault.rename(old)
            new.rename(vault)
        return True

    assert asyncio.run(asyncio.wait_for(until_it_ends(), 30)) is True
