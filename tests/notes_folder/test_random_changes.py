"""Random changes of notes and files on both sides of a notes folder, with crashes: no text is lost, no note doubled."""

from __future__ import annotations

import errno
import os
import random
import re
import time
from contextlib import contextmanager
from unicodedata import normalize

import numpy as np
import pytest

from kb.api.errors import KbError
from kb.ingest import vectors_at_once
from kb.notes_folder import disk, incoming, outgoing
from kb.notes_folder.file_text import parsed, rendered
from kb.notes_folder.properties import has_other_form
from kb.open_folder import OpenFolder
from kb.store.rows import ChunkPosition, Content, NewChunk
from tests.support.notes_folder import KeptFolder, KeptVault

WORD = re.compile(r"w\d+")
STEPS = 200
MANY_STEPS = 3000
AT_REST = 0.4
"""The share of steps after which the folder comes to rest."""


class Killed(BaseException):
    """The engine was killed."""


@contextmanager
def killed_at(monkeypatch, number):
    """Kill the engine before or after the disk operation with this number; 0 kills nothing."""
    left = [number]
    with monkeypatch.context() as patched:
        for module, name in (
            (OpenFolder, "exchange"),
            (OpenFolder, "move_to_free"),
            (OpenFolder, "sync"),
            (OpenFolder, "create"),
        ):
            real = getattr(module, name)

            def tried(*arguments, real=real):
                left[0] -= 1
                if left[0] == 0:
                    raise Killed
                result = real(*arguments)
                left[0] -= 1
                if left[0] == 0:
                    raise Killed
                return result

            patched.setattr(module, name, tried)
        for name in ("put", "remove", "settle"):
            real = getattr(incoming_files(), name)

            def written(*arguments, real=real):
                left[0] -= 1
                if left[0] == 0:
                    raise Killed
                return real(*arguments)

            patched.setattr(incoming_files(), name, written)
        yield left


def incoming_files():
    from kb.store.sql.note_files import NoteFiles

    return NoteFiles


