"""A notes folder in a Git repository: branches are switched, merged and reset while kb keeps the notes."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from kb.notes_folder import incoming, outgoing
from tests.support.notes_folder import KeptFolder

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

NAMES = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
FRONT = [
    "",
    "---\ntags: [kiln, {branch}]\nstatus: open # {branch}\n---\n",
    '+++\ntitle = "Made in {branch}"\ndate = 2026-03-14\n+++\n',
    '{{\n  "tags": ["{branch}"]\n}}\n',
    "---\r\ntitle: '{branch}'\r\n---\r\n",
]


class Repository:
    def __init__(self, root):
        self.root = root
        self("init", "-q", "-b", "main")

    def __call__(self, *arguments):
        environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull} | dict.fromkeys(
            NAMES, "a@example.org"
        )
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout

    def commit(self, message):
        self("add", "-A")
        self("commit", "-q", "-m", message)


@pytest.fixture
def kept(monkeypatch, make_store, embedder, tmp_path):
    monkeypatch.setattr(incoming, "DELETE_SECONDS", 0.0)
    monkeypatch.setattr(outgoing, "QUIET_SECONDS", 0.0)
    (tmp_path / "data" / "staging").mkdir(parents=True)
    (tmp_path / "notes").mkdir()
    with make_store() as store:
        yield KeptFolder(store, embedder, tmp_path / "notes", tmp_path / "data")


@pytest.fixture
def repository(kept):
    return Repository(kept.root)


def write(kept, branch, number):
    front = FRONT[number % len(FRONT)].format(branch=branch)
    kept.write(f"{'letters/' if number % 3 else ''}{number}.md", f"{front}Letter {number} of #{branch}.\n")


@pytest.mark.parametrize(("files", "switches"), [(5, 4), pytest.param(30, 10, marks=pytest.mark.slow)])
def test_two_branches_are_switched_for_ever_and_each_file_keeps_its_note(kept, repository, files, switches):
    for branch in ("main", "draft"):
        if branch == "draft":
            repository("checkout", "-q", "-b", branch)
        for number in range(files):
            write(kept, branch, number)
        repository.commit(branch)
    repository("checkout", "-q", "main")
    status = kept.settle()
    assert (status.problems, status.waiting) == ([], 0)
    before, tags = kept.notes(), {note: kept.note(note).tags for note in kept.notes()}
    assert len(before) == files
    for _ in range(switches // 2):
        for branch in ("draft", "main"):
            repository("checkout", "-q", branch)
            assert kept.settle().problems == []
            assert repository("status", "--porcelain") == ""
            assert all(f"of #{branch}." in text for text in kept.notes().values())
    assert kept.notes() == before
    assert {note: kept.note(note).tags for note in before} == tags
    assert kept.binned() == set()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("A letter.\n", "---\ntitle: To Ada\ntags: [urgent]\n---\nA letter.\n"),
        ("---\ntitle: A letter.\n---\nDear\n", "---\ntags: [urgent]\ntitle: To Ada\n---\nDear\n"),
    ],
    ids=["in the fields of kb", "in a field of the text"],
)
def test_a_branch_with_the_tags_and_title_of_an_agent_is_switched_as_any_other(kept, repository, text, named):
    kept.write("letter.md", text)
    kept.settle()
    repository.commit("main")
    [note] = kept.notes()
    repository("checkout", "-q", "-b", "draft")
    kept.edit(note, title="To Ada", tags_add=["urgent"])
    kept.settle()
    assert kept.file(note).read_text() == named
    repository.commit("draft")
    for _ in range(3):
        for branch, title, tags in (("main", "A letter.", ()), ("draft", "To Ada", ("urgent",))):
            repository("checkout", "-q", branch)
            kept.settle()
            assert repository("status", "--porcelain") == ""
            assert (kept.note(note).title, kept.note(note).tags) == (title, tags)


def test_files_that_a_branch_lacks_come_back_as_the_same_notes(kept, repository):
    for number in range(8):
        write(kept, "main", number)
    kept.settle()
    repository.commit("main")
    notes = kept.notes()
    kept.edit(min(notes), tags_add=["mine"])
    kept.settle()
    repository.commit("tags")
    repository("checkout", "-q", "-b", "small")
    for number in (0, 4):
        (kept.root / f"{'letters/' if number % 3 else ''}{number}.md").unlink()
    repository.commit("small")
    for _ in range(3):
        kept.settle()
        assert len(kept.notes()) == 6
        repository("checkout", "-q", "main")
        kept.settle()
        assert kept.notes().keys() == notes.keys()
        assert "mine" in kept.note(min(notes)).tags
        assert repository("status", "--porcelain") == ""
        repository("checkout", "-q", "small")


def test_a_file_with_tags_of_its_own_and_of_kb_comes_back_as_it_was(kept, repository):
    kept.add("Another note")
    note = kept.add("---\nstatus: open\ntags: [kiln]\n---\nFour hundred bricks\n", "Kiln.md", tags=["new"])
    kept.settle()
    assert kept.file(note).read_text().startswith("---\nkb_tags: [new]\nstatus: open\ntags: [kiln]\n---\n")
    repository.commit("main")
    kept.edit(note, "---\nstatus: open\n---\nFour hundred bricks\n")  # now the text has no tags of its own
    kept.settle()
    kept.file(note).unlink()
    kept.settle()
    assert kept.binned() == {note}
    repository("checkout", "-q", "--", ".")
    kept.settle()
    assert repository("status", "--porcelain") == ""
    assert (kept.note(note).tags, "tags: [kiln]" in kept.text(note)) == (("kiln", "new"), True)


def test_files_that_branches_name_otherwise_keep_their_notes(kept, repository):
    for number in range(6):
        write(kept, "main", number)
    kept.settle()
    repository.commit("main")
    notes = kept.notes()
    repository("checkout", "-q", "-b", "moved")
    repository("mv", "letters", "post")
    repository("mv", "0.md", "Zero.md")
    repository.commit("moved")
    for branch in ("main", "moved", "main"):
        kept.settle()
        assert kept.notes() == notes
        assert repository("status", "--porcelain") == ""
        repository("checkout", "-q", branch)
    kept.settle()
    kept.write("0.md", "another text in place of the first\n")
    kept.settle()
    repository("checkout", "-q", "--", ".")
    kept.settle()
    assert kept.notes() == notes
