"""Files that are not notes: they are documents of kb too.

In the notes folder, these are the files that a note links to; in other folders, all files with text, and the pictures
that a note shows. A file that somebody adds to a note in kb is written to the folder, at its path.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Final

from pydantic import ValidationError

from kb.api.errors import DiskFull, KbError
from kb.api.job_models import FileRequest
from kb.documents.delete import delete
from kb.documents.job_queue import submit_file
from kb.documents.title_of_file import follow_file, title_in_file
from kb.folders.deletions import Judge, Withheld
from kb.folders.disk_view import DiskView
from kb.folders.ignore_rules import BINARY_SUFFIXES
from kb.folders.safe_names import safe_name
from kb.notes_folder import disk
from kb.notes_folder.disk import FoundFile
from kb.notes_folder.parts import FILE, FolderParts, version_of
from kb.store.protocol import Transaction
from kb.store.rows import Author, Document, NoteFile

logger = logging.getLogger(__name__)

DIGEST: Final = "file "
"""The beginning of the digests of these files in the database."""

NO_JOB: Final = -(1 << 40)
"""The first number of a file without a document and a job; kb never makes so many jobs."""

AGAIN_SECONDS: Final = 60.0
"""kb asks again after this time whether a note links to a file."""

DELETE_SECONDS: Final = 2.0
QUIET_SECONDS: Final = 2.0
OTHER_FILE: Final = "Another file is in its place in the folder. Rename or remove it."


@dataclass
class Attachments:
    """Keeps attachments in step in both directions.

    Args:
        parts: the folder.
        taken: the states of files that an earlier version of kb took from an inbox.
        now: a monotonic clock.
    """

    parts: FolderParts
    taken: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    now: Callable[[], float] = time.monotonic
    problems: dict[str, str] = field(default_factory=dict)
    withheld: list[Withheld] = field(default_factory=list)
    _seen: dict[str, tuple[str, float]] = field(default_factory=dict)
    """The state of each new or changed file, and since when it has that."""
    _logged: dict[str, str] = field(default_factory=dict)
    """The reasons that the log has, by path."""
    _unlinked: dict[str, tuple[str, float]] = field(default_factory=dict)
    """The state of each file to which no note links, and when kb last asked."""
    _missing: dict[str, float] = field(default_factory=dict)

    def look(self, scan: disk.Scan, mounts: tuple[str, str], author: Author, *, is_sure: bool, is_new: bool) -> bool:
        """Take new, changed and deleted files; return whether nothing is left to do.

        With `is_new`, a note has changed, which may link to a file.
        """
        with self.parts.store.read() as tx:
            rows = {row.path: row for row in self.parts.files(tx).attachments()}
            former = {path for path, row in rows.items() if not row.state and tx.documents.get(row.document_id) is None}
        self.parts.found.update(scan.others)
        states = {path: row.state for path, row in rows.items() if row.document_id > 0}
        changed = {path: file for path, file in scan.others.items() if states.get(path) != file.state}
        before, now = self._seen, self.now()
        self._seen = {path: _since(before.get(path), file.state, now) for path, file in changed.items()}
        self.problems, is_settled = {}, True
        for path, file in changed.items():
            if (path not in rows or path in former) and not self._is_wanted(path, file.state, is_new=is_new):
                continue
            if path not in before or before[path][0] != file.state or now - self._seen[path][1] < self._quiet:
                is_settled = False
                continue
            self.parts.checkpoint()
            try:
                is_settled = self._take(path, file, rows, scan, author) and is_settled
            except (disk.Changed, FileNotFoundError):
                is_settled = False
            except (KbError, OSError, ValueError) as error:
                if DiskFull.is_why(error):
                    raise
                self._note_problem(path, error)
        self._logged = {path: reason for path, reason in self._logged.items() if path in self.problems}
        present = {path: row for path, row in rows.items() if path not in former}
        return self._miss(present, scan, mounts, author, is_sure=is_sure) and is_settled

    @property
    def _quiet(self) -> float:
        """How long a file must stay the same: programs write large files in pieces."""
        return QUIET_SECONDS if self.parts.all_files else 0.0

    def _note_problem(self, path: str, error: Exception) -> None:
        reason = error.detail if isinstance(error, KbError) else getattr(error, "strerror", None) or str(error)
        if isinstance(error, ValidationError):
            reason = "Its path cannot be a source path."
        self.problems[path] = reason
        if self._logged.get(path) != reason:
            logger.warning("kb skips a file in a folder, see 'kb status': %s", reason)
        self._logged[path] = reason

    def _is_wanted(self, path: str, state: str, *, is_new: bool) -> bool:
        """Return whether a file should be a document."""
        if not self.parts.all_files:
            return self._is_linked(path, state, is_new=is_new)
        is_text = not self.parts.writes or PurePosixPath(path).suffix.lower() not in BINARY_SUFFIXES
        return disk.size_of(state) > 0 and (is_text or self._is_linked(path, state, is_new=is_new))

    def _is_linked(self, path: str, state: str, *, is_new: bool) -> bool:
        known, asked = self._unlinked.get(path, ("", 0.0))
        if known == state and not is_new and self.now() - asked < AGAIN_SECONDS:
            return False
        with self.parts.store.read() as tx:
            if tx.links.is_linked(self.parts.prefix + path):
                self._unlinked.pop(path, None)
                return True
        self._unlinked[path] = state, self.now()
        return False

    def _take(self, path: str, file: FoundFile, rows: Mapping[str, NoteFile], scan: disk.Scan, author: Author) -> bool:
        """Record a file whose document exists, or queue it; return whether its document exists, or never will."""
        row, state = rows.get(path), file.state
        if row and row.document_id < 0 and row.state == state:
            return self._take_queued(row)
        if row is None and self._is_from_inbox(path, state):
            return True
        digest = disk.file_digest_at(file.place, self.parts.most_file_bytes)
        with self.parts.store.read() as tx:
            document = self.parts.document(tx, row.document_id) if row else self.parts.at_path(tx, path)
            if row and not row.state and document is None:  # the document of a former file is in the bin
                former, row, document = row, None, self.parts.at_path(tx, path)
            else:
                former = None
        if former:
            self._drop(former)
        if row and row.digest == DIGEST + digest:
            self._put(replace(row, state=state))
            return True
        if document and document.content_hash == digest:
            self._record(document, path, state)
            return True
        gone = (each for each in rows.values() if each.digest == DIGEST + digest and each.path not in scan.others)
        if row is None and (moved := next((each for each in gone if each.document_id > 0), None)):
            self._move(moved, path, state, author)
            return True
        self._send(path, file, digest, author, row if document else None)
        return False

    def _take_queued(self, row: NoteFile) -> bool:
        """Record the document of a file that was queued, as soon as it exists."""
        with self.parts.store.read() as tx:
            document = self.parts.at_path(tx, row.path)
        if document and row.digest == DIGEST + document.content_hash:
            self._record(document, row.path, row.state)
        return True

    def _is_from_inbox(self, path: str, state: str) -> bool:
        """Record a file that an earlier version of kb took from the inbox; return whether it did."""
        if self.taken.get(path) != state_in_inbox(state):
            return False
        with self.parts.store.read() as tx:
            document = self.parts.at_path(tx, path)
        if document:
            self._record(document, path, state)
        else:  # it was deleted, or could not be read
            self._put(NoteFile(NO_JOB - list(self.taken).index(path), path, path, 0, state, DIGEST))
        return True

    def _send(self, path: str, file: FoundFile, digest: str, author: Author, row: NoteFile | None) -> None:
        """Queue a file, and record that: it is not sent again if its job fails, or its document is deleted."""
        request = FileRequest(source_path=self.parts.prefix + path, tags=list(self.parts.tags))
        key = f"{FILE}\n{self.parts.prefix + path}\n{file.state}\n{digest}"
        with file.place.folder() as folder, folder.open_file(file.place.name) as content:
            blobs = self.parts.originals.blobs
            name = PurePosixPath(path).name
            job = submit_file(self.parts.audited, blobs, content, name, request, key, author)
        row = row or NoteFile(-int(job.job_id or 0), path, path, 0, "", "")
        self._put(replace(row, state=file.state, digest=DIGEST + digest))
        logger.info("added from a folder", extra={"job_id": job.job_id})
        self.parts.wake()

    def _move(self, row: NoteFile, path: str, state: str, author: Author) -> None:
        with self.parts.store.read() as tx:
            before = tx.documents.get(row.document_id)
        own = title_in_file(self.parts.originals, before) if before else None
        with self.parts.audited.write() as tx:
            document = tx.documents.get(row.document_id)
            if document and self.parts.at_path(tx, path) is None:
                tx.history.keep(row.document_id, replace(author, why="its file was renamed"))
                self.parts.move(tx, row.document_id, path)
                follow_file(tx, document, path, author, own)
        with self.parts.store.read() as tx:
            version = version_of(tx, row.document_id)
        self._put(replace(row, path=path, source_path=path, state=state, version=version))

    def _miss(
        self, rows: Mapping[str, NoteFile], scan: disk.Scan, mounts: tuple[str, str], author: Author, *, is_sure: bool
    ) -> bool:
        """Delete the documents of missing files, unless that looks like an accident; return whether all is done.

        In a folder that kb only reads, it forgets the files, and their documents stay.
        """
        self.withheld = []
        with self.parts.store.read() as tx:
            present = {row.path for row in self.parts.files(tx).attachments() if row.state} - scan.others.keys()
        self._missing = {path: self._missing.get(path, self.now()) for path in present & rows.keys()}
        if not self._missing or (not self.parts.writes and not scan.others):  # a disk may not be connected
            return True
        if any(self.now() - since < DELETE_SECONDS for since in self._missing.values()):
            return False
        judge = Judge(DiskView(self.parts.root), mounts, scan.unreadable, len(rows), is_sure, self.parts.remedy)
        for path in judge.allow(self._missing):
            self._forget(rows[path], author)
        self.withheld = judge.withheld if self.parts.writes else []
        return True

    def _forget(self, row: NoteFile, author: Author) -> None:
        """Forget a missing file; if kb also writes to the folder, delete its document, or write a changed one again."""
        with self.parts.store.read() as tx:
            document = tx.documents.get(row.document_id)
            is_same = document is not None and version_of(tx, row.document_id) == row.version
        if self.parts.writes and row.document_id > 0 and not is_same:
            self._put(unwritten(row))
            return
        if self.parts.writes and document:
            why = replace(author, why="its file was deleted")
            delete(self.parts.audited, self.parts.originals, row.document_id, why)
            self._put(unwritten(row))
            return
        self._drop(row)

    def write(self) -> None:
        """Write new and changed documents to their files, and remove the files of deleted ones."""
        with self.parts.store.read() as tx:
            rows = {row.document_id: row for row in self.parts.files(tx).attachments() if row.document_id > 0}
            found = (self.parts.document(tx, id_) for id_, _ in self.parts.files(tx).unwritten_attachments())
            documents = [document for document in found if document and document.source_path]
            gone = [row for id_, row in rows.items() if tx.documents.get(id_) is None]
            left_out = self.parts.left_out(tx) if self.parts.prefix else ()
            kept_out = {row.document_id for row in gone if row.path in left_out or self._is_purged(tx, row)}
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
            if row.document_id in kept_out:
                self._drop(row)
            elif row.state:
                self._remove(row)

    @staticmethod
    def _is_purged(tx: Transaction, row: NoteFile) -> bool:
        """Return whether the file of a deleted document is removed, and the document cannot come back."""
        return not row.state and tx.history.binned(row.document_id) is None

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
        """Remove the file of a deleted document, which is written again if the document is restored.

        A file that somebody changed stays, and is a new one. If kb has no copy of a file, the file stays too, and kb
        remembers not to add it again.
        """
        place, digest = self.parts.place(row.path), row.digest.removeprefix(DIGEST)
        if self.parts.all_files and not self.parts.originals.has(digest):
            self._put(replace(row, document_id=NO_JOB - row.document_id, digest=DIGEST))
            return
        try:
            state = disk.state_at(place)
            if state == row.state:
                disk.remove(place, digest)
            if state in (None, row.state):
                self._put(unwritten(row))
                return
        except disk.InUse as error:
            self.problems[row.path] = error.strerror or ""
            return
        except (disk.Changed, OSError) as error:
            logger.info("the file of document %s stays in its folder: %r", row.document_id, error)
        self._drop(row)

    def _drop(self, row: NoteFile) -> None:
        """Forget that a file belonged to a document."""
        with self.parts.store.write() as tx:
            self.parts.files(tx).remove(row.document_id)

    def _record(self, document: Document, path: str, state: str) -> None:
        with self.parts.store.read() as tx:
            version = version_of(tx, document.id)
        digest = DIGEST + document.content_hash
        self._put(NoteFile(document.id, path, document.source_path, version, state, digest))

    def _put(self, row: NoteFile) -> None:
        with self.parts.store.write() as tx:
            self.parts.files(tx).put(row, b"")


def _since(known: tuple[str, float] | None, state: str, now: float) -> tuple[str, float]:
    """Return a state, and since when a file has it."""
    return known if known and known[0] == state else (state, now)


def state_in_inbox(state: str) -> tuple[int, int]:
    """Return the state of a file as earlier versions of kb recorded it: its time in nanoseconds, and its size."""
    return int(state.partition(" ")[0]), disk.size_of(state)


def unwritten(row: NoteFile) -> NoteFile:
    """Return the row of a file that must be written again."""
    return replace(row, version=0, state="", digest=DIGEST)


def path_in_folder(document: Document) -> str:
    """Return the path for the file of an attachment."""
    parts = PurePosixPath(document.source_path or "").parts
    return "/".join(safe_name(part) for part in parts if part not in ("..", "/"))
