"""A folder whose files the engine takes in by itself."""

from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from kb.access.store import CallerStore
from kb.api.access import Caller
from kb.api.errors import KbError, SettingError
from kb.api.models import FileRequest
from kb.documents.submit import submit_file
from kb.store.rows import Author

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from kb.store.protocol import Store

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 2.0
"""How often is looked for files. One that two looks find the same is whole: whoever wrote it is done."""

TAKEN: Final = "inbox.json"
INBOX: Final = "inbox"
"""Who sends it, in histories and the audit log."""

State = tuple[int, int]
"""When a file was changed, in nanoseconds, and its size."""


class Inbox:
    """A thread that sends what is new or changed in a folder; files stay where they are, and so do their documents.

    Args:
        folder: is watched, with its folders; what is hidden, empty or a link is left alone.
        store: what gets the jobs.
        staging: where files wait for their job.
        data_dir: where is kept what was taken.
        wake: says that there is a new job.

    Raises:
        SettingError: there is no such folder.
    """

    def __init__(self, folder: Path, store: Store, staging: Path, data_dir: Path, wake: Callable[[], None]) -> None:
        if not folder.is_dir():
            raise SettingError(f"KB_INBOX_DIR: there is no folder {folder}")
        self._folder = folder.absolute()
        self._store = cast("Store", CallerStore(store, Caller(INBOX)))
        self._staging = staging
        self._kept = data_dir / TAKEN
        self._wake = wake
        self._taken = self._load()
        self._before: dict[str, State] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kb-inbox", daemon=True)

    def __enter__(self) -> None:
        """Start."""
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; what was not sent is sent by the next engine."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(POLL_SECONDS):
            try:
                self._look()
            except (OSError, KbError):
                logger.exception("the inbox %s could not be looked through; it is tried again", self._folder)

    def _look(self) -> None:
        """Send what has not changed since the last look and was not sent as it is."""
        now = dict(self._files(self._folder))
        new = [path for path, state in now.items() if self._before.get(path) == state != self._taken.get(path)]
        self._before = now
        for path in new:
            if self._stopping.is_set():
                return
            self._send(path)
            self._taken[path] = now[path]
        gone = self._taken.keys() - now.keys() if self._folder.is_dir() else ()
        for path in gone:
            del self._taken[path]
        if new or gone:
            part = self._kept.with_suffix(".part")
            part.write_text(json.dumps(self._taken))
            part.replace(self._kept)

    def _files(self, folder: Path) -> Iterator[tuple[str, State]]:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._files(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                state = entry.stat(follow_symlinks=False)
                if state.st_size and entry.path.isprintable():
                    yield entry.path, (state.st_mtime_ns, state.st_size)

    def _send(self, path: str) -> None:
        file = Path(path)
        with file.open("rb") as content:
            request = FileRequest(source_path=file.as_posix())
            accepted = submit_file(self._store, self._staging, content, file.name, request, author=Author(INBOX))
        logger.info("taken in from the inbox: %s", path, extra={"job_id": accepted.job_id})
        self._wake()

    def _load(self) -> dict[str, State]:
        try:
            return {path: (state[0], state[1]) for path, state in json.loads(self._kept.read_bytes()).items()}
        except (OSError, ValueError, TypeError, IndexError, AttributeError):
            return {}
