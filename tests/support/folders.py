"""A folder that people, programs and disks change, and a model of the accepted results of a sync."""

from __future__ import annotations

import shutil
import unicodedata
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

NAMES = ["a", "b#c", "ü 猫", "d.e", "é"]
FOLDERS = ["", "sub", "sub/deep", "mnt", "mnt/in", "café"]
LEFTOVERS = ["~$rep.docx", "x.tmp", "note.md~", "#note.md#", "Thumbs.db", "y.crdownload"]


def nfc(text):
    return unicodedata.normalize("NFC", text)


def hash_of(text):
    return sha256(text.encode()).hexdigest()


@dataclass
class Known:
    """What the engine had of a folder after a round: by path the document's id and what it holds; and its bin."""

    documents: dict
    bin: dict


@dataclass
class World:
    """The folder, and what is meant by each thing that happens to it.

    Args:
        root: the folder.
        chance: what decides.
    """

    root: Path
    chance: random.Random
    away: dict = field(default_factory=dict)
    """The texts on a missing disk, by path."""

    emptied: dict = field(default_factory=dict)
    """Likewise of a folder whose files went all at once and come back."""

    evicted: dict = field(default_factory=dict)
    deleted: set = field(default_factory=set)
    """The paths that a person deleted, and did not write again."""

    trash: dict = field(default_factory=dict)
    synced: set = field(default_factory=set)
    """The paths that had a document after the last round: of a single one nobody can tell how it went."""

    count: int = 0

    @property
    def is_mounted(self):
        return not (self.root / ".unmounted").exists()

    def files(self):
        """The texts in the folder, by their paths in the engine."""
        found = {}
        for path in self.root.rglob("*"):
            relative = path.relative_to(self.root).as_posix()
            if path.is_file() and not path.name.startswith(".") and path.name not in LEFTOVERS:
                found[nfc(relative)] = path.read_text()
        return found

    def paths(self):
        return sorted(path for path in self.root.rglob("*.md") if path.is_file() and not path.name.startswith("."))

    def text(self):
        self.count += 1
        words = ["tide", "lamp", "harbour", "keeper", "storm"]
        return f"# {self.chance.choice(words)} {self.count}\n\n{' '.join(self.chance.choices(words, k=6))}\n"

    def folder(self):
        usable = [each for each in FOLDERS if self.is_mounted or not each.startswith("mnt")]
        folder = self.root / self.chance.choice(usable)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def target(self):
        """A path without a file now or earlier that could return."""
        path = self.folder() / f"{self.chance.choice(NAMES)}{self.chance.randrange(40)}.md"
        relative = nfc(path.relative_to(self.root).as_posix())
        is_free = relative not in self.files() and relative not in self.held()
        return path if is_free and not (self.emptied and relative.startswith("café/")) else None

    def relative(self, path):
        return nfc(path.relative_to(self.root).as_posix())

    def step(self):
        """Make a random change."""
        acts = {
            self.write: 6, self.edit: 5, self.rename: 4, self.shift: 2, self.rename_and_edit: 1, self.delete: 3, self.delete_many: 1,
            self.copy: 1, self.respell: 2, self.evict: 2, self.fetch: 2, self.unmount: 1, self.mount: 2,
            self.empty: 1, self.refill: 2, self.save_as_word: 2, self.leave: 1, self.rename_folder: 1, self.bring_back: 1,
        }  # fmt: skip
        self.chance.choices(list(acts), acts.values())[0]()

    def some(self):
        paths = self.paths()
        return self.chance.choice(paths) if paths else None

    def write(self):
        if target := self.target():
            target.write_text(self.text())
            self.deleted.discard(self.relative(target))

    def edit(self):
        if path := self.some():
            path.write_text(self.text())

    def _move(self, path, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        self.deleted.add(self.relative(path))
        path.rename(target)
        self.deleted.discard(self.relative(target))

    def rename(self):
        if (path := self.some()) and (target := self.target()):
            self._move(path, target)

    def shift(self):
        """Rename a file to the name of another one, which gets a new name."""
        path, other = self.some(), self.some()
        if path and path != other and (target := self.target()):
            self._move(other, target)
            self._move(path, other)

    def rename_and_edit(self):
        if (path := self.some()) and (target := self.target()):
            self._move(path, target)
            target.write_text(self.text())

    def rename_folder(self):
        source, target = self.root / "sub", self.root / f"sub{self.chance.randrange(9)}"
        if source.is_dir() and not target.exists() and not any(each.startswith("sub/") for each in self.held()):
            for path in [each for each in self.paths() if each.is_relative_to(source)]:
                self._move(path, target / path.relative_to(source))
            shutil.rmtree(source)

    def delete(self):
        if path := self.some():
            self._delete(path)

    def _delete(self, path):
        self.trash[self.relative(path)] = path.read_text()
        self.deleted.add(self.relative(path))
        path.unlink()

    def delete_many(self):
        for path in self.chance.sample(self.paths(), min(len(self.paths()), self.chance.randrange(4, 9))):
            self._delete(path)

    def bring_back(self):
        """A person restores a file from the trash."""
        if self.trash:
            relative = self.chance.choice(sorted(self.trash))
            path = self.root / relative
            if relative not in self.files() and relative not in self.held() and path.parent.is_dir():
                path.write_text(self.trash.pop(relative))
                self.deleted.discard(relative)

    def copy(self):
        if (path := self.some()) and (target := self.target()):
            shutil.copy(path, target)
            self.deleted.discard(self.relative(target))

    def respell(self):
        """A file system writes a name in another way."""
        if path := self.some():
            form = "NFD" if path.name == nfc(path.name) else "NFC"
            path.rename(path.with_name(unicodedata.normalize(form, path.name)))

    def evict(self):
        if path := self.some():
            self.evicted[self.relative(path)] = path.read_text()
            path.with_name(f".{path.name}.icloud").write_bytes(b"bplist00")
            path.unlink()

    def fetch(self):
        if placeholders := sorted(self.root.rglob(".*.icloud")):
            placeholder = self.chance.choice(placeholders)
            original = placeholder.with_name(placeholder.name[1:].removesuffix(".icloud"))
            original.write_text(self.evicted.pop(self.relative(original)))
            placeholder.unlink()

    def unmount(self):
        if self.is_mounted:
            mounted = self.root / "mnt"
            kept = self.root.with_name(f"{self.root.name}-disk")
            mounted.mkdir(exist_ok=True)
            self.away = {path: text for path, text in self.files().items() if path.startswith("mnt/")}
            mounted.rename(kept)
            mounted.mkdir()
            (self.root / ".unmounted").touch()

    def mount(self):
        if not self.is_mounted:
            shutil.rmtree(self.root / "mnt")
            self.root.with_name(f"{self.root.name}-disk").rename(self.root / "mnt")
            (self.root / ".unmounted").unlink()
            self.away = {}

    def empty(self):
        """All files of a folder go at once, as when a sync program has lost its account."""
        folder = self.root / "café"
        here = [path for path in self.paths() if path.parent == folder]
        if (
            sum(self.relative(path) in self.synced for path in here) > 1
            and not self.emptied
            and not any(each.startswith("café/") for each in self.evicted)
        ):
            self.emptied = {self.relative(path): path.read_text() for path in here}
            shutil.rmtree(folder)
            folder.mkdir()

    def refill(self):
        for path, text in self.emptied.items():
            (self.root / path).write_text(text)
        self.emptied = {}

    def save_as_word(self):
        if path := self.some():
            old = path.with_name("~WRL0001.tmp")
            path.rename(old)
            path.write_text(self.text())
            old.unlink()

    def leave(self):
        (self.folder() / self.chance.choice(LEFTOVERS)).write_text("left")

    def mounts(self):
        """The system's list of devices."""
        return {Path("/"): "", **({self.root / "mnt": ""} if self.is_mounted else {})}

    def held(self):
        """What is elsewhere."""
        return {**self.away, **self.emptied, **self.evicted}


def expected(world, known):
    """Yield each path of the folder with the id that its document must have; a path of which nobody can tell is left out."""
    files, held = world.files(), world.held()
    gone = {path: text for path, (_, text) in known.documents.items() if path not in files and path not in held}
    new = {path: text for path, text in files.items() if path not in known.documents}
    changed = {
        path: text for path, text in files.items() if path in known.documents and known.documents[path][1] != text
    }
    how_often, gone_often = Counter(new.values()), Counter(gone.values())
    takes, taken = chains(gone, {**changed, **new}, known)
    for path, text in files.items():
        if path in taken:
            before = taken[path]
            if world.is_mounted or not takes[path].startswith("mnt/"):
                yield path, known.documents[before][0]
        elif path in known.documents:
            if path not in takes:
                yield path, known.documents[path][0]
        elif gone_often[text] == how_often[text] == 1:
            before = next(each for each in gone if gone[each] == text)
            if world.is_mounted or not before.startswith("mnt/"):  # else nobody can tell that it is not there any more
                yield path, known.documents[before][0]
        elif not gone_often[text] and (back := [id_ for id_, (where, _) in known.bin.items() if where == path]):
            yield path, max(back)


def chains(gone, takers, known):
    """Follow files that took names of others, from one that is gone to one that is new.

    Returns each path that is part of such a chain with its beginning, and with the path that its document had before;
    the latter only where one chain alone is possible.
    """
    by_text = defaultdict(list)
    for path, text in takers.items():
        by_text[text].append(path)
    begins, before, often = {}, {}, Counter(gone.values())
    for first, text in gone.items():
        at, chain, is_sure = first, [], often[text] == 1
        while at in known.documents and (paths := by_text[known.documents[at][1]]):
            is_sure = is_sure and len(paths) == 1 and often[known.documents[at][1]] == (at == first)
            if paths[0] in (each for each, _ in chain):
                break
            chain.append((paths[0], at))
            at = paths[0]
        is_whole = at not in known.documents and len(chain) > 1
        for path, former in chain if len(chain) > 1 or not is_sure else ():
            is_clear = is_sure and path not in begins
            begins[path] = first
            before.pop(path, None)
            if is_clear and is_whole:
                before[path] = former
    return begins, before
