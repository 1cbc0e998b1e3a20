"""A vault: a folder that kb had only read, and now also writes to."""

import time
from collections import Counter
from contextlib import suppress
from typing import Final

from kb.api.errors import NotFound
from kb.api.folder_models import FailedFile, LeftOutFiles, SyncReport, WatchReport
from kb.api.limits import MAX_REASONS
from kb.documents import watched_folders
from kb.folders.left_out import LeftOut, left_out
from kb.notes_folder.disk import Scan
from kb.notes_folder.folder import NotesFolder
from kb.notes_folder.parts import FolderParts
from kb.notes_folder.paths import free_path, path_of
from kb.store.rows import Author

LOOK_SECONDS: Final = 2.0
"""How often kb reads the options of the folder, and requests to look at it now."""

REPORT_SECONDS: Final = 60.0
"""How often kb records that it keeps the folder."""

AUTHOR: Final = Author("file", why="it got a file in the folder for new notes")


class Vault(NotesFolder):
    """Keeps the folder, and reports as the programs do that only read one.

    Args:
        watch_id: the id of its watch.
    """

    def __init__(self, parts: FolderParts, watch_id: str) -> None:
        super().__init__(parts)
        self._watch_id = watch_id
        self._read_at = self._reported_at = float("-inf")
        self._asked_at: str | None = None
        self._last: WatchReport | None = None
        self._is_over = False
        self._placed_to = 0

    def step(self, *, is_changed: bool = True) -> None:
        """Do as the notes folder does, unless the folder has been removed or taken over by another machine."""
        self._read_options()
        if self._is_over:
            return
        self._place_new_notes()
        super().step(is_changed=is_changed or self._asked_at is not None)
        self._report()

    def _read_options(self) -> None:
        if time.monotonic() - self._read_at < LOOK_SECONDS:
            return
        self._read_at = time.monotonic()
        with self.parts.store.read() as tx:
            try:
                folder, record = watched_folders.find(tx, self._watch_id)
            except NotFound:
                self._is_over = True
                return
        self._asked_at, self._is_over = record.asked_at, not folder.is_kept

    def _place_new_notes(self) -> None:
        """Give new notes without a path one in the folder for new notes. Older notes stay where they are."""
        if self.parts.new_notes is None or not self._holds:
            return
        with self.parts.store.read() as tx:
            ids = tx.note_files("").without_path(self._placed_to, self.parts.new_since)
            notes = [note for id_ in ids if (note := tx.documents.get(id_))]
        for note in notes:
            with self.parts.audited.write() as tx:
                wanted = "/".join(filter(None, [self.parts.new_notes.strip("/"), path_of(note)]))
                path = free_path(wanted, lambda path: self.parts.at_path(tx, path) is not None)
                if tx.documents.get(note.id):
                    tx.history.keep(note.id, AUTHOR)
                    self.parts.move(tx, note.id, path)
        self._placed_to = max(ids, default=self._placed_to)

    def _report(self) -> None:
        """Record the state of the folder if it has changed, if somebody asked, and every minute."""
        status = self.status()
        problems = [FailedFile(path=each.path, error=each.reason) for each in status.problems[:MAX_REASONS]]
        with self.parts.store.read() as tx:
            others = len(self.parts.files(tx).attachments())
        files, is_reading = status.files + others, status.to_read > 0
        added = files - status.to_read if is_reading else 0
        result = SyncReport(
            files=files,
            added=added,
            failed=len(status.problems),
            failures=problems,
            left_out=self._left_out(),
            kept=status.withheld,
        )
        error = " ".join(status.trouble) or status.stopped
        report = WatchReport(result=None if error else result, error=error, answers=self._asked_at)
        is_late = time.monotonic() - self._reported_at > REPORT_SECONDS
        if status.held and (report != self._last or is_late):
            self._reported_at, self._last = time.monotonic(), report
            with suppress(NotFound), self.parts.store.write() as tx:  # it may have ended
                watched_folders.report(tx, self._watch_id, report)
                watched_folders.note(tx, self._watch_id, is_syncing=is_reading)
            self._asked_at = None

    def _left_out(self) -> list[LeftOutFiles]:
        """Return the files and folders that the last look left out, by reason."""
        with self._lock:
            found = self._look.scan if self._look else Scan()
        paths = sorted(path.encode(errors="replace").decode() for path in found.links - found.ignored.keys())
        links = LeftOut("links, which kb doesn't follow in a folder that it also writes to", paths)
        return [
            LeftOutFiles(reason=group.reason, count=group.count, paths=list(group.paths[:MAX_REASONS]))
            for group in left_out([links], Counter(found.ignored.values()))[:MAX_REASONS]
        ]
