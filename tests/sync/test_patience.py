"""Files and folders that give no answer, as on a server that is away: a round goes on without them."""

from __future__ import annotations

import builtins
import errno
import io
import os
import time
from pathlib import PurePosixPath

import pytest

from kb.folders import timed_reads
from kb.folders.disk_view import DiskView
from kb.folders.timed_reads import TimedReader
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.file_selection import select_files
from kb_cli.sync.upload import file_size, is_empty

BLOCKED = 0.2


@pytest.fixture
def blocked(tmp_path, monkeypatch):
    """`blocked("a/b")` has the system give no answer for what is at that path."""
    paths = set()
    monkeypatch.setattr(timed_reads, "BLOCKED_SECONDS", BLOCKED)

    def wrap(module, name):
        real = getattr(module, name)

        def call(path, *arguments, **options):
            if str(path) in paths:
                time.sleep(3)
            return real(path, *arguments, **options)

        monkeypatch.setattr(module, name, call)

    wrap(os, "scandir")
    wrap(os, "open")
    wrap(os, "stat")
    wrap(builtins, "open")
    wrap(io, "open")
    for folder in ("quiet", "loud"):
        (tmp_path / folder).mkdir()
        for number in range(4):
            (tmp_path / folder / f"{number}.md").write_text("x" * 150)
    yield lambda place: paths.add(str(tmp_path / place))
    timed_reads.forget_silent()


def names(paths):
    return [f"{path.parent.name}/{path.name}" for path in paths]


def test_a_folder_that_gives_no_answer_is_unreadable_and_the_others_are_walked(tmp_path, blocked):
    blocked("quiet")
    selection = select_files([str(tmp_path)])
    assert names(selection.files) == [f"loud/{number}.md" for number in range(4)]
    assert selection.unreadable == [tmp_path / "quiet"]
    assert DiskView(tmp_path).has_file(PurePosixPath("quiet/gone.md")), "nobody can know"


def test_a_file_that_gives_no_answer_costs_its_folder_one_wait(tmp_path, blocked):
    blocked("quiet/0.md")
    started = time.monotonic()
    selection = select_files([str(tmp_path)])
    assert len(selection.files) == 8
    digests = DigestCache()
    for path in selection.files:
        if path.parent.name == "quiet":
            with pytest.raises(OSError, match="another file in its folder did not respond"):
                digests.digest(str(path))
            assert file_size(path) == 0
            with pytest.raises(OSError, match="another file in its folder did not respond"):
                is_empty(str(path))
        else:
            assert len(digests.digest(str(path))) == 64
    assert time.monotonic() - started < 2.5
    assert len(select_files([str(tmp_path / "loud")]).files) == 4
    assert len(digests.digest(str(tmp_path / "quiet" / "1.md"))) == 64, "a new round asks again"


def test_rules_that_give_no_answer_leave_their_folder_out_as_a_whole(tmp_path, blocked):
    (tmp_path / "quiet" / ".gitignore").write_text("0.md\n")
    blocked("quiet/.gitignore")
    selection = select_files([str(tmp_path)])
    assert (selection.unreadable, len(selection.files)) == ([tmp_path / "quiet"], 4)


def test_a_server_that_says_that_it_timed_out_has_answered():
    def refuse():
        raise OSError(errno.ETIMEDOUT, "Connection timed out")

    reader = TimedReader()
    with pytest.raises(OSError, match="Connection timed out"):
        reader.call(refuse)
    assert not reader.is_stuck
    reader.end()
