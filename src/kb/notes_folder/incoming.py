"""From the folder to the notes: files that were edited, added, renamed or deleted."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from math import inf
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from pydantic import ValidationError

from kb.api.errors import Changed, KbError, NotFound, Occupied, Stopped
from kb.api.fields import NOTE
from kb.api.limit_errors import note_limit
from kb.api.note_models import NoteRequest
from kb.api.stream_safe import composed
from kb.documents.delete import delete
from kb.documents.note_edit import NO_EDIT, NO_TITLE, Edit, NoteChange
from kb.documents.restore_document import restore
from kb.documents.write_new_note import NoteIntake
from kb.documents.write_updated_note import update_note
from kb.folders.deletions import FEW, SHARE, Judge, Withheld
from kb.folders.disk_view import DiskView
from kb.formats.text.base64_data import without_embedded
from kb.ingest.draft import first_line
from kb.markdown.front_matter import front_matter
from kb.markdown.merge import merged
from kb.notes_folder import disk
from kb.notes_folder.claims import LIKE, Claims, Sighting, likeness, nearness
from kb.notes_folder.disk import FoundFile
from kb.notes_folder.file_text import Claim, FileContent, claim, fields_beside, own_title, parsed, rendered
from kb.notes_folder.lost_notes import LostNotes
from kb.notes_folder.parts import FILE, UNWRITTEN, FolderParts, note_of, text_of, version_of
from kb.notes_folder.paths import free_path, is_name_of, path_from
from kb.store.protocol import Transaction
from kb.store.rows import Author, Document, NoteFile

logger = logging.getLogger(__name__)

DELETE_SECONDS: Final = 2.0
"""A file must be missing for this long: programs move a file away briefly when they save it."""

MINUTE: Final = 60.0

RETRY_SECONDS: Final = 30.0
"""The pause after kb could not take a file for a reason that passes."""

AT_ONCE: Final = 200
"""The most new and changed files of one look, so that new notes need not wait for all of them."""

EMPTY: Final = "The file is empty. The note keeps its text; to remove the note, delete the file."
LINKED: Final = (
    "kb kept notes whose files were at {}: that path is now a link, which kb does not follow. Replace the link with the"
    " files. {}"
)
NO_BIN: Final = "The bin is off (KB_BIN_DAYS=0), so kb would delete notes for good."


@dataclass
class Look:
    """The result of a look at the folder.

    Args:
        scan: the files.
        problems: the reasons why files and notes differ, by path.
        withheld: the reasons why notes of missing files stay.
        is_settled: whether nothing is left to do.
        emptied: folders that are suddenly empty.
        named: the notes that incomplete files name: these files may be theirs.
        has_taken: whether a file has changed.
    """

    scan: disk.Scan
    problems: dict[str, str] = field(default_factory=dict)
    withheld: list[Withheld] = field(default_factory=list)
    is_settled: bool = True
    emptied: list[str] = field(default_factory=list)
    named: set[int] = field(default_factory=set)
    has_taken: bool = False


class Refusal(NamedTuple):
    """Why kb cannot take a file in this state, and until when: a full disk or a busy database passes."""

    state: str
    reason: str
    until: float


@dataclass
class Incoming:
    """Takes changes of files into the notes.

    Args:
        parts: the parts of the engine.
        now: a monotonic clock.
    """

    parts: FolderParts
    now: Callable[[], float] = time.monotonic
    files: int = 0
    """The number of files in the folder."""
    unread: int = 0
    """The number of new and changed files that kb has not taken yet."""
    _seen: dict[str, str] = field(default_factory=dict)
    """The state of each changed file at the last look; it is complete if the next look finds the same."""
    _refused: dict[str, Refusal] = field(default_factory=dict)
    """The files that kb cannot take."""
    _missing: dict[int, float] = field(default_factory=dict)
    """The notes whose file is missing, and since when."""
    _held: dict[int, str] = field(default_factory=dict)
    """The notes of missing files that stay until somebody decides, and the reason."""
    _deleted: list[float] = field(default_factory=list)
    """When notes were deleted lately: files may disappear one after another."""
    _attempts: int = 0
    """Distinguishes a file from one that was added before and whose note was deleted at once."""
    _claimed: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    """The state of each file that waits, and the note that it names."""
    _rows: dict[int, NoteFile] = field(default_factory=dict)
    _author: Author = field(default_factory=lambda: Author(FILE))

    def look(self, operation: str, mounts: tuple[str, str] = ("", ""), *, is_sure: bool = False) -> Look:
        """Take changes that were complete at the last look; `is_sure` confirms all deletions.

        `operation` is the key of the operation, which can be undone as a whole. `mounts` are the devices of the folder
        before and now.
        """
        self._author = Author(FILE, operation_key=operation)
        with self.parts.store.read() as tx:
            self._rows = {row.document_id: row for row in self.parts.files(tx).all()}
            left_out = self.parts.left_out(tx) if self.parts.prefix else ()
        look = Look(self.parts.scan({row.path for row in self._rows.values()}))
        look.scan.leave_out(left_out)
        look.problems |= look.scan.problems
        self.files = len(look.scan.files)
        self.parts.found.clear()
        self.parts.found.update(look.scan.files)
        sightings, unsettled = self._sightings(look)
        look.named = self._named({path: look.scan.files[path] for path in unsettled})
        sightings = self._certain(sightings, unsettled, look.named)
        claims = self._claims(look, sightings, unsettled)
        look.is_settled, look.has_taken = not unsettled, bool(sightings)
        self.unread = len(unsettled) + len(sightings)
        missing = [row for row in self._rows.values() if row.document_id not in claims.owned]
        self._follow_moves(claims)
        for sighting in sightings:
            self.parts.checkpoint()
            self._take(sighting, claims.owners.get(sighting.path), look)
            self.unread -= 1
        if self.parts.all_files:
            self._pass_on(look)
        if not unsettled:  # a missing file may have become an incomplete one
            self._miss(missing, look, mounts, is_sure=is_sure)
        return look

    def _pass_on(self, look: Look) -> None:
        """Treat Markdown files that cannot be notes as files of other types, such as those in another encoding."""
        noted = {row.path for row in self._rows.values()}
        for path in {path for path, refusal in self._refused.items() if refusal.until == inf} - noted:
            if file := look.scan.files.pop(path, None):
                look.scan.others[path] = file
                look.problems.pop(path, None)

    def _sightings(self, look: Look) -> tuple[list[Sighting], set[str]]:
        """Return the changed files, and the paths of files that are not complete yet."""
        states = {row.path: row.state for row in self._rows.values()}
        changed = {path: file for path, file in look.scan.files.items() if states.get(path) != file.state}
        before, self._seen = self._seen, {path: file.state for path, file in changed.items()}
        self._refused = {
            path: known
            for path, known in self._refused.items()
            if self._seen.get(path) == known.state and self.now() < known.until
        }
        look.problems |= {path: refusal.reason for path, refusal in self._refused.items()}
        complete = [path for path in changed if before.get(path) == changed[path].state and path not in self._refused]
        unsettled = changed.keys() - set(complete) - self._refused.keys() | set(complete[AT_ONCE:])
        sightings = list[Sighting]()
        for path in complete[:AT_ONCE]:
            try:
                sightings.append(self._sighting(path, changed[path].place))
            except (disk.Changed, FileNotFoundError):
                unsettled.add(path)
            except (OSError, ValueError) as error:
                self._refuse(look, path, changed[path].state, error)
        return sightings, unsettled

    def _certain(self, sightings: list[Sighting], unsettled: set[str], named: set[int]) -> list[Sighting]:
        """Return the sightings that incomplete files cannot concern; the others become incomplete.

        While files exchange their names, one of them may be complete before the other.
        """
        by_path = {row.path: row.document_id for row in self._rows.values()}
        by_inode = {disk.inode_of(row.state): row.document_id for row in self._rows.values()}
        others = {by_path[path] for path in unsettled if path in by_path} | named
        certain = list[Sighting]()
        for sighting in sightings:
            own = by_path.get(sighting.path)
            claimed = sighting.claim.document_id if sighting.claim else None
            meant = {claimed, by_inode.get(disk.inode_of(sighting.state))} - {own}
            if own in named or meant & others:
                unsettled.add(sighting.path)
            else:
                certain.append(sighting)
        return certain

    def _named(self, files: Mapping[str, FoundFile]) -> set[int]:
        """Return the notes that incomplete files may belong to: by the id in them, by inode, or as in `LostNotes`."""
        known = {path: seen for path, seen in self._claimed.items() if path in files and files[path].state == seen[0]}
        with self.parts.store.read() as tx:
            lost = LostNotes(self.parts, tx, self._rows.keys())
            others = {
                path: (file.state, self._id_in(path, file, lost)) for path, file in files.items() if path not in known
            }
        self._claimed = known | others
        inodes = {disk.inode_of(file.state) for file in files.values()}
        moved = {id_ for id_, row in self._rows.items() if row.path not in files and disk.inode_of(row.state) in inodes}
        return moved | {id_ for _, id_ in self._claimed.values() if id_ is not None}

    def _id_in(self, path: str, file: FoundFile, lost: LostNotes) -> int | None:
        with suppress(OSError, ValueError, disk.Changed):
            content, _ = disk.read(file.place, self.parts.most_bytes)
            text = content.decode("utf-8-sig", errors="replace")
            named = claim(text)
            return named.document_id if named else lost.search(Sighting(path, file.state, "", text, None))
        return None

    def _sighting(self, path: str, place: disk.Place) -> Sighting:
        content, state = disk.read(place, self.parts.most_bytes)
        text = content.decode("utf-8-sig")
        return Sighting(path, state, disk.digest_of(content), text, claim(text))

    def _claims(self, look: Look, sightings: list[Sighting], unsettled: set[str]) -> Claims:
        with self.parts.store.read() as tx:

            def is_note(sighting: Sighting) -> bool:
                named = sighting.claim or Claim(0, None)
                document, row = note_of(tx, named.document_id), self._rows.get(named.document_id)
                base = self.parts.base(tx, row)
                if document is None or (base and "kb" not in base.own):
                    return False
                if named.created:
                    return document.created_at == named.created
                text = text_of(tx, named.document_id)
                return row is not None or likeness(text, parsed(sighting.text, fields_beside(text)).text) > LIKE

            def likeness_to(document_id: int, sighting: Sighting) -> float:
                row = self._rows[document_id]
                base = self.parts.base(tx, row) or FileContent(text_of(tx, document_id), fields=None)
                is_same_inode = disk.inode_of(sighting.state) == disk.inode_of(row.state)
                return nearness(base.text, parsed(sighting.text, base.own).text, is_same_inode=is_same_inode)

            purged = {id_ for id_ in self.parts.files(tx).gone() if note_of(tx, id_) is None}
            present = {id_ for id_, row in self._rows.items() if row.path in look.scan.files}
            rows = [row for id_, row in self._rows.items() if id_ not in purged]
            claims = Claims(rows, is_note, likeness_to, LostNotes(self.parts, tx, present).search)
            looked_at = {sighting.path for sighting in sightings}
            claims.keep(path for path in (*look.scan.files, *look.scan.unreadable) if path not in looked_at)
            claims.assign(sightings)
        return claims

    def _follow_moves(self, claims: Claims) -> None:
        """Give notes whose file was renamed the new path, all of them at once: two files may have exchanged names."""
        moves = {
            document_id: path
            for path, document_id in claims.owners.items()
            if document_id in self._rows and self._rows[document_id].path != path
        }
        if not moves:
            return
        with self.parts.audited.write() as tx:
            documents = {id_: note for id_ in moves if (note := self.parts.document(tx, id_))}
            paths = {id_: path for id_, path in moves.items() if _has_moved(documents.get(id_), path)}
            free = {id_: path for id_, path in paths.items() if self._is_free(tx, path, moves)}
            for document_id in free:
                tx.history.keep(document_id, replace(self._author, why="its file was renamed"))
                self.parts.move(tx, document_id, None)
            for document_id, path in free.items():
                self.parts.move(tx, document_id, path)
        for document_id, path in free.items():
            self.parts.retitle(documents[document_id], self._rows[document_id].path, path, self._author)
        with self.parts.store.write() as tx:
            for document_id, path in moves.items():
                row = self._rows[document_id]
                note = self.parts.document(tx, document_id)
                place = note.source_path if note else row.source_path
                version = -version_of(tx, document_id) if document_id in free else row.version
                moved = replace(row, path=path, source_path=place, version=version)
                self.parts.files(tx).put(moved, self.parts.files(tx).base(document_id) or FileContent("").packed())
                self._rows[document_id] = moved

    def _is_free(self, tx: Transaction, path: str, moves: Mapping[int, str]) -> bool:
        occupant = self.parts.at_path(tx, path)
        return occupant is None or occupant.id in moves

    def _take(self, sighting: Sighting, document_id: int | None, look: Look) -> None:
        """Take the content of a file; a file that kb cannot take is a problem."""
        try:
            if document_id is None:
                self._add(sighting, look)
            else:
                self._update(sighting, document_id, look)
        except Occupied:  # the path of its note in the bin is another note's now
            self._add(sighting, look)
        except Changed:
            look.is_settled = False
        except Stopped:
            raise
        except NotFound:
            look.is_settled = False  # it was deleted in the meantime
        except (KbError, OSError, ValueError) as error:
            self._refuse(look, sighting.path, sighting.state, error)

    def _add(self, sighting: Sighting, look: Look) -> None:
        """Add the note of a new file."""
        new = self._new_note(sighting)
        if not new.text.strip():
            return  # a file that somebody has just created, to write a note
        self._check(new.text)
        with self.parts.store.read() as tx:
            place = self._path_for(tx, sighting.path)
        tags, title = [*(new.tags or ()), *self.parts.tags], new.title or self._title(sighting, new.text)
        request = NoteRequest(text=new.text, title=title, tags=tags, source_path=place, inline_tags=True)
        intake = NoteIntake(
            self.parts.audited, self.parts.originals.blobs, self.parts.vectors, checkpoint=self.parts.checkpoint
        )
        key = f"{FILE} {self._attempts}\n{sighting.path}\n{sighting.state}\n{sighting.digest}"
        document_id = intake.add(request, key, self._author).document_id
        with self.parts.store.read() as tx:
            is_there = document_id is not None and tx.documents.get(document_id) is not None
        if document_id is None or not is_there:  # an earlier job is about to write to this path, or it was deleted
            look.is_settled = False
            self._attempts += document_id is not None
            return
        with self.parts.store.read() as tx:
            is_note = note_of(tx, document_id) is not None
        if not is_note and self.parts.prefix:  # a file was added at the path of the note
            look.is_settled = False
            self._attempts += 1
            return
        if not is_note:
            raise ValueError(f"Document {document_id} has the same content.")
        if document_id in self._rows:
            raise ValueError(f"Its text is the same as that of note {document_id}, which has its own file.")
        self._record(sighting, document_id, new)

    def _path_for(self, tx: Transaction, path: str) -> str | None:
        """Return the path of a new note; None if it can do without one, because another document has the path.

        A Markdown file that was synced becomes the note.
        """
        if not self.parts.prefix:
            return None if tx.documents.at_path(path) else path
        occupant = self.parts.at_path(tx, path)
        if occupant and occupant.doc_type == NOTE:
            path = free_path(path, lambda path: not self._is_free(tx, path, {}))
        return self.parts.prefix + path

    def _title(self, sighting: Sighting, text: str) -> str | None:
        """Return the title that a new note has from the name of its file; None if its text has one."""
        name = self.parts.title(sighting.path)
        body = text[front_matter(text).length :].lstrip()
        return None if body.startswith("# ") or front_matter(text).title else name or None

    def _new_note(self, sighting: Sighting) -> FileContent:
        """Return the note for a new file, which may be a copy of a file that has kb's fields."""
        named = sighting.claim
        if named is None:
            return FileContent(sighting.text)
        with self.parts.store.read() as tx:
            original, base = note_of(tx, named.document_id), self.parts.base(tx, self._rows.get(named.document_id))
            text = base.text if base else text_of(tx, named.document_id)
        if original is None or original.created_at != named.created or (base and "kb" not in base.own):
            return FileContent(sighting.text)
        copy = parsed(sighting.text, base.own if base else fields_beside(text))
        return replace(copy, title=None if copy.title == first_line(copy.text) else copy.title)

    def _update(self, sighting: Sighting, document_id: int, look: Look) -> None:
        """Take an edited file into its note. If both changed, merge them, or keep the file's text next to it."""
        row = self._rows.get(document_id)
        with self.parts.store.read() as tx:
            is_binned = tx.history.binned(document_id) is not None
        if is_binned:
            restore(self.parts.audited, document_id, self._author)
            self._deleted = self._deleted[:-1]  # its file is back
        if row is None:
            self._place_note(document_id, sighting.path)
        with self.parts.store.read() as tx:
            note, base = self.parts.document(tx, document_id), self.parts.base(tx, row)
            if note is None:
                raise NotFound(f"Note {document_id} does not exist.")
            present, version = text_of(tx, document_id), version_of(tx, document_id)
        if row and row.version != version and (ours := self._as_written(sighting, note, present)):
            self._record(sighting, document_id, ours)
            return
        if row and row.version == UNWRITTEN and base and likeness(base.text, sighting.text) <= LIKE:
            base = None  # somebody else's file has the path at which kb wanted to create one
        file = parsed(sighting.text, base.own if base else fields_beside(present))
        if is_binned and base is None:
            base = rendered(note, present, self.parts.title(sighting.path))[1]
        if not file.text.strip():
            raise ValueError(EMPTY)
        self._check(file.text)
        text = present if file.text == present else None
        if base:
            text = merged(base.text, present, file.text, self.parts.checkpoint)
        if text is None:
            aside = disk.set_aside(self.parts.place(sighting.path), sighting.text.encode(), self.parts.today())
            name = composed(str(PurePosixPath(sighting.path).with_name(aside.name)))
            look.scan.conflicts += [] if name in look.scan.conflicts else [name]
            logger.warning("both note %s and its file changed: kb kept the file's text as a conflict file", note.id)
        change = _change(note, present, present if text is None else text, base, file, self.parts.title(sighting.path))
        if change:
            update_note(
                self.parts.audited,
                self.parts.vectors,
                document_id,
                change,
                checkpoint=self.parts.checkpoint,
                author=self._author,
            )
        self._record(sighting, document_id, file)

    def _as_written(self, sighting: Sighting, note: Document, text: str) -> FileContent | None:
        """Return the content of a file that kb would leave as it is: kb wrote it, and was killed before it said so."""
        ours = parsed(sighting.text, fields_beside(text))
        name = self.parts.title(sighting.path)
        written, _ = rendered(note, text, name, file=ours, written=sighting.text, with_id=self.parts.with_ids)
        return ours if ours.text == text and written == sighting.text else None

    def _place_note(self, document_id: int, path: str) -> None:
        """Give a note whose file was unknown the path of its file, unless that is the file's name anyway."""
        with self.parts.audited.write() as tx:
            note = self.parts.document(tx, document_id)
            if note and not is_name_of(note, path) and self._is_free(tx, path, {}):
                tx.history.keep(document_id, replace(self._author, why="its file was renamed"))
                self.parts.move(tx, document_id, path)

    def _check(self, text: str) -> None:
        if len(text) > self.parts.most_characters:
            raise ValueError(f"It is too long: {note_limit(self.parts.most_characters)}")
        if without_embedded(text) != text:
            raise ValueError("It contains a picture as base64. Save the picture as a file, and link to it.")

    def _record(self, sighting: Sighting, document_id: int, base: FileContent) -> None:
        """Record the content of a file, to be compared with its note, which may have moved in the meantime."""
        known = self._rows.get(document_id)
        with self.parts.store.write() as tx:
            note = self.parts.document(tx, document_id)
            place = known.source_path if known else note.source_path if note else None
            version = -version_of(tx, document_id)
            row = NoteFile(document_id, sighting.path, place, version, sighting.state, sighting.digest)
            self.parts.files(tx).put(row, base.packed())
        self._rows[document_id] = row

    def _refuse(self, look: Look, path: str, state: str, error: Exception) -> None:
        reason = _reason(error)
        self._refused[path] = Refusal(state, reason, self.now() + RETRY_SECONDS if _passes(error) else inf)
        look.problems[path] = reason
        logger.warning("a file is skipped in the notes folder, see 'kb notes': %s", reason)

    def _miss(self, missing: list[NoteFile], look: Look, mounts: tuple[str, str], *, is_sure: bool) -> None:
        """Delete the notes of missing files, unless that looks like an accident."""
        with self.parts.store.read() as tx:
            versions = {row.document_id: version_of(tx, row.document_id) for row in missing}
            gone = {row.document_id for row in missing if not self.parts.is_here(tx, row.document_id)}
            has_bin = tx.history.has_bin
        changed = {row.document_id for row in missing if abs(row.version) != versions[row.document_id]}
        if forgotten := gone | changed:  # a note that changed is written again
            with self.parts.store.write() as tx:
                for document_id in forgotten:
                    self.parts.files(tx).remove(document_id)
        left = [row for row in missing if row.document_id not in forgotten]
        since = self.now()
        self._missing = {row.document_id: self._missing.get(row.document_id, since) for row in left}
        self._held = {id_: reason for id_, reason in self._held.items() if id_ in self._missing and not is_sure}
        if any(since - self._missing[row.document_id] < DELETE_SECONDS for row in left):
            look.is_settled = False  # more of them may follow
            return
        allowed = self._allowed(left, look, mounts, has_bin=has_bin, is_sure=is_sure)
        for row in left:
            if row.path in allowed:
                self._delete(row)

    def _allowed(
        self, missing: list[NoteFile], look: Look, mounts: tuple[str, str], *, has_bin: bool, is_sure: bool
    ) -> set[str]:
        """Return the paths of missing files whose notes may be deleted; record the reasons for the others."""
        paths = [row.path for row in missing if row.document_id not in self._held]
        look.withheld = [Withheld(reason, ()) for reason in dict.fromkeys(self._held.values())]
        linked = [] if is_sure else _behind_links(paths, look.scan.links, self.parts.remedy)
        behind = {path for each in linked for path in each.paths}
        paths = [path for path in paths if path not in behind]
        judge = Judge(
            DiskView(self.parts.root), mounts, look.scan.unreadable, len(self._rows), is_sure, self.parts.remedy
        )
        allowed = judge.allow(paths)
        withheld, look.emptied = [*linked, *judge.withheld], judge.emptied
        reason = None if is_sure or not allowed else self._objection(len(allowed), look, has_bin=has_bin)
        if reason:
            withheld.append(Withheld(f"{reason} {self.parts.remedy}", tuple(allowed)))
        look.withheld += withheld
        ids = {row.path: row.document_id for row in missing}
        self._held |= {ids[path]: each.reason for each in withheld if each.needs_yes for path in each.paths}
        return set() if reason else set(allowed)

    def _objection(self, number: int, look: Look, *, has_bin: bool) -> str | None:
        """Return why the notes of missing files should not be deleted; None if they may be."""
        self._deleted = [at for at in self._deleted if self.now() - at < MINUTE]
        number += len(self._deleted)
        total = len(self._rows) + len(self._deleted)
        if not look.scan.files:
            return "The folder has no notes left, so kb deleted none."
        if not has_bin:
            return NO_BIN
        if number > FEW and number * SHARE > total:
            return f"{number} of {total} files disappeared within a minute, so kb stopped deleting their notes."
        return None

    def _delete(self, row: NoteFile) -> None:
        author = replace(self._author, why="its file was deleted")
        try:
            delete(self.parts.audited, self.parts.originals, row.document_id, author)
        except NotFound:
            logger.debug("note %s is deleted already", row.document_id)
        with self.parts.store.write() as tx:
            self.parts.files(tx).remove(row.document_id)
        self._rows.pop(row.document_id, None)
        self._deleted.append(self.now())