class World:
    """A kept folder, random changes of it, and the words that must be found again."""

    def __init__(self, kept, seed):
        self.kept, self.random, self.words, self.births = kept, random.Random(seed), 0, {}
        self.said, self.copied, self.past, self.prefix = set(), set(), [], kept.parts.prefix

    def word(self):
        self.words += 1
        self.said.add(f"w{self.words}")
        return f"w{self.words}"

    def some_note(self):
        notes = sorted(self.kept.notes())
        return self.random.choice(notes) if notes else None

    def some_file(self):
        files = sorted(path for path in self.kept.files() if " (conflict " not in path)
        return self.random.choice(files) if files else None

    def path(self):
        folder = self.random.choice(["", "a/", "a/b/", "Ä/", "c d/"])
        return f"{folder}{self.random.choice(['x', 'y', 'Z', 'é', 'long name', 'q.r'])}{self.random.randrange(9)}.md"

    def is_free(self, path):
        """Whether no file has this name, also in another Unicode form: kb takes one of two such files."""
        names = {normalize("NFC", other) for other in self.kept.files()}
        return normalize("NFC", path) not in names and not (self.kept.root / path).exists()

    def lines(self, text):
        """Return a text with a new line, or with a changed one; the words of a changed line are in the history."""
        lines = text.split("\n")
        at = self.random.randrange(len(lines))
        if self.random.random() < 0.5:
            return "\n".join([*lines[:at], f"{self.word()} {lines[at]}", *lines[at + 1 :]])
        return "\n".join([*lines[: at + 1], self.word(), *lines[at + 1 :]])

    # Changes of notes.

    def add_note(self):
        path = self.path() if self.random.random() < 0.5 or self.prefix else None
        if path and self.taken(path):
            return
        text = "\n".join(self.word() for _ in range(self.random.randrange(1, 9)))
        if self.random.random() < 0.3:
            text = f"---\nstatus: {self.word()}\n{self.random.choice(['', 'tags: [own]' + chr(10)])}---\n{text}"
        self.kept.add(text, path and self.prefix + path, tags=self.random.sample(["t1", "t2", "t 3"], 1))

    def taken(self, path):
        with self.kept.store.read() as tx:
            return tx.documents.at_path(self.prefix + path) is not None

    def edit_note(self):
        if note := self.some_note():
            self.kept.edit(note, self.lines(self.kept.text(note)))

    def tag_note(self):
        if note := self.some_note():
            self.kept.edit(note, tags_add=[f"t{self.random.randrange(5)}"], tags_remove=["t1"])

    def name_note(self):
        if note := self.some_note():
            self.kept.edit(note, title=f"Title {self.random.randrange(100)}")

    def move_note(self):
        path = self.path()
        if (note := self.some_note()) and not self.taken(path):
            self.kept.move(note, self.prefix + path)

    def delete_note(self):
        if note := self.some_note():
            self.kept.delete(note)

    def restore_note(self):
        if binned := sorted(self.kept.binned()):
            note = self.random.choice(binned)
            with self.kept.store.read() as tx:
                [last] = tx.history.versions(note, limit=1)
                words = set(WORD.findall("".join(chunk.text for chunk in tx.history.chunks(last))))
            if not words & set(WORD.findall(" ".join(self.kept.notes().values()))):  # its file may be a note again
                self.kept.restore(note)

    # Changes of files.

    def edit_file(self):
        if path := self.some_file():
            text = self.kept.files()[path].decode()
            head, mark, body = text.rpartition("\n---\n") if text.startswith("---\n") else ("", "", text)
            self.kept.write(path, f"{head}{mark}{self.lines(body)}")

    def strip_file(self):
        """Remove the fields of kb, as a converter does."""
        if path := self.some_file():
            text = self.kept.files()[path].decode()
            self.kept.write(path, re.sub(r"\A---\n(?:(?:title|tags): .*\n)+---\n", "", text))

    def tag_file(self):
        if path := self.some_file():
            text = self.kept.files()[path].decode()
            self.kept.write(path, re.sub(r"(?m)^tags: \[", "tags: [t9, ", text, count=1))

    def say_tag(self):
        """Write a tag in the text, in front matter or with a #; or take it away again."""
        if path := self.some_file():
            text = self.kept.files()[path].decode()
            if "#said" in text:
                text = text.replace(" #said", "")
            elif text.startswith("---\n") or self.random.random() < 0.5:
                text += f"\n{self.word()} #said"
            else:
                text = f"---\ntags:\n  - said\n---\n{text}"
            self.kept.write(path, text)

    def save_by_rename(self):
        if path := self.some_file():
            text = self.kept.files()[path].decode()
            self.kept.write(f"{path}.tmp", f"{text}\n{self.word()}").replace(self.kept.root / path)

    def rename_file(self):
        path, to = self.some_file(), self.path()
        if path and self.is_free(to):
            self.settle_new(path)
            if (self.kept.root / path).exists():  # kb may have moved it
                (self.kept.root / to).parent.mkdir(parents=True, exist_ok=True)
                (self.kept.root / path).rename(self.kept.root / to)

    def respell_file(self):
        if path := self.some_file():
            form = self.random.choice(["NFC", "NFD"])
            to = self.kept.root / normalize(form, path)
            to.parent.mkdir(parents=True, exist_ok=True)
            if not to.exists():
                (self.kept.root / path).rename(to)

    def exchange_files(self):
        self.settle_copies()
        one, other = self.some_file(), self.some_file()
        if one and one != other:
            aside = self.kept.root / "aside"
            (self.kept.root / one).rename(aside)
            (self.kept.root / other).rename(self.kept.root / one)
            aside.rename(self.kept.root / other)
        self.settle_copies()

    def settle_copies(self):
        """Let kb look: if a copy and its original are edited and exchanged in one moment, no edit has a right place."""
        if self.copied:
            self.kept.settle()

    def settle_new(self, path):
        """Let kb look at a new file in the place of an old one: after a rename, only its words would lead to its note."""
        with self.kept.store.read() as tx:
            known = {disk.inode_of(row.state) for row in self.kept.parts.files(tx).all()}
        if str((self.kept.root / path).stat().st_ino) not in known:
            self.kept.settle()

    def copy_file(self):
        path, to = self.some_file(), self.path()
        if path and self.is_free(to):
            content = self.kept.files()[path]
            self.copied |= set(WORD.findall(content.decode()))
            self.kept.write(to, content)
            if self.random.random() < 0.5:
                self.kept.write(to, f"{content.decode()}\n{self.word()}")

    def move_over(self):
        """Move a file over another one, which is lost like a deleted one."""
        one, other = self.some_file(), self.some_file()
        if one and one != other:
            self.forget_untaken(other)
            (self.kept.root / one).replace(self.kept.root / other)
            self.kept.settle()  # later, nothing would show whether the file was moved or written

    def save_anew(self):
        """Write the same content to a new file in its place, as Git and programs for backups do."""
        if path := self.some_file():
            content = self.kept.files()[path]
            (self.kept.root / path).unlink()
            self.kept.write(path, content)

    def rename_case(self):
        if path := self.some_file():
            folder, _, name = path.rpartition("/")
            to = self.kept.root / folder / name.swapcase()
            if not to.exists():
                (self.kept.root / path).rename(to)

    def commit(self):
        """Remember all files, as a branch of Git."""
        self.kept.settle()
        self.past = [*self.past[-2:], {path: text for path, text in self.kept.files().items() if " (conf" not in path}]

    def check_out(self):
        """Replace all files by those of another branch, as Git does; the words of this one are in the history."""
        if not self.past:
            return
        self.check()
        branch = self.random.choice(self.past)
        present = self.kept.files()
        hides_tags = any(map(has_other_form, self.kept.notes().values()))  # kb writes them as soon as it can
        respelled = {normalize("NFC", path) for path in branch}
        for path in [path for path in present if path not in branch and normalize("NFC", path) in respelled]:
            (self.kept.root / path).unlink()
        for path, content in branch.items():
            self.copied |= set(WORD.findall(content.decode()))
            if present.get(path) != content:
                (self.kept.root / path).unlink(missing_ok=True)
                self.kept.write(path, content)
        if self.random.random() < 0.5:
            for path in present.keys() - branch.keys():
                if " (conflict " not in path and (self.kept.root / path).exists():
                    self.forget_untaken(path)
                    (self.kept.root / path).unlink()
        self.check()
        after = self.kept.files()
        changed = {path: (text, after.get(path)) for path, text in branch.items() if after.get(path) != text}
        assert hides_tags or not changed, "kb changed a file of a branch"

    def mislead(self):
        """Put a link, a pipe or a folder where kb may write."""
        path = self.kept.root / self.path()
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            self.random.choice([lambda: path.symlink_to("/etc/passwd"), lambda: os.mkfifo(path), path.mkdir])()

    def delete_file(self):
        if path := self.some_file():
            self.forget_untaken(path)
            (self.kept.root / path).unlink()

    def forget_untaken(self, path):
        """Words that only a deleted file had were its owner's to delete."""
        self.said -= set(WORD.findall(self.kept.files()[path].decode())) - self.found(but=path)

    def new_file(self):
        path = self.path()
        if self.is_free(path):
            self.kept.write(path, "\n".join(self.word() for _ in range(3)))

    def edit_both(self):
        self.edit_note()
        self.edit_file()

    def change_clock(self):
        if path := self.some_file():
            at = self.random.choice([0, 2_000_000_000, 1_000_000])
            os.utime(self.kept.root / path, (at, at))

    def restart(self):
        self.kept.start()

    def crash(self):
        with pytest.MonkeyPatch.context() as patch, killed_at(patch, self.random.randrange(1, 12)):
            try:
                self.kept.folder.step()
                self.kept.folder.step()
            except Killed:
                pass
        self.kept.start()

    def fill_disk(self):
        """Let some writes find no space on the disk; later there is space again."""
        left, real = [self.random.randrange(3)], OpenFolder.create

        def create(*arguments):
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(OpenFolder, "create", create)
            patch.setattr(outgoing, "RETRY_SECONDS", 0.0)
            patch.setattr(incoming, "RETRY_SECONDS", 0.0)
            self.kept.folder.step()
            self.kept.folder.step()

    def unmount(self):
        away = self.kept.root.with_name("away")
        if not self.kept.root.exists():
            return
        before = self.kept.notes()
        self.kept.root.rename(away)
        if self.random.random() < 0.5:
            self.kept.root.mkdir()
        if self.random.random() < 0.5:
            self.kept.start()
        for _ in range(3):
            self.kept.folder.step()
        assert self.kept.notes() == before
        if self.kept.root.exists():
            assert not any(self.kept.root.iterdir())
            self.kept.root.rmdir()
        away.rename(self.kept.root)

    def lose_many(self):
        files = [path for path in sorted(self.kept.files()) if " (conflict " not in path]
        lost = self.random.sample(files, min(len(files), 8))
        for path in lost:
            self.forget_untaken(path)
            (self.kept.root / path).unlink()
        self.kept.settle()

    def found(self, but=None):
        """Return the words in notes, in their history, in the bin and in files."""
        texts = [content.decode() for path, content in self.kept.files().items() if path != but]
        with self.kept.store.read() as tx:
            for document_id in [*self.kept.notes(), *self.kept.binned()]:
                versions = tx.history.versions(document_id, limit=10_000)
                texts += ["".join(chunk.text for chunk in tx.history.chunks(version)) for version in versions]
        return set(WORD.findall("\n".join(texts)))

    def check(self):
        """Check that both sides are equal at rest, that nothing moves then, no word is lost and no note doubled."""
        status = self.kept.settle()
        if status.withheld:
            self.kept.folder.act(self.random.choice(["delete", "restore"]))
            status = self.kept.settle()
        assert (status.stopped, status.withheld, status.problems, status.waiting) == (None, [], [], 0)
        files = self.kept.files()
        notes = self.kept.notes()
        with self.kept.store.read() as tx:
            rows = {row.document_id: row for row in self.kept.parts.files(tx).all()}
            bases = {document_id: self.kept.parts.base(tx, row) for document_id, row in rows.items()}
        assert rows.keys() == notes.keys()
        named = {normalize("NFC", path): content for path, content in files.items()}
        assert sorted(row.path for row in rows.values()) == sorted(p for p in named if " (conflict " not in p)
        for document_id, text in notes.items():
            written = named[rows[document_id].path].decode()
            base, note = bases[document_id], self.kept.parts.local(self.kept.note(document_id))
            title = self.kept.parts.title(rows[document_id].path)
            assert parsed(written, base.own).text == base.text == text
            assert rendered(note, text, title, file=base, written=written)[0] == written
        inodes = {path: (self.kept.root / path).stat().st_ino for path in files}
        self.kept.start()
        self.kept.settle()
        assert (self.kept.files(), self.kept.notes()) == (files, notes)
        assert inodes == {path: (self.kept.root / path).stat().st_ino for path in files}
        lost = self.said - self.found()
        assert not lost
        self.check_births(notes)

    def check_births(self, notes):
        """Check that no word is in two notes: each was said once."""
        seen = {}
        for document_id, text in notes.items():
            for word in set(WORD.findall(text)) - self.copied:
                assert seen.setdefault(word, document_id) == document_id, f"{word} is in two notes"


