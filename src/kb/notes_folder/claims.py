"""Which note a file belongs to: files are edited, renamed, copied and exchanged while kb looks elsewhere.

A file says nothing about its note, unless kb once wrote the id to it. kb knows it again by its path, by its content,
and by its inode, the number of the file in its file system. A system gives the inode of a removed file to a new one, so
an inode alone proves nothing.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Final

from kb.notes_folder.disk import inode_of
from kb.notes_folder.file_text import Claim
from kb.notes_folder.paths import folded
from kb.store.rows import NoteFile

WORD: Final = re.compile(r"\w+")

LIKE: Final = 0.5
NEARLY_SAME: Final = 0.7
"""The share of words above which a file with the inode, the name or the path of another one may be that file edited.

Without any of these, it must have nearly the same words.
"""

MOST_PAIRS: Final = 1_000
"""If more pairs of new and missing files would have to be compared, kb compares none."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A file that has changed, or is new: its path, state, digest and text, and the note that it names."""

    path: str
    state: str
    digest: str
    text: str
    claim: Claim | None


@dataclass
class Claims:
    """Assigns files to notes.

    Args:
        rows: the files that kb knows.
        is_note: returns whether a file names a note of this database that it may belong to.
        likeness: returns the share of the words that a file has in common with a note; see `nearness`.
        search: returns a note without a file that a file at this path, with this content, may belong to.
    """

    rows: Iterable[NoteFile]
    is_note: Callable[[Sighting], bool]
    likeness: Callable[[int, Sighting], float]
    search: Callable[[Sighting], int | None]
    owners: dict[str, int] = field(default_factory=dict)
    """The note of each file."""
    owned: set[int] = field(default_factory=set)

    @cached_property
    def by_path(self) -> Mapping[str, NoteFile]:
        return {row.path: row for row in self.rows}

    def keep(self, paths: Iterable[str]) -> None:
        """Let files that have not changed keep their notes."""
        known = self.by_path
        self.owners |= {path: known[path].document_id for path in paths if path in known}
        self.owned |= set(self.owners.values())

    def assign(self, sightings: list[Sighting]) -> None:
        """Assign changed files: each note has one file, and each file at most one note."""
        for sighting in sightings:
            row = self.by_path.get(sighting.path)
            if row and (sighting.digest == row.digest or _names(sighting, row)):
                self._own(sighting, row)
        self._follow_exchanges(sightings)
        self._follow_inodes(sightings)
        for sighting in sightings:
            if sighting.claim and self.is_note(sighting):
                self._take(sighting, sighting.claim.document_id)
        self._follow_replaced(sightings)
        for sighting in sightings:
            self._own(sighting, self.by_path.get(sighting.path))
        self._follow_missing(sightings)
        for sighting in sightings:
            if sighting.path not in self.owners:
                self._take(sighting, self.search(sighting))

    def _follow_exchanges(self, sightings: list[Sighting]) -> None:
        """Assign files whose contents have changed places among them, as when two files exchange their names."""
        present = {sighting.path: sighting for sighting in sightings if sighting.path not in self.owners}
        once = Counter(row.digest for row in self.rows)
        rows = {row.digest: row for row in self.rows if once[row.digest] == 1 and row.path in present}
        came_from = {path: rows[each.digest] for path, each in present.items() if each.digest in rows}
        for path in came_from:
            round_, at = [path], came_from[path].path
            while at in came_from and at not in round_:
                round_.append(at)
                at = came_from[at].path
            if at == path:
                self._own(present[path], came_from[path])

    def _follow_inodes(self, sightings: list[Sighting]) -> None:
        """Assign renamed files, unless a program saved the old file again: then its place has much the same text."""
        by_inode = {inode_of(row.state): row for row in self.rows if row.document_id not in self.owned}
        at, digests = {sighting.path: sighting for sighting in sightings}, {each.digest for each in sightings}
        for sighting in sightings:
            row = by_inode.get(inode_of(sighting.state))
            if row and sighting.digest != row.digest and row.digest in digests:  # another file has its very content
                continue
            if not row or row.path == sighting.path or (row.path in at and self._is_like(row, at[row.path])):
                continue
            replaced = self.by_path.get(sighting.path)
            is_other = replaced is None or not self._is_like(replaced, sighting)
            if sighting.digest == row.digest or (is_other and self._is_like(row, sighting)):
                self._own(sighting, row)

    def _follow_replaced(self, sightings: list[Sighting]) -> None:
        """Assign files with nearly the content of a note whose own place has no file, or one with other content.

        A file that was written again in its place stays its note, also beside a new file with the content of before.
        """
        lost = {row.path: row for row in self.rows if row.document_id not in self.owned}
        free = [sighting for sighting in sightings if sighting.path not in self.owners]
        changed = [each for each in free if each.path in lost]
        new = [each for each in free if each.path not in self.by_path]
        if not new and len(lost) < 2:  # no text can have come from elsewhere
            return
        replaced = {each.path: each for each in changed if not self._is_like(lost[each.path], each)}
        places = {each.path for each in changed}
        self._follow_likeness(list(replaced.values()), [row for path, row in lost.items() if path not in places])
        left = [each for each in replaced.values() if each.path not in self.owners]
        self._follow_likeness(left, [lost[path] for path in replaced if lost[path].document_id not in self.owned])
        moved = [lost[path] for path, each in replaced.items() if inode_of(each.state) != inode_of(lost[path].state)]
        self._follow_likeness(new, [row for row in moved if row.document_id not in self.owned])

    def _follow_missing(self, sightings: list[Sighting]) -> None:
        """Assign new files with the content of a missing one, its path in other case, or its inode or name and text."""
        missing = [row for row in self.rows if row.document_id not in self.owned]
        by_digest = {row.digest: row for row in missing if row.digest}
        new = [sighting for sighting in sightings if sighting.path not in self.owners]
        for sighting in new:
            self._own(sighting, by_digest.get(sighting.digest))
        by_inode = {inode_of(row.state): row for row in missing if row.state}
        by_folded = {folded(row.path): row for row in missing}
        by_name: dict[str, list[NoteFile]] = {}
        for row in missing:
            by_name.setdefault(_name(row.path), []).append(row)
        for sighting in new:
            likely = [by_inode.get(inode_of(sighting.state)), *by_name.get(_name(sighting.path), ())]
            alike = (row for row in likely if row and self._is_like(row, sighting))
            self._own(sighting, by_folded.get(folded(sighting.path)) or next(alike, None))
        self._follow_likeness(
            [sighting for sighting in new if sighting.path not in self.owners],
            [row for row in missing if row.document_id not in self.owned],
        )

    def _follow_likeness(self, new: list[Sighting], missing: list[NoteFile]) -> None:
        """Assign new files that have nearly the content of a missing one, the most alike first."""
        if len(new) * len(missing) > MOST_PAIRS:
            return
        pairs = [(self.likeness(row.document_id, sighting), sighting, row) for sighting in new for row in missing]
        for likeness, sighting, row in sorted(pairs, key=lambda pair: -pair[0]):
            if likeness > NEARLY_SAME:
                self._own(sighting, row)

    def _is_like(self, row: NoteFile, sighting: Sighting) -> bool:
        return self.likeness(row.document_id, sighting) > LIKE

    def _own(self, sighting: Sighting, row: NoteFile | None) -> None:
        self._take(sighting, row.document_id if row else None)

    def _take(self, sighting: Sighting, document_id: int | None) -> None:
        if document_id is None or sighting.path in self.owners or document_id in self.owned:
            return
        self.owners[sighting.path] = document_id
        self.owned.add(document_id)


def likeness(one: str, other: str) -> float:
    """Return the share of the words that two texts have in common, from 0 to 1."""
    words, others = Counter(WORD.findall(one)), Counter(WORD.findall(other))
    return 2 * (words & others).total() / (words.total() + others.total()) if words and others else float(one == other)


def nearness(before: str, now: str, *, is_same_inode: bool = False) -> float:
    """Return the likeness of a text and its possible edit; an edit that only adds words is nearer than another one.

    A file with the same inode that begins with the text is that file, however much it has grown. Other words are not
    enough: a new file can get the inode of one that was deleted.
    """
    share, lost = likeness(before, now), Counter(WORD.findall(before)) - Counter(WORD.findall(now))
    is_continued = is_same_inode and bool(before.strip()) and now.lstrip().startswith(before.strip())
    is_longer = not lost and (is_continued or share > LIKE)
    return (1 + share) / 2 if is_longer else share


def _name(path: str) -> str:
    return PurePosixPath(path).name.casefold()


def _names(sighting: Sighting, row: NoteFile) -> bool:
    return sighting.claim is not None and sighting.claim.document_id == row.document_id