def _behind_links(paths: Iterable[str], links: Collection[str], remedy: str) -> list[Withheld]:
    """Withhold the notes of files whose place, or the place of a folder of theirs, a link has taken."""
    behind: dict[str, list[str]] = {}
    for path in paths:
        for place in (path, *map(str, PurePosixPath(path).parents)):
            if place in links:
                behind.setdefault(place, []).append(path)
                break
    return [Withheld(LINKED.format(link, remedy), tuple(found)) for link, found in behind.items()]


def _has_moved(note: Document | None, path: str) -> bool:
    """Return whether a path is another one than a note's `source_path` leads to."""
    return note is not None and (note.source_path is None or path_from(note.source_path) != path)


def _change(
    note: Document, present: str, text: str, base: FileContent | None, file: FileContent, name: str
) -> NoteChange | None:
    """Return the change of a note that its file asks for; None if it asks for none.

    A title or tags that kb wrote to the file, and that somebody removed there, are removed from the note. `name` is the
    title that a note has from the name of its file.
    """
    before, after = set((base.tags if base else None) or ()), set(file.tags or ())
    shows_tags = base is not None and file.tags is not None
    title = _new_title(note, base, file) if base else None
    change = NoteChange(
        NO_EDIT if text == present else Edit(text=text),
        _title_in_json(note, present, text, name) if title is None else title,
        sorted(after - before) if shows_tags else (),
        sorted(before - after) if shows_tags else (),
        (note.content_hash,),
        inline_tags=True,
    )
    return change if change != NoteChange(if_match=change.if_match, inline_tags=True) else None


def _new_title(note: Document, base: FileContent, file: FileContent) -> str | None:
    """Return the new title of a note; empty if it comes from the text again, None if it stays."""
    if "title" in base.own and base.title and not file.title:
        return NO_TITLE
    return file.title if file.title not in (None, base.title, note.title) else None


def _title_in_json(note: Document, present: str, text: str, name: str) -> str | None:
    """Return the new title that the text of a note with a title of its own got in JSON, where kb reads none."""
    title = None if front_matter(text).title else own_title(text)
    is_new = title not in ("", None, own_title(present), note.title)
    return title if is_new and note.title_given and note.title != name else None


def _passes(error: Exception) -> bool:
    """Return whether a file may be taken later although it stays as it is."""
    if isinstance(error, KbError):
        return error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return isinstance(error, OSError)


def _reason(error: Exception) -> str:
    """Return why kb cannot take a file."""
    if isinstance(error, KbError):
        return error.detail
    if isinstance(error, UnicodeDecodeError):
        return "It is not UTF-8 text."
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
