"""Keeps a folder and the documents in it in step, in a thread of the engine."""

import asyncio
import logging
import stat
import threading
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Final
from uuid import uuid4

from kb.api.errors import NotesFolderElsewhere, Stopped
from kb.api.fields import NotesFolderAction
from kb.api.folder_models import NotesFolderProblem, NotesFolderStatus
from kb.clock import shown, uptime
from kb.folders.deletions import remembered
from kb.folders.disk_view import describe_mounts
from kb.folders.watching import watch
from kb.notes_folder import disk, marker
from kb.notes_folder.attachments import Attachments, unwritten
from kb.notes_folder.file_text import claim, fields_beside, parsed
from kb.notes_folder.incoming import Incoming, Look
from kb.notes_folder.outgoing import Outgoing
from kb.notes_folder.parts import FILE, FolderParts, text_of
from kb.notes_folder.troubles import FILES, NOTES, Troubles
from kb.open_folder import Linked
from kb.store.rows import Author, NoteFile, NotesFolderState
from kb.threads import BackgroundThread

logger = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 0.5
POLL_SECONDS: Final = 2.0
"""kb looks this often at a folder that it only reads: a scanner in the network may write there."""

RETRY_SECONDS: Final = 2.0
"""The pause before kb looks for a folder again that is not there."""

LOOK_SECONDS: Final = 60.0
"""kb looks at the folder this often even without a notification: network file systems send none for other machines."""

REST: Final = 4
"""The least pause after a look that must be repeated, as a multiple of its duration."""

IDLE_REST: Final = 20
"""The least pause after a tick without a change, as a multiple of its duration: it compares all notes."""

LEASE_SECONDS: Final = 30.0
"""An engine that does not renew its hold on the folder for this long loses it to another one."""

RENEW_SECONDS: Final = 10.0
MOST_SHOWN: Final = 100

OTHER_FOLDER: Final = (
    "{} is not the folder that kb used before: its file {} is missing. Is its disk connected? If this is the right"
    " folder, run 'kb notes restore'."
)

FAULT: Final = "kb could not keep the folder {} in sync, and is trying again. The reason: {}. The log has more."
MOST_FRAMES: Final = 20
MOST_OF_ERROR: Final = 300

TAKEN: Final = (
    "Another kb is using the folder {} now, and the two would overwrite each other's files. Stop one of them, then run"
    " 'kb notes restore'."
)


