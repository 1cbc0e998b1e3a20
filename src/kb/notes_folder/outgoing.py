"""From the notes to the folder: notes that were added, changed, moved or deleted.

The notes whose version differs from the version of their file wait to be written: a crash can neither lose one nor
write one twice.
"""

import logging
import stat
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from kb.api.errors import DiskFull, KbError
from kb.api.fields import NOTE
from kb.documents.note_edit import NO_TITLE, Edit, NoteChange
from kb.documents.write_updated_note import update_note
from kb.markdown.front_matter import front_matter
from kb.markdown.tags import changed_tags
from kb.notes_folder import disk
from kb.notes_folder.file_text import FileContent, own_title, rendered, with_title
from kb.notes_folder.parts import FILE, UNWRITTEN, FolderParts, text_of
from kb.notes_folder.paths import folded, free_path, is_conflict, path_of
from kb.open_folder import Linked
from kb.store.rows import Author, Document, NoteFile

logger = logging.getLogger(__name__)

BATCH: Final = 100
"""The number of notes that are read and recorded at once."""

QUIET_SECONDS: Final = 2.0
"""kb does not write to a file that somebody else changed less than this time ago: they may still be typing."""

MOST_OWN: Final = 1000

SAID: Final = "its text says these tags"

TITLED: Final = "its text says its title"

RETRY_SECONDS: Final = 30.0
"""The pause after a file could not be written."""

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class Waiting(NamedTuple):
    """A note to write: its version, the note, its text, and its file and what that shows, if it has one."""

    version: int
    note: Document
    text: str
    file: NoteFile | None
    base: FileContent | None


class Written(NamedTuple):
    """The new row of a file, and its content."""

    file: NoteFile
    base: FileContent


