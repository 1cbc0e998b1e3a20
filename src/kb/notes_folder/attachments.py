"""Pictures and other files that notes show: they are documents of kb, and files of the notes folder.

A file that a note links to becomes a document. A file that somebody adds to a note in kb is written to the folder, at
its path. Files of other kinds stay as they are.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Final

from kb.api.errors import KbError
from kb.api.job_models import FileRequest
from kb.documents.delete import delete
from kb.documents.job_queue import submit_file
from kb.folders.deletions import Judge, Withheld
from kb.folders.disk_view import DiskView
from kb.folders.safe_names import safe_name
from kb.notes_folder import disk
from kb.notes_folder.disk import FoundFile
from kb.notes_folder.parts import FILE, FolderParts, version_of
from kb.store.rows import Author, Document, NoteFile

logger = logging.getLogger(__name__)

DIGEST: Final = "file "
"""The beginning of the digests of these files in the database."""

AGAIN_SECONDS: Final = 60.0
"""kb asks again after this time whether a note links to a file."""

DELETE_SECONDS: Final = 2.0
OTHER_FILE: Final = "Another file has its place in the folder. Rename or remove it."
REMEDY: Final = "If you deleted these files, run 'kb notes delete'; to write them again, 'kb notes restore'."


@dataclass
class Attachments:
    """Keeps attachments in step in both directions.

    Args:
        parts: the parts of the engine.
        now: a monotonic clock.
    """

    parts: FolderParts
    now: Callable[[], float] = time.monotonic
    problems: dict[str, str] = field(default_factory=dict)
    withheld: list[Withheld] = field(default_factory=list)
    _seen: dict[str, str] = field(default_factory=dict)
    """The state of each new or changed file at the last look."""
    _sent: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The state and the digest of each file that was queued."""
    _unlinked: dict[str, tuple[str, float]] = field(default_factory=dict)
    """The state of each file to which no note links, and when kb last asked."""
    _missing: dict[str, float] = field(default_factory=dict)

    def look(self, scan: disk.Scan, mounts: tuple[str, str], author: Author, *, is_sure: bool, is_new: bool) -> bool:
        """Take new, changed and deleted files; return whether nothing is left to do.

        With `is_new`, a note has changed, which may link to a file.
        """
        with self.parts.store.read() as tx:
            rows = {row.path: row for row in tx.note_files.attachments()}
        self.parts.found.update({path: file.place for path, file in scan.others.items()})
        states = {path: row.state for path, row in rows.items()}
        changed = {path: file for path, file in scan.others.items() if states.get(path) != file.state}
        before, self._seen = self._seen, {path: file.state for path, file in changed.items()}
        self.problems, is_settled = {}, True
        for path, file in changed.items():
            if path not in rows and not self._is_linked(path, file.state, is_new=is_new):
                continue
            if before.get(path) != file.state:
                is_settled = False
                continue
            try:
                is_settled = self._take(path, file, rows, scan, author) and is_settled
            except (disk.Changed, FileNotFoundError):
                is_settled = False
            except (KbError, OSError, ValueError) as error:
                self.problems[path] = error.detail if isinstance(error, KbError) else str(error)
        return self._miss(rows, scan, mounts, author, is_sure=is_sure) and is_settled

    def _is_linked(self, path: str, state: str, *, is_new: bool) -> bool:
        known, asked = self._unlinked.get(path, ("", 0.0))
        if known == state and not is_new and self.now() - asked < AGAIN_SECONDS:
            return False
        with self.parts.store.read() as tx:
            if tx.links.is_linked(path):
                self._unlinked.pop(path, None)
                return True
        self._unlinked[path] = state, self.now()
        return False

    def _take(self, path: str, file: FoundFile, rows: Mapping[str, NoteFile], scan: disk.Scan, author: Author) -> bool:
        """Record a file whose document exists, or queue it; return whether its document exists, or never will."""
        state, digest = self._sent.get(path, ("", ""))
        if state != file.state:
            digest = disk.file_digest_at(file.place, self.parts.most_file_bytes)
        row = rows.get(path)
        with self.parts.store.read() as tx:
            document = tx.documents.get(row.document_id) if row else tx.documents.at_path(path)
        if row and row.digest == DIGEST + digest:
            self._put(replace(row, state=file.state))
            return True
        if document and document.content_hash == digest:
            self._record(document, path, file.state)
            return True
        if state == file.state:
            return True  # its job is queued, or has failed
        gone = (each for each in rows.values() if each.digest == DIGEST + digest and each.path not in scan.others)
        if moved := next(gone, None):
            self._move(moved, path, file.state, author)
            return True
        request = FileRequest(source_path=path)
        with file.place.folder() as folder, folder.open_file(file.place.name) as content:
            key = f"{FILE}\n{path}\n{file.state}\n{digest}"
            submit_file(
                self.parts.audited, self.parts.originals.blobs, content, PurePosixPath(path).name, request, key, author
            )
        self._sent[path] = file.state, digest
        self.parts.wake()
        return False

    def _move(self, row: NoteFile, path: str, state: str, author: Author) -> None:
        with self.parts.audited.write() as tx:
            if tx.documents.get(row.document_id) and tx.documents.at_path(path) is None:
                tx.history.keep(row.document_id, replace(author, why="its file was renamed"))
                tx.documents.move(row.document_id, path)
        with self.parts.store.read() as tx:
            version = version_of(tx, row.document_id)
        self._put(replace(row, path=path, source_path=path, state=state, version=version))

    def _miss(
        self, rows: Mapping[str, NoteFile], scan: disk.Scan, mounts: tuple[str, str], author: Author, *, is_sure: bool
    ) -> bool:
        """Delete the documents of missing files, unless that looks like an accident; return whether all is done."""
        self.withheld = []
        with self.parts.store.read() as tx:
            present = {row.path for row in tx.note_files.attachments()} - scan.others.keys()
        self._missing = {path: self._missing.get(path, self.now()) for path in present & rows.keys()}
        if not self._missing:
            return True
        if any(self.now() - since < DELETE_SECONDS for since in self._missing.values()):
            return False
        judge = Judge(DiskView(self.parts.root), mounts, scan.unreadable, len(rows), is_sure, REMEDY)
        for path in judge.allow(self._missing):
            row = rows[path]
            with self.parts.store.read() as tx:
                is_same = tx.documents.get(row.document_id) and version_of(tx, row.document_id) == row.version
            if is_same:
                why = replace(author, why="its file was deleted")
                delete(self.parts.audited, self.parts.originals, row.document_id, why)
                with self.parts.store.write() as tx:
                    tx.note_files.remove(row.document_id)
            else:
                self._put(unwritten(row))
        self.withheld = judge.withheld
        return True

    def write(self) -> None:
        """Write new and changed documents to their files, and remove the files of deleted ones."""
        with self.parts.store.read() as tx:
            rows = {row.document_id: row for row in tx.note_files.attachments()}
            found = (tx.documents.get(id_) for id_, _ in tx.note_files.unwritten_attachments())
            documents = [document for document in found if document]
            gone = [row for id_, row in rows.items() if tx.documents.get(id_) is None]
        for document in documents:
            try:
                self._write(document, rows.get(document.id))
            except disk.Changed:
                continue  # the next look takes the file
            except FileExistsError:
                self.problems[path_in_folder(document)] = OTHER_FILE
            except (KbError, OSError) as error:
                reason = error.detail if isinstance(error, KbError) else error.strerror or str(error)
                self.problems[path_in_folder(document)] = reason
        for row in gone:
            self._remove(row)

    def _write(self, document: Document, row: NoteFile | None) -> None:
        path = row.path if row else path_in_folder(document)
        place, digest = self.parts.place(path), document.content_hash
        if row and row.digest == DIGEST + digest:
            return self._record(document, path, row.state)
        state = disk.state_at(place)
        if state and disk.file_digest_at(place, self.parts.most_file_bytes) == digest:
            return self._record(document, path, state)
        if row and state and state != row.state:
            raise disk.Changed
        content = b"".join(self.parts.originals.open(document).blocks)
        if row and state:
            state = disk.replace(place, content, row.digest.removeprefix(DIGEST))
        else:
            state = disk.create(place, content)
        disk.sync([place])
        return self._record(document, path, state)

    def _remove(self, row: NoteFile) -> None:
        """Remove the file of a deleted document; a file that somebody changed stays, and is a new one."""
        place = self.parts.place(row.path)
        try:
            if disk.state_at(place) == row.state:
                disk.remove(place, row.digest.removeprefix(DIGEST))
        except (disk.Changed, OSError) as error:
            logger.info("the file of document %s stays in the notes folder: %r", row.document_id, error)
        self._sent.pop(row.path, None)
        with self.parts.store.write() as tx:
            tx.note_files.remove(row.document_id)

    def _record(self, document: Document, path: str, state: str) -> None:
        with self.parts.store.read() as tx:
            version = version_of(tx, document.id)
        digest = DIGEST + document.content_hash
        self._put(NoteFile(document.id, path, document.source_path, version, state, digest))

    def _put(self, row: NoteFile) -> None:
        with self.parts.store.write() as tx:
            tx.note_files.put(row, b"")


def unwritten(row: NoteFile) -> NoteFile:
    """Return the row of a file that must be written again."""
    return replace(row, version=0, state="", digest=DIGEST)


def path_in_folder(document: Document) -> str:
    """Return the path for the file of an attachment."""
    parts = PurePosixPath(document.source_path or "").parts
    return "/".join(safe_name(part) for part in parts if part not in ("..", "/"))