class NotesFolder(BackgroundThread):
    """Takes changes of the files into the documents, and writes each note to a file if kb also writes to the folder.

    Args:
        taken: the states of files that an earlier version of kb took from an inbox.
    """

    def __init__(self, parts: FolderParts, taken: Mapping[str, tuple[int, int]] | None = None) -> None:
        super().__init__(f"kb-{parts.name.removeprefix('the ').replace(' ', '-')}")
        self.parts = replace(parts, checkpoint=self._check, found={})
        self._root = parts.root
        self._incoming = Incoming(self.parts)
        self._outgoing = Outgoing(self.parts)
        self._look_seconds = LOOK_SECONDS if parts.writes else POLL_SECONDS
        self._attachments = Attachments(self.parts, taken or {})
        self._session = uuid4().hex
        self._lock = threading.Lock()
        self._confirmed: NotesFolderAction | None = None
        self._is_prepared = False
        self._holds = False
        self._renewed = float("-inf")
        self._is_due, self._due_at, self._looked = True, 0.0, 0.0
        self._look: Look | None = None
        self._stopped: str | None = None
        self._fault: str | None = None
        self._seen_at: str | None = None
        self._troubles, self._trouble = Troubles(parts.name, NOTES if parts.writes else FILES), list[str]()

    def __exit__(self, *_: object) -> None:
        """Stop, and let another engine have the folder."""
        super().__exit__()
        self.release()

    def release(self) -> None:
        """Release the folder."""
        if self._holds:
            with self.parts.store.write() as tx:
                self.parts.files(tx).release(self._session)
            self._holds = False

    def status(self) -> NotesFolderStatus:
        with self._lock:
            look, stopped = self._look, self._stopped or self._fault
            problems = dict(look.problems) if look else {}
            problems |= {path: reason for _, path, reason in self._outgoing.failed.copy().values()}
            problems |= self._attachments.problems.copy()
            withheld = [each.reason for each in look.withheld] if look else []
            return NotesFolderStatus(
                path=str(self._root),
                held=self._holds,
                files=self._incoming.files,
                to_read=self._incoming.unread,
                waiting=max(self._outgoing.waiting, 0),
                trouble=self._trouble,
                stopped=stopped,
                withheld=withheld,
                conflicts=look.scan.conflicts[:MOST_SHOWN] if look else [],
                problems=[
                    NotesFolderProblem(path=path, reason=reason)
                    for path, reason in sorted(problems.items())[:MOST_SHOWN]
                ],
                seen_at=self._seen_at,
            )

    def act(self, action: NotesFolderAction) -> NotesFolderStatus:
        """Confirm that missing files were deleted on purpose, or have them written again.

        Raises:
            NotesFolderElsewhere: another engine holds the folder.
        """
        if not self._holds:
            raise NotesFolderElsewhere
        with self._lock:
            self._confirmed = action
            if self._look:
                self._look.withheld.clear()
        return self.status()

    def step(self, *, is_changed: bool = True) -> None:
        """Take changes of files, if that is due, then write changed notes."""
        if not self._take_lease():
            return
        with self._lock:
            confirmed, self._confirmed = self._confirmed, None
        reason = self._prepare(confirmed)
        with self._lock:
            self._stopped = reason
        if reason:
            self._is_due = True
            self._describe_trouble()
            return
        if confirmed == "restore":
            self._forget_missing()
        is_due = time.monotonic() >= (self._due_at if self._is_due else self._looked + self._look_seconds)
        if is_changed or is_due or confirmed:
            self._take(is_sure=confirmed == "delete")
        look = self._look or Look(disk.Scan())
        if self.parts.writes:
            self._is_due = self._outgoing.write(look.named, look.problems) or self._is_due
            self._attachments.write()
        with self._lock:
            self._fault = None
        self._describe_trouble()

    def _take(self, *, is_sure: bool) -> None:
        began = time.monotonic()
        with self.parts.store.read() as tx:
            known = self.parts.files(tx).folder()
        mounts = describe_mounts(self._root)
        look = self._incoming.look(f"{FILE}\n{uuid4().hex}", (known.mounts, mounts), is_sure=is_sure)
        notes = Author(FILE, operation_key=f"{FILE}\n{uuid4().hex}")
        devices = (known.mounts, mounts)
        is_done = self._attachments.look(look.scan, devices, notes, is_sure=is_sure, is_new=look.has_taken)
        look.is_settled = look.is_settled and is_done
        look.withheld += self._attachments.withheld
        left = [path for each in look.withheld for path in each.paths]
        noted = remembered(known.mounts, mounts, left, look.emptied)
        if noted != known.mounts:
            with self.parts.store.write() as tx:
                self.parts.files(tx).set_folder(replace(known, mounts=noted))
        if {each.reason for each in look.withheld} - _reasons(self._look):
            logger.warning("kb kept the documents of files that are missing from %s; see 'kb notes'", self.parts.name)
        with self._lock:
            self._look, self._seen_at = look, shown(time.time())
        self._is_due, self._looked = not look.is_settled, time.monotonic()
        self._due_at = time.monotonic() + min(REST * (time.monotonic() - began), RETRY_SECONDS)

    def _describe_trouble(self) -> None:
        """Say which files cannot be read or written, or why the folder cannot be used."""
        if self._stopped or self._fault:
            with self.parts.store.read() as tx:
                self._outgoing.waiting = len(self.parts.files(tx).unwritten())
            faults = Counter({self._stopped or self._fault or "": 0})
        else:
            faults = Counter(reason for _, _, reason in self._outgoing.failed.values())
            scan = self._look.scan if self._look else disk.Scan()
            faults.update(scan.problems[path] for path in scan.unreadable)
        trouble = self._troubles.described(faults, self._outgoing.waiting)
        with self._lock:
            self._trouble = trouble

    def _take_lease(self) -> bool:
        """Return whether this engine holds the folder; others of a shared database may."""
        store, now = self.parts.store, uptime()  # includes sleep, in which another engine may have taken it
        if self._holds and (not store.is_shared or now - self._renewed < RENEW_SECONDS):
            return True
        with store.write() as tx:
            holds = self.parts.files(tx).take(self._session, LEASE_SECONDS if store.is_shared else 0.0)
        self._renewed = now
        if holds and not self._holds:
            self._is_prepared = False
        self._holds = holds
        return holds

    def _prepare(self, confirmed: NotesFolderAction | None) -> str | None:
        """Make sure that this is the folder that kb used before, or a new one; return why it cannot be used."""
        with self.parts.store.read() as tx:
            known = self.parts.files(tx).folder()
        is_new = known.path != str(self._root)
        try:
            if is_new and self.parts.writes:
                self._root.mkdir(parents=True, exist_ok=True)
            if not self._root.is_dir():
                return f"The folder {self._root} does not exist. Is its disk connected?"
            if not self.parts.writes:
                return self._begin_reading(known)
            sessions = marker.sessions(self._root)
            if sessions is not None and self._is_prepared and not confirmed:
                return None if self._session in sessions else TAKEN.format(self._root)
            if sessions is None and not is_new and not self._is_same(confirmed):
                return OTHER_FOLDER.format(self._root, marker.NAME)
            self._begin(known, sessions or [], is_new=is_new)
        except OSError as error:
            return f"kb cannot use the folder {self._root}: {error.strerror or error}."
        return None

    def _begin_reading(self, known: NotesFolderState) -> str | None:
        """Begin to read a folder in which kb leaves no mark."""
        if known.session != self._session:
            with self.parts.store.write() as tx:
                self.parts.files(tx).set_folder(NotesFolderState(str(self._root), self._session, known.mounts))
        return None

    def _is_same(self, confirmed: NotesFolderAction | None) -> bool:
        """Return whether the folder is the same although its mark is missing: a known file is as it was."""
        if confirmed:
            return True
        with self.parts.store.read() as tx:
            rows = self.parts.files(tx).all()
        return any(self._state_at(row.path) == row.state for row in rows)

    def _state_at(self, path: str) -> str | None:
        """Return the state of a file; None if there is none, or something else, such as a folder."""
        with suppress(Linked):
            status = disk.status_at(self.parts.place(path))
            return disk.state_of(status) if status and stat.S_ISREG(status.st_mode) else None
        return None

    def _begin(self, known: NotesFolderState, sessions: list[str], *, is_new: bool) -> None:
        """Begin to use the folder: mark it, and forget its files if their records are from another time."""
        is_outdated = not is_new and bool(sessions) and known.session not in sessions
        if is_outdated:
            logger.warning("the notes folder or the database returned to an earlier state: kb compares all files")
        marker.write(self._root, self._session, known.session)
        with self.parts.store.write() as tx:
            if is_new and known.session not in sessions:
                self.parts.files(tx).clear()
            if is_outdated:
                self.parts.files(tx).distrust()
            mounts = known.mounts if not is_new else ""
            self.parts.files(tx).set_folder(NotesFolderState(str(self._root), self._session, mounts))
        self._clear_parts()
        self._is_prepared, self._is_due = True, True

    def _clear_parts(self) -> None:
        """Remove the hidden files of an engine that was killed, and keep text that only they contain."""
        with self.parts.store.read() as tx:
            rows = {row.document_id: row for row in self.parts.files(tx).all()}
        digests = {row.digest for row in rows.values()}
        for part in self.parts.scan(()).parts:
            with suppress(FileNotFoundError, disk.Changed, ValueError):
                content, _ = disk.read(part, 2 * self.parts.most_bytes)
                is_kept = disk.digest_of(content) in digests or disk.has_twin(part, content)
                if content and not is_kept and not self._is_known(part.name, content, rows):
                    disk.set_aside(part.beside("recovered.md"), content, self.parts.today())
                disk.discard(part)

    def _is_known(self, name: str, content: bytes, rows: Mapping[int, NoteFile]) -> bool:
        """Return whether a note, or its file, contains the text of a hidden file."""
        text = content.decode("utf-8-sig", errors="replace")
        named = claim(text)
        note = disk.note_in(name) or (named.document_id if named else None)
        if note is None:
            return False
        with self.parts.store.read() as tx:
            present, base = text_of(tx, note), self.parts.base(tx, rows.get(note))
        is_base = base is not None and parsed(text, base.own).text == base.text
        return is_base or parsed(text, fields_beside(present)).text == present

    def _forget_missing(self) -> None:
        """Forget files that are missing, so that they are written again."""
        with self.parts.store.write() as tx:
            for row in self.parts.files(tx).all():
                if self._state_at(row.path) is None:
                    self.parts.files(tx).remove(row.document_id)
            for row in self.parts.files(tx).attachments():
                if self._state_at(row.path) is None:
                    self.parts.files(tx).put(unwritten(row), b"")

    def _check(self) -> None:
        if self._stopping.is_set():
            raise Stopped

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                asyncio.run(self._follow())
            except Stopped:
                return
            except Exception as error:  # noqa: BLE001 - the next step may succeed
                self._note_fault(error)
            self._stopping.wait(RETRY_SECONDS)

    def _note_fault(self, error: Exception) -> None:
        """Show why the last step failed, and log it once, with the end of its traceback."""
        fault = FAULT.format(self._root, f"{type(error).__name__}: {str(error)[:MOST_OF_ERROR]}")
        if fault != self._fault:
            lines = "".join(traceback.format_tb(error.__traceback__, -MOST_FRAMES))
            logger.error("%s could not be kept in sync; kb will retry: %r\n%s", self.parts.name, error, lines)
        with self._lock:
            self._fault = fault
        self._describe_trouble()

    async def _follow(self) -> None:
        """Look at every change and at every tick, until the folder is gone."""
        self.step()
        if self._stopped or not self._holds:
            return
        async with aclosing(watch(self._root, logger.warning)) as ticks:
            is_first, rests_until = True, 0.0  # something may have changed before watching began
            async for is_changed in ticks:
                if self._stopping.is_set():
                    return
                began = time.monotonic()
                if began < rests_until and not (is_changed or self._is_due):
                    continue
                self.step(is_changed=is_changed or is_first)
                is_first, ended = False, time.monotonic()
                rests_until = ended + min(IDLE_REST * (ended - began), RETRY_SECONDS)
                if self._stopped:
                    return


def _reasons(look: Look | None) -> set[str]:
    return {each.reason for each in look.withheld} if look else set()