@dataclass
class Outgoing:
    """Writes notes to their files.

    Args:
        parts: the parts of the engine.
        clock: the time of the machine, which also dates files.
        now: a monotonic clock.
    """

    parts: FolderParts
    clock: Callable[[], float] = time.time
    now: Callable[[], float] = time.monotonic
    failed: dict[int, tuple[float, str, str]] = field(default_factory=dict)
    """The notes whose file could not be written: when to try again, the path and the reason."""
    waiting: int = 0
    """The number of notes that wait to be written."""
    _rows: dict[int, NoteFile] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _named: Collection[int] = ()
    _skipped: Collection[str] = ()
    _own: set[str] = field(default_factory=set)
    """The states of files that this engine wrote: nobody else is typing in them."""

    def write(self, named: Collection[int] = (), skipped: Collection[str] = ()) -> bool:
        """Write changed notes; return whether a file on the disk must be looked at first.

        `named` are the notes that incomplete files name, and `skipped` the paths of files that kb cannot take.
        """
        self._named, self._skipped = named, skipped
        with self.parts.store.read() as tx:
            unwritten, gone = self.parts.files(tx).unwritten(), self.parts.files(tx).gone()
            if not unwritten and not gone:
                self.waiting, self.failed = 0, {}
                return False
            self._rows = {row.document_id: row for row in self.parts.files(tx).all()}
        left = {*gone, *(document_id for document_id, _ in unwritten)}
        self.failed = {document_id: known for document_id, known in self.failed.items() if document_id in left}
        self._taken = {folded(row.path) for row in self._rows.values()}
        self._own = self._own if len(self._own) < MOST_OWN else set()
        must_look = self._remove(gone)
        due = [pair for pair in unwritten if self.failed.get(pair[0], (0.0,))[0] <= self.now()]
        self.waiting = len(unwritten)
        for start in range(0, len(due), BATCH):
            self.parts.checkpoint()
            must_look = self._write_batch(due[start : start + BATCH]) or must_look
        return must_look

    def _write_batch(self, pairs: list[tuple[int, int]]) -> bool:
        written, settled, must_look = list[Written](), list[tuple[int, int]](), False
        for each in self._read(pairs):
            try:
                done = self._write(each)
            except disk.Changed:
                must_look = True
                continue
            except (OSError, ValueError) as error:
                self._fail(each, error)
                continue
            self.failed.pop(each.note.id, None)
            if done:
                written.append(done)
            elif each.file:
                settled.append((each.note.id, each.version))
        self._record(written, settled)
        return must_look

    def _read(self, pairs: list[tuple[int, int]]) -> list[Waiting]:
        with self.parts.store.read() as tx:
            wanted = dict(pairs)
            versions = {id_: version for id_, version in self.parts.files(tx).unwritten() if id_ in wanted}
            notes = {id_: note for id_ in versions if (note := self.parts.document(tx, id_))}
            files = {id_: self._rows.get(id_) for id_ in notes}
            return [
                Waiting(versions[id_], note, text_of(tx, id_), files[id_], self.parts.base(tx, files[id_]))
                for id_, note in notes.items()
            ]

    def _write(self, each: Waiting) -> Written | None:
        """Write a file unless it says the same already; return its row.

        Raises:
            Changed: somebody else changed the file.
            OSError: it cannot be written.
        """
        file = each.file
        if (self.parts.prefix and self._takes_tags(each)) or self._takes_title(each):
            return None  # it has another version now
        if file is None:
            return self._create(each)
        if file.source_path != each.note.source_path:
            before, file = file.path, self._moved(file, each.note)
            if self.parts.retitle(each.note, before, file.path, Author(FILE)):
                return None  # it has another version now
        place = self.parts.place(file.path)
        if file.state != disk.state_at(place):
            raise disk.Changed
        content, _ = disk.read(place, self.parts.most_bytes * 2)
        if disk.digest_of(content) != file.digest:
            raise disk.Changed
        text, base = self._rendered(each, file.path, content)
        if text == content:
            return None if file is each.file else Written(_with_version(file, each.version), base)
        if file.state not in self._own and 0 <= self.clock() - disk.modified(file.state) < QUIET_SECONDS:
            raise disk.Changed
        return Written(self._row(each, file.path, disk.replace(place, text, file.digest, each.note.id), text), base)

    def _takes_tags(self, each: Waiting) -> bool:
        """Give a note the #tags that only its new text has, as an edit of its file would; return whether that was new.

        An agent gives a note exactly the tags that it names, but in a vault the text is what people see.
        """
        if each.base is None and each.version > 1:
            return False  # a tag that somebody removed from the note stays away
        written, left = changed_tags(each.base.text if each.base else "", each.text)
        add, remove = set(written) - set(each.note.tags), set(left) & set(each.note.tags)
        if not add and not remove:
            return False
        change = NoteChange(tags_add=sorted(add), tags_remove=sorted(remove), if_match=(each.note.content_hash,))
        try:
            update_note(self.parts.audited, self.parts.vectors, each.note.id, change, author=Author(FILE, why=SAID))
        except KbError:  # too many tags, or another change came first
            return False
        return True

    def _takes_title(self, each: Waiting) -> bool:
        """Write the title that a note got in kb to the `title` that its text has; return whether that was new."""
        change = self._change_of_title(each)
        if change is None:
            return False
        try:
            update_note(self.parts.audited, self.parts.vectors, each.note.id, change, author=Author(FILE, why=TITLED))
        except KbError:  # another change came first
            return False
        return True

    def _change_of_title(self, each: Waiting) -> NoteChange | None:
        """Return the change after which a note and its own text say the same title; None if they do, or cannot.

        The title that changed since the file was written counts: the one of the text, or the one in kb.
        """
        note, text, own = each.note, each.text, own_title(each.text)
        paths = [each.file.path] if each.file else []
        names = {self.parts.title(path) for path in (*paths, path_of(note))}
        if own is None or not note.title_given or note.title in {own, *names} or (each.file and not each.base):
            return None
        if own and each.base and note.title == (own_title(each.base.text) or each.base.title):
            return NoteChange(title=NO_TITLE if front_matter(text).title else own, if_match=(note.content_hash,))
        after = with_title(text, note.title)
        title = NO_TITLE if front_matter(after).title else None  # kb reads no title from JSON
        return NoteChange(Edit(text=after), title, if_match=(note.content_hash,)) if after != text else None

    def _rendered(self, each: Waiting, path: str, content: bytes) -> tuple[bytes, FileContent]:
        """Return the bytes of a note's file, which have a byte order mark if they had one, and their content."""
        mark = BYTE_ORDER_MARK if content.startswith(BYTE_ORDER_MARK) else b""
        written = content.decode("utf-8-sig", errors="replace")
        file = each.base or FileContent(each.text, fields=None)
        name = self.parts.title(path)
        text, base = rendered(each.note, each.text, name, file=file, written=written, with_id=self.parts.with_ids)
        return mark + text.encode(), base

    def _create(self, each: Waiting) -> Written:
        if each.note.id in self._named:
            raise disk.Changed
        note = each.note
        if disk.is_below_file(self.parts.place(path_of(note))):
            note = replace(note, source_path=PurePosixPath(path_of(note)).name)
        path = free_path(path_of(note), self._is_taken)
        text, base = rendered(each.note, each.text, self.parts.title(path), with_id=self.parts.with_ids)
        self._announce(each, path, text.encode(), base)
        try:
            state = disk.create(self.parts.place(path), text.encode(), each.note.id)
        except OSError:
            with suppress(KbError), self.parts.store.write() as tx:
                self.parts.files(tx).remove(each.note.id)
            raise
        self._taken.add(folded(path))
        return Written(self._row(each, path, state, text.encode()), base)

    def _announce(self, each: Waiting, path: str, content: bytes, base: FileContent) -> None:
        """Record a file before it is there: if the engine is killed and somebody edits it, it is still the note's."""
        file = NoteFile(each.note.id, path, each.note.source_path, UNWRITTEN, "", disk.digest_of(content))
        with self.parts.store.write() as tx:
            self.parts.files(tx).put(file, base.packed())

    def _is_taken(self, path: str) -> bool:
        """Return whether something has a path.

        Raises:
            Changed: it is a new file, which may belong to the note.
        """
        if folded(path) in self._taken:
            return True
        status = disk.status_at(self.parts.place(path))
        if status and stat.S_ISREG(status.st_mode) and not is_conflict(path) and path not in self._skipped:
            raise disk.Changed
        return status is not None

    def _moved(self, file: NoteFile, note: Document) -> NoteFile:
        """Move a file to the new place of its note; return its row."""
        path = free_path(path_of(note), lambda path: folded(path) != folded(file.path) and self._is_taken(path))
        if path != file.path:
            place, target = self.parts.place(file.path), self.parts.place(path)
            if file.state != disk.state_at(place):
                raise disk.Changed
            disk.move(place, target)
            self._taken = self._taken - {folded(file.path)} | {folded(path)}
        state = disk.state_at(self.parts.place(path)) or ""
        moved = NoteFile(file.document_id, path, note.source_path, file.version, state, file.digest)
        with self.parts.store.write() as tx:
            self.parts.files(tx).put(moved, self.parts.files(tx).base(file.document_id) or FileContent("").packed())
        return moved

    def _remove(self, gone: list[int]) -> bool:
        """Remove the files of deleted notes; return whether a file must be looked at first."""
        must_look, removed = False, list[int]()
        with self.parts.store.read() as tx:
            gone = sorted({*gone} & {*self.parts.files(tx).gone()})
            replaced = {id_ for id_ in gone if (document := tx.documents.get(id_)) and document.doc_type != NOTE}
            left_out = self.parts.left_out(tx) if self.parts.prefix else ()
            replaced |= {id_ for id_ in gone if self._rows[id_].path in left_out}
        for document_id in gone:
            row = self._rows[document_id]
            if document_id in replaced:  # a file of another type has its path, or kb leaves it out
                must_look = True
                removed.append(document_id)
                continue
            place = self.parts.place(row.path)
            try:
                state = disk.state_at(place)
                if state not in (None, row.state):
                    raise disk.Changed
                disk.remove(place, row.digest)
            except Linked:
                pass  # its file is out of reach
            except disk.Changed:
                must_look = True
                continue
            except OSError as error:
                self.failed[document_id] = self.now() + RETRY_SECONDS, row.path, error.strerror or str(error)
                continue
            removed.append(document_id)
        if removed:
            with self.parts.store.write() as tx:
                for document_id in {*removed} & {*self.parts.files(tx).gone()}:
                    self.parts.files(tx).remove(document_id)
        return must_look

    def _record(self, written: list[Written], settled: list[tuple[int, int]]) -> None:
        if not written and not settled:
            return
        places = [self.parts.place(file.path) for file, _ in written]
        disk.sync({place.path.parent: place for place in places}.values())
        with self.parts.store.write() as tx:
            for file, base in written:
                self.parts.files(tx).put(file, base.packed())
            for document_id, version in settled:
                self.parts.files(tx).settle(document_id, version)
        self.waiting -= len(written) + len(settled)

    def _row(self, each: Waiting, path: str, state: str, content: bytes) -> NoteFile:
        self._own.add(state)
        digest = disk.digest_of(content)
        return NoteFile(each.note.id, path, each.note.source_path, each.version, state, digest)

    def _fail(self, each: Waiting, error: OSError | ValueError) -> None:
        reason = str(DiskFull()) if DiskFull.is_why(error) else getattr(error, "strerror", None) or str(error)
        path = each.file.path if each.file else each.note.source_path or f"note {each.note.id}"
        if each.note.id not in self.failed:
            logger.warning("note %s could not be written to %s: %s", each.note.id, self.parts.name, reason)
        self.failed[each.note.id] = self.now() + RETRY_SECONDS, path, reason


def _with_version(file: NoteFile, version: int) -> NoteFile:
    return NoteFile(file.document_id, file.path, file.source_path, version, file.state, file.digest)
