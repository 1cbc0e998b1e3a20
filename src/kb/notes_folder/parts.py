"""The parts of the engine that both directions of the notes folder use."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from kb import clock
from kb.access.restricted_store import restricted
from kb.api.fields import NOTE
from kb.api.rights import Caller
from kb.documents.originals import Originals
from kb.folders.disk_view import DiskView
from kb.ingest.vectors_at_once import NoteVectors
from kb.notes_folder.disk import Place
from kb.notes_folder.file_text import FileContent
from kb.store.protocol import Store, Transaction
from kb.store.rows import Document, NoteFile

FILE: Final = "file"
"""The author of changes that come from the folder, in histories and the audit log."""


@dataclass(frozen=True, slots=True)
class FolderParts:
    """The parts of the engine that the notes folder needs.

    Args:
        root: the folder.
        store: the database.
        originals: the original files.
        vectors: makes the vectors of new notes.
        most_characters: the maximum length of a note.
        checkpoint: is called regularly and may stop the work by raising an error.
        with_ids: whether kb writes the id of a note to its file.
        most_file_bytes: the maximum size of a file that is not a note.
        wake: notifies the worker of a new job.
    """

    root: Path
    store: Store
    originals: Originals
    vectors: NoteVectors
    most_characters: int
    checkpoint: Callable[[], None] = lambda: None
    with_ids: bool = False
    most_file_bytes: int = 100 << 20
    wake: Callable[[], None] = lambda: None
    found: dict[str, Place] = field(default_factory=dict)
    """The files of the last look: a folder may exist in two Unicode forms."""

    @property
    def audited(self) -> Store:
        """The database, with lines in the audit log for each change."""
        return restricted(self.store, Caller(FILE))

    @property
    def most_bytes(self) -> int:
        """The maximum size of a file."""
        return 4 * self.most_characters + (1 << 16)

    def place(self, path: str) -> Place:
        """Return the place of a file, as the disk spells it."""
        known, relative = self.found.get(path), PurePosixPath(path)
        if known and os.path.lexists(known.absolute):
            return known
        folder = DiskView(self.root).path_of(relative.parent).relative_to(self.root)  # a search for a new name is slow
        return Place(self.root, PurePosixPath(folder.as_posix()) / relative.name)

    @staticmethod
    def today() -> str:
        """Return the date in the names of conflict files."""
        return f"{clock.own.now():%Y-%m-%d}"


def text_of(tx: Transaction, document_id: int) -> str:
    """Return the text of a note."""
    return "".join(chunk.text for chunk in tx.documents.chunks(document_id))


def version_of(tx: Transaction, document_id: int) -> int:
    """Return the number of a document's newest version; 0 if it does not exist."""
    return next((version.number for version in tx.history.versions(document_id, limit=1)), 0)


def base_of(tx: Transaction, file: NoteFile | None) -> FileContent | None:
    """Return the content of a file when it was written or read last."""
    packed = tx.note_files.base(file.document_id) if file else None
    return FileContent.unpacked(packed) if packed else None


def note_of(tx: Transaction, document_id: int) -> Document | None:
    """Return a note, which may be in the bin."""
    document = tx.documents.get(document_id)
    if document is None and (binned := tx.history.binned(document_id)):
        document = binned.document
    return document if document and document.doc_type == NOTE else None
