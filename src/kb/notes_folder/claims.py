"""Which note a file belongs to: files are edited, renamed, copied and exchanged while kb looks elsewhere."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kb.notes_folder.file_text import Claim
from kb.store.rows import NoteFile


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
        is_note: returns whether a claim names a note of this database.
        at_path: returns the note with this `source_path`.
    """

    rows: Iterable[NoteFile]
    is_note: Callable[[Claim], bool]
    at_path: Callable[[str], int | None]
    owners: dict[str, int] = field(default_factory=dict)
    """The note of each file."""
    owned: set[int] = field(default_factory=set)

    def keep(self, paths: Iterable[str]) -> None:
        """Let files that have not changed keep their notes."""
        by_path = {row.path: row.document_id for row in self.rows}
        self.owners |= {path: by_path[path] for path in paths if path in by_path}
        self.owned |= set(self.owners.values())

    def assign(self, sightings: list[Sighting]) -> None:
        """Assign changed files: each note has one file, and each file at most one note."""
        by_path = {row.path: row for row in self.rows}
        digests = {row.document_id: row.digest for row in self.rows}
        for sighting in sightings:
            row = by_path.get(sighting.path)
            if row and (_names(sighting, row.document_id) or sighting.digest == row.digest):
                self._own(sighting, row.document_id)
        for sighting in sorted(sightings, key=lambda each: not _is_same(each, digests)):
            if sighting.claim and self.is_note(sighting.claim):
                self._own(sighting, sighting.claim.document_id)
        for sighting in sightings:
            if row := by_path.get(sighting.path):
                self._own(sighting, row.document_id)
        self._find_by_content(sightings)
        for sighting in sightings:
            self._own(sighting, self.at_path(sighting.path))

    def _find_by_content(self, sightings: list[Sighting]) -> None:
        """Assign files with the content of a missing file: they were renamed before kb wrote its fields to them."""
        missing: Mapping[str, int] = {
            row.digest: row.document_id for row in self.rows if row.document_id not in self.owned
        }
        for sighting in sightings:
            self._own(sighting, missing.get(sighting.digest))

    def _own(self, sighting: Sighting, document_id: int | None) -> None:
        if document_id is None or sighting.path in self.owners or document_id in self.owned:
            return
        self.owners[sighting.path] = document_id
        self.owned.add(document_id)


def _names(sighting: Sighting, document_id: int) -> bool:
    return sighting.claim is not None and sighting.claim.document_id == document_id


def _is_same(sighting: Sighting, digests: Mapping[int, str]) -> bool:
    return sighting.claim is not None and digests.get(sighting.claim.document_id) == sighting.digest