OPERATIONS = [
    World.add_note, World.add_note, World.edit_note, World.edit_note, World.tag_note, World.name_note, World.move_note,
    World.delete_note, World.restore_note, World.edit_file, World.edit_file, World.strip_file, World.tag_file,
    World.save_by_rename, World.rename_file, World.respell_file, World.exchange_files, World.delete_file,
    World.new_file, World.new_file, World.edit_both, World.edit_both, World.change_clock, World.restart, World.crash,
    World.unmount, World.lose_many, World.say_tag, World.copy_file, World.move_over, World.save_anew,
    World.rename_case, World.commit, World.check_out, World.mislead, World.fill_disk,
]  # fmt: skip


def run(kept, seed, steps):
    world = World(kept, seed)
    kept.settle()
    done = []
    for _ in range(steps):
        operation = world.random.choice(OPERATIONS)
        done.append(operation.__name__)
        try:
            operation(world)
            if world.random.random() < AT_REST:
                world.check()
            elif world.random.random() < 0.3:
                kept.folder.step()
        except (AssertionError, KbError) as error:
            error.add_note(str(kept.folder.status()))
            error.add_note("\n".join(f"{path}: {content.decode()[:80]!r}" for path, content in kept.files().items()))
            error.add_note(f"seed {seed}, after {len(done)} steps: {', '.join(done[-16:])}")
            raise
    world.check()


