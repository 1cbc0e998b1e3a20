"""Add files automatically from a watched folder."""

import json
import logging
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final
from uuid import uuid4

from pydantic import ValidationError

from kb.access.restricted_store import restricted
from kb.api.errors import DiskFull, SettingError
from kb.api.job_models import FileRequest
from kb.api.rights import Caller
from kb.blobs.protocol import Blobs
from kb.documents.job_queue import submit_file
from kb.filesystem import sync
from kb.folders.temporary_files import is_leftover
from kb.store.protocol import Store
from kb.store.rows import Author
from kb.threads import BackgroundThread

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 2.0
"""The polling interval. A file is complete if two looks find it unchanged."""

RETRY_SECONDS: Final = 30.0
"""The pause after the disk was full or the folder unavailable."""

REST: Final = 10
"""The least pause after a look, as a multiple of its duration: an inbox may hold many files."""

TAKEN: Final = "inbox.json"
INBOX: Final = "inbox"
"""The author in histories and the audit log."""

State = tuple[int, int]
"""The modification time of a file, in nanoseconds, and its size."""


class Inbox(BackgroundThread):
    """Queues new and changed files of a folder; the files stay there, and deleting one keeps its document.

    Files that are not queued when it stops are queued by the next engine.

    Args:
        folder: the folder to watch, with its subfolders; hidden and empty files, links and leftovers of programs are
            skipped.
        store: receives the jobs.
        blobs: the storage for staged files.
        data_dir: the folder for the list of queued files.
        most_bytes: the maximum size of a file.
        wake: notifies the worker of a new job.
        report: receives the reason why something in the folder cannot be read, and None when that is over.

    Raises:
        SettingError: the folder does not exist, or kb itself writes there.
    """

    def __init__(
        self,
        folder: Path,
        store: Store,
        blobs: Blobs,
        data_dir: Path,
        most_bytes: int,
        wake: Callable[[], None],
        report: Callable[[str | None], None] = lambda _: None,
    ) -> None:
        check_inbox(folder, data_dir)
        super().__init__("kb-inbox")
        self._folder = folder.absolute()
        self._store = restricted(store, Caller(INBOX))
        self._blobs = blobs
        self._kept = data_dir / TAKEN
        self._most_bytes = most_bytes
        self._wake = wake
        self._tell = report
        self._taken = self._load()
        self._is_kept = True
        self._author = Author(INBOX)
        self._before: dict[str, State] = {}
        self._unreadable: dict[str, str] = {}
        self._seconds = POLL_SECONDS

    def _run(self) -> None:
        while not self._stopping.wait(self._seconds):
            try:
                self.look()
            except Exception as error:
                logger.exception("could not read the inbox %s; kb will retry", self._folder)
                self._tell(f"{type(error).__name__}: {error}")
                self._seconds = RETRY_SECONDS

    def look(self) -> None:
        """Queue files that have not changed since the last look and are not queued yet."""
        began, unreadable = time.monotonic(), dict[str, str]()
        self._author = Author(INBOX, operation_key=f"{INBOX}\n{uuid4().hex}")
        now = dict(self._files(self._folder, unreadable))
        self._seconds = max(POLL_SECONDS, REST * (time.monotonic() - began))
        new = [path for path, state in now.items() if self._before.get(path) == state != self._taken.get(path)]
        self._before = now
        try:
            for path in new:
                if self._stopping.is_set():
                    return
                self._take(path, now[path], unreadable)
            self._forget(now, unreadable)
        finally:
            self._report(unreadable)
            self._keep()

    def _files(self, folder: Path, unreadable: dict[str, str]) -> Iterator[tuple[str, State]]:
        """Yield the files below a folder; add unreadable paths and the reasons to `unreadable`."""
        try:
            with os.scandir(folder) as entries:
                ordered = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            unreadable[str(folder)] = error.strerror or str(error)
            return
        for entry in ordered:
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name.startswith(".") or is_leftover(entry.name, is_folder=is_folder):
                continue
            if is_folder:
                yield from self._files(Path(entry.path), unreadable)
                continue
            try:
                state = entry.stat(follow_symlinks=False)
            except OSError as error:
                unreadable[entry.path] = error.strerror or str(error)
                continue
            if stat.S_ISREG(state.st_mode) and state.st_size:
                yield entry.path, file_state(state)

    def _take(self, path: str, state: State, unreadable: dict[str, str]) -> None:
        """Queue a file and record that. Unreadable files are tried again, invalid ones are not."""
        try:
            if state[1] > self._most_bytes:
                logger.warning("skipped in the inbox: %r is larger than KB_MAX_UPLOAD_MB", path)
            elif not self._send(Path(path), state):
                return
        except ValidationError:
            logger.warning("skipped in the inbox: %r is not a valid source path", path)
        except OSError as error:
            if DiskFull.is_why(error):
                raise
            unreadable[path] = error.strerror or str(error)
            return
        self._taken[path] = state
        self._is_kept = False

    def _send(self, file: Path, state: State) -> bool:
        """Queue a file; return whether it is unchanged."""
        request = FileRequest(source_path=file.as_posix())
        with open(file, "rb", opener=open_no_link) as content:
            if file_state(os.fstat(content.fileno())) != state:
                return False
            accepted = submit_file(self._store, self._blobs, content, file.name, request, author=self._author)
        logger.info("added from the inbox", extra={"job_id": accepted.job_id})
        self._wake()
        return True

    def _forget(self, now: Mapping[str, State], unreadable: Iterable[str]) -> None:
        """Forget deleted files. An empty folder is more likely an unmounted disk."""
        away = tuple(f"{folder}{os.sep}" for folder in unreadable)
        for path in self._taken.keys() - now.keys() - set(unreadable) if now else ():
            if not path.startswith(away):
                del self._taken[path]
                self._is_kept = False

    def _report(self, unreadable: dict[str, str]) -> None:
        """Log each unreadable path once."""
        for path, reason in unreadable.items() - self._unreadable.items():
            logger.warning("could not read %r in the inbox; kb will retry: %s", path, reason)
        self._unreadable = unreadable
        self._tell(next((f"{path}: {reason}" for path, reason in unreadable.items()), None))

    def _keep(self) -> None:
        if self._is_kept:
            return
        part = self._kept.with_suffix(".part")
        part.write_text(json.dumps(self._taken))
        sync(part)
        part.replace(self._kept)
        self._is_kept = True

    def _load(self) -> dict[str, State]:
        try:
            return {path: (state[0], state[1]) for path, state in json.loads(self._kept.read_bytes()).items()}
        except (OSError, ValueError, TypeError, IndexError, AttributeError):
            return {}


def check_inbox(folder: Path, data_dir: Path) -> None:
    """Refuse a folder that cannot be the inbox.

    Raises:
        SettingError: the folder does not exist, or kb itself writes there.
    """
    if not folder.is_dir():
        raise SettingError(f"KB_INBOX_DIR: the folder {folder} does not exist. Create it, or name another folder.")
    if is_within(data_dir, folder):  # each queued file would create another one
        raise SettingError(f"KB_INBOX_DIR: kb keeps its own files in {folder}. Name another folder.")


def is_within(data_dir: Path, folder: Path) -> bool:
    """Return whether a folder visibly contains the data folder."""
    data_dir, folder = data_dir.resolve(), folder.resolve()
    return data_dir.is_relative_to(folder) and not any(
        part.startswith(".") for part in data_dir.relative_to(folder).parts
    )


def open_no_link(path: str, flags: int) -> int:
    """Open a file that may have become a link or a pipe since the look, without following or blocking."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def file_state(state: os.stat_result) -> State:
    """Return the state of a file, which changes with its content."""
    return state.st_mtime_ns, state.st_size
