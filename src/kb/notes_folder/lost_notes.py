"""Notes without a file that a new file may belong to: its record was lost, or its note is in the bin."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Final

from kb.api.fields import NOTE
from kb.notes_folder.claims import LIKE, Sighting, likeness
from kb.notes_folder.file_text import BLOCK, fields_beside, parsed
from kb.notes_folder.parts import FILE, FolderParts, text_of
from kb.notes_folder.paths import NUMBER, folded, is_name_of, path_of
from kb.store.protocol import Transaction
from kb.store.rows import Binned, Document

MOST_BINNED: Final = 10_000

OWN_FIELDS: Final = [
    {"kb", "created", "updated", *names, *block}
    for names in (("title", "tags"), ("title", "kb_tags"), ("title",), ("tags",), ("kb_tags",))
    for block in ((BLOCK,), ())
]
"""The fields that kb may have written to a file before it could record that."""


@dataclass
class LostNotes:
    """The notes that have no file.

    Args:
        parts: the folder.
        tx: the transaction that reads them.
        filed: the notes whose files are in the folder.
    """

    parts: FolderParts
    tx: Transaction
    filed: Collection[int]

    def search(self, sighting: Sighting) -> int | None:
        """Return the note of a file: the one at its path, or with its text, or with its name and much of its text."""
        note = self.parts.at_path(self.tx, sighting.path)
        if note:
            return note.id if note.doc_type == NOTE else None
        digest = _hash(sighting.text)
        texts = (parsed(sighting.text, own).text for own in OWN_FIELDS)
        if note_id := next(filter(None, map(self._unfiled_by_hash.get, (digest, *map(_hash, texts)))), None):
            return note_id
        names = {folded(sighting.path), NUMBER.sub("", folded(sighting.path))}
        named = [id_ for name in names for id_ in self._unfiled_by_path.get(name, ())]
        alike = (id_ for id_ in named if _may_be(text_of(self.tx, id_), sighting))
        return next(alike, None) or self._in_bin(sighting, digest)

    def _in_bin(self, sighting: Sighting, digest: str) -> int | None:
        """Return the note in the bin of a file that is back: with the text of a deleted file, or at its old place."""
        for binned in self._binned:
            note = self.parts.local(binned.document)
            is_same = note.content_hash == digest
            if (is_same and binned.author.by == FILE) or (
                is_name_of(note, sighting.path) and (is_same or _may_be(self._text_in_bin(binned), sighting))
            ):
                return note.id
        return None

    def _text_in_bin(self, binned: Binned) -> str:
        versions = self.tx.history.versions(binned.document.id, limit=1)
        return "".join(chunk.text for version in versions for chunk in self.tx.history.chunks(version))

    @cached_property
    def _binned(self) -> list[Binned]:
        binned = self.tx.history.bin(limit=MOST_BINNED)
        notes = (each for each in binned if each.document.doc_type == NOTE)
        return [each for each in notes if (each.document.source_path or "").startswith(self.parts.prefix)]

    @cached_property
    def _unfiled(self) -> list[Document]:
        return list(self._without_file())

    def _without_file(self) -> Iterator[Document]:
        for document_id, _ in self.parts.files(self.tx).unwritten():
            if document_id not in self.filed and (note := self.parts.document(self.tx, document_id)):
                yield note

    @cached_property
    def _unfiled_by_hash(self) -> dict[str, int]:
        return {note.content_hash: note.id for note in reversed(self._unfiled)}

    @cached_property
    def _unfiled_by_path(self) -> dict[str, list[int]]:
        by_path: dict[str, list[int]] = {}
        for note in self._unfiled:
            by_path.setdefault(folded(path_of(note)), []).append(note.id)
        return by_path


def _may_be(text: str, sighting: Sighting) -> bool:
    """Return whether a file with the fields of kb may be the one of a note."""
    return likeness(text, parsed(sighting.text, fields_beside(text)).text) > LIKE


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