@pytest.fixture
def kept(new_kept):
    return new_kept(KeptFolder)


@pytest.fixture
def new_kept(make_store, embedder, tmp_path, monkeypatch):
    monkeypatch.setattr(incoming, "DELETE_SECONDS", 0.0)
    monkeypatch.setattr(outgoing, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(vectors_at_once, "PATIENCE_SECONDS", 60.0)  # no worker would make the vectors later
    (tmp_path / "data" / "staging").mkdir(parents=True)
    with make_store() as store:
        yield lambda kind: kind(store, embedder, tmp_path / "notes", tmp_path / "data")


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_random_changes_on_both_sides_lose_no_text_and_double_no_note(kept, seed):
    run(kept, seed, STEPS // 2)


@pytest.mark.slow
def test_random_changes_on_both_sides_of_a_vault_lose_no_text_and_double_no_note(new_kept):
    run(new_kept(KeptVault), 3, STEPS // 2)


@pytest.mark.long
def test_3000_random_changes_on_both_sides_lose_no_text_and_double_no_note(kept):
    run(kept, 7, MANY_STEPS)


TEXT = "one\ntwo\nthree\nfour\nfive\n"
CHANGED = TEXT.replace("two", "changed")


def written(kept, note):
    kept.edit(note, CHANGED)


def moved(kept, note):
    kept.move(note, f"{kept.parts.prefix}b/y.md")


def deleted(kept, note):
    kept.delete(note)


def added(kept, note):
    kept.add("new", f"{kept.parts.prefix}new note.md" if kept.parts.prefix else None, tags=["t"])


def edited(kept, note):
    file = kept.file(note)
    file.write_text(file.read_text().replace("five", "edited"))


def edited_on_both_sides(kept, note):
    written(kept, note)
    edited(kept, note)


def named_on_both_sides(kept, note):
    kept.edit(note, title="Named in kb")
    kept.edit(note, TEXT.replace("one", "changed one"))
    edited(kept, note)


def in_conflict(kept, note):
    written(kept, note)
    file = kept.file(note)
    file.write_text(file.read_text().replace("two", "edited"))


def renamed(kept, note):
    kept.file(note).rename(kept.root / "z.md")


def new_file(kept, note):
    kept.write("new.md", "by hand")


def removed(kept, note):
    kept.file(note).unlink()


MORE = [moved, deleted, added, edited_on_both_sides, renamed, new_file, removed]


@pytest.mark.parametrize(
    "change",
    [
        written,
        edited,
        in_conflict,
        named_on_both_sides,
        *(pytest.param(change, marks=pytest.mark.slow) for change in MORE),
    ],
    ids=lambda change: change.__name__,
)
@pytest.mark.parametrize("kind", [KeptFolder, pytest.param(KeptVault, marks=pytest.mark.slow)])
def test_an_engine_killed_at_each_step_of_a_change_comes_to_the_same_end(new_kept, kind, change, monkeypatch):
    kept = new_kept(kind)
    note, ends = start_again(kept), set()
    for number in range(100):
        with killed_at(monkeypatch, number) as left:
            change(kept, note)
            try:
                for _ in range(4):
                    kept.folder.step()
            except Killed:
                pass
        kept.start()
        status = kept.settle()
        texts = sorted(text for text in kept.notes().values())
        bodies = sorted(content.decode() for content in kept.files().values())
        ends.add((tuple(texts), tuple(bodies)))
        assert (status.stopped, status.withheld, status.problems) == (None, [], [])
        assert not list(kept.root.rglob(".kb-part-*"))
        assert len(ends) == 1, f"killed at operation {number}"
        if number and left[0] > 0:
            break
        note = start_again(kept)


def test_a_new_file_that_is_renamed_after_a_kill_stays_one_note_and_one_file(kept, monkeypatch):
    kept.settle()
    kept.write("Boat.md", "Paint her.")
    with killed_at(monkeypatch, 1):  # the note is there, and not yet known as the one of the file
        kept.folder.step()
        with pytest.raises(Killed):
            kept.folder.step()
    (kept.root / "Boat.md").rename(kept.root / "boat.md")
    kept.start()
    kept.settle()
    assert (list(kept.notes().values()), kept.files()) == (["Paint her."], {"boat.md": b"Paint her."})


def start_again(kept):
    """Remove all notes and files, and return a new note with a file."""
    for document_id in kept.notes():
        kept.delete(document_id)
    kept.settle()
    for path in kept.files():
        (kept.root / path).unlink()
    kept.settle()
    prefix = kept.parts.prefix
    note, _ = kept.add(TEXT, f"{prefix}a/x.md"), kept.add("another", f"{prefix}another.md" if prefix else None)
    kept.settle()
    return note


@pytest.mark.long
def test_10000_notes_are_written_read_by_no_start_and_an_edit_is_found_within_2_seconds_of_work(kept, monkeypatch):
    number = 10_000
    vectors = np.random.default_rng(1).standard_normal((number, 384)).astype(np.float32)
    for start in range(0, number, 500):
        with kept.store.write() as tx:
            for each in range(start, start + 500):
                text = f"Note {each} of many.\n" * 20
                chunk = NewChunk(text, "", ChunkPosition(1, 20, 0, len(text)))
                tx.documents.add(
                    Content("note", f"Note {each}", f"hash {each}", [chunk], vectors[each : each + 1]), None, []
                )
    kept.settle()
    assert len(kept.files()) == number
    with monkeypatch.context() as patched:
        patched.setattr(disk, "read", None)
        kept.start()
        kept.settle()
    file = kept.file(5000)
    file.write_text(file.read_text().replace("of many", "of few", 1))
    began = time.process_time()
    for _ in range(2):
        kept.folder.step()
    assert time.process_time() - began < 2
    assert kept.text(5000).startswith("Note 4999 of few.")
