"""A folder that the engine keeps: its place, its rules, and the parts of the engine that both directions use."""

import os
import shlex
from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from kb import clock
from kb.access.restricted_store import restricted
from kb.api.fields import NOTE
from kb.api.rights import Caller
from kb.documents.note_edit import NoteChange
from kb.documents.originals import Originals
from kb.documents.write_updated_note import update_note
from kb.folders.disk_view import DiskView
from kb.ingest.vectors_at_once import NoteVectors
from kb.notes_folder import disk
from kb.notes_folder.disk import FoundFile, Place, Scan
from kb.notes_folder.file_text import FileContent
from kb.store.protocol import NoteFiles, Store, Transaction
from kb.store.rows import Author, Document, NoteFile

FILE: Final = "file"
"""The author of changes that come from the folder, in histories and the audit log."""

UNWRITTEN: Final = 0
"""The version in the record of a file that kb is about to create."""


@dataclass(frozen=True, slots=True)
class FolderParts:
    """A folder, its rules, and the parts of the engine that it needs.

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
        prefix: the beginning of the paths of its documents; empty for the notes folder, which has all other notes.
        direction: `in` if kb only reads the folder, and `both` if Markdown files are notes that kb also writes.
        all_files: whether each file is a document, and not only those to which a note links.
        exclude: patterns of files that kb skips, besides those of ignore files; None if it reads no ignore files.
        tags: the tags that each new document gets, and that no file says.
        new_notes: the folder in it where notes without a path get one; None if they need none.
        new_since: the time from which on a note counts as new.
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
    prefix: str = ""
    direction: Literal["in", "both"] = "both"
    all_files: bool = False
    exclude: Sequence[str] | None = None
    tags: tuple[str, ...] = ()
    new_notes: str | None = None
    new_since: str = "1970-01-01T00:00:00Z"
    found: dict[str, FoundFile] = field(default_factory=dict)
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
        if known and os.path.lexists(known.place.absolute):
            return known.place
        folder = DiskView(self.root).path_of(relative.parent).relative_to(self.root)  # a search for a new name is slow
        return Place(self.root, PurePosixPath(folder.as_posix()) / relative.name)

    @property
    def name(self) -> str:
        """The folder, as kb calls it."""
        if not self.writes:
            return "the inbox"
        return self.prefix.rstrip("/") or "the notes folder"

    @property
    def remedy(self) -> str:
        """What to do if files are missing."""
        name = shlex.quote(self.prefix.rstrip("/")) if self.prefix else ""
        delete, restore = (f"'{' '.join(['kb', 'notes', action, name]).rstrip()}'" for action in ("delete", "restore"))
        return f"If you deleted these files, run {delete}; to write them again, {restore}."

    @property
    def writes(self) -> bool:
        """Whether kb also writes to the folder."""
        return self.direction == "both"

    def scan(self, known: Collection[str]) -> Scan:
        """Return the files in the folder; see `scan`."""
        return disk.scan(self.root, known, are_notes=self.writes, exclude=self.exclude)

    def files(self, tx: Transaction) -> NoteFiles:
        """Return the files of the folder that kb knows."""
        return tx.note_files(self.prefix)

    def local(self, document: Document) -> Document:
        """Return a document with its path in the folder, or without a path if it is elsewhere, and its own tags."""
        if not self.prefix:
            return document
        path = document.source_path or ""
        place = path.removeprefix(self.prefix) if path.startswith(self.prefix) else None
        return replace(document, source_path=place, tags=tuple(tag for tag in document.tags if tag not in self.tags))

    def document(self, tx: Transaction, document_id: int) -> Document | None:
        """Return a document with its path in the folder."""
        document = tx.documents.get(document_id)
        return self.local(document) if document else None

    def at_path(self, tx: Transaction, path: str) -> Document | None:
        """Return the document at a path in the folder."""
        document = tx.documents.at_path(self.prefix + path)
        return self.local(document) if document else None

    def move(self, tx: Transaction, document_id: int, path: str | None) -> None:
        """Give a document another path in the folder."""
        tx.documents.move(document_id, None if path is None else self.prefix + path)

    def is_here(self, tx: Transaction, document_id: int) -> bool:
        """Return whether a document exists and belongs to the folder."""
        document = tx.documents.get(document_id)
        return document is not None and (document.source_path or "").startswith(self.prefix)

    def base(self, tx: Transaction, file: NoteFile | None) -> FileContent | None:
        """Return the content of a file when it was written or read last."""
        packed = self.files(tx).base(file.document_id) if file else None
        return FileContent.unpacked(packed) if packed else None

    def title(self, path: str) -> str:
        """Return the title that a note has from the name of its file; empty in the notes folder, where it has none."""
        return PurePosixPath(path).stem if self.prefix else ""

    def retitle(self, note: Document, before: str, path: str, author: Author) -> bool:
        """Give a note that has its title from the name of its file the new name; return whether it had that title."""
        title = self.title(path)
        if not note.title_given or note.title != self.title(before) or note.title == title:
            return False
        change, why = NoteChange(title=title, inline_tags=True), replace(author, why="its file was renamed")
        update_note(self.audited, self.vectors, note.id, change, checkpoint=self.checkpoint, author=why)
        return True

    def left_out(self, tx: Transaction) -> Set[str]:
        """Return the paths of files that stay although their documents were deleted."""
        return {path.removeprefix(self.prefix) for path in tx.folders.left_out() if path.startswith(self.prefix)}

    @staticmethod
    def today() -> str:
        """Return the date in the names of conflict files: the day on this machine."""
        return f"{clock.own.now().astimezone():%Y-%m-%d}"


def text_of(tx: Transaction, document_id: int) -> str:
    """Return the text of a note."""
    return "".join(chunk.text for chunk in tx.documents.chunks(document_id))


def version_of(tx: Transaction, document_id: int) -> int:
    """Return the number of a document's newest version; 0 if it does not exist."""
    return next((version.number for version in tx.history.versions(document_id, limit=1)), 0)


def note_of(tx: Transaction, document_id: int) -> Document | None:
    """Return a note, which may be in the bin."""
    document = tx.documents.get(document_id)
    if document is None and (binned := tx.history.binned(document_id)):
        document = binned.document
    return document if document and document.doc_type == NOTE else None
