"""The folders that the engine keeps in step: the notes folder, the inbox, and vaults that kb also writes to."""

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from kb.api.errors import Invalid, NoNotesFolder, SettingError
from kb.api.fields import NotesFolderAction
from kb.api.folder_models import NotesFolderStatus, WatchRecord, WatchRequest
from kb.backup.swap import TAKEN
from kb.documents.watched_folders import watched
from kb.folders.disk_view import place_of
from kb.notes_folder import marker
from kb.notes_folder.folder import NotesFolder
from kb.notes_folder.parts import FolderParts
from kb.notes_folder.vault import Vault
from kb.settings import Settings
from kb.store.rows import SyncedFolder

logger = logging.getLogger(__name__)

ELSEWHERE = (
    "The engine does not see the folder {}. A folder on another machine, or outside the engine's container, can"
    " only be read: add it without --both."
)


@dataclass
class KeptFolders(AbstractContextManager["KeptFolders"]):
    """Starts and stops the threads of the folders.

    Args:
        parts: what all folders need.
        settings: the settings, which name the notes folder and places of kb itself.
    """

    parts: FolderParts
    settings: Settings
    _running: dict[str, NotesFolder] = field(default_factory=dict)
    _inbox: NotesFolder | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        if root := self.settings.notes_dir:
            check_folder("KB_NOTES_DIR", root, self._own_places())
            self._start(NotesFolder(replace(self.parts, root=root.absolute())))
        self.follow()
        return self

    def __exit__(self, *error: object) -> None:
        for prefix in [*self._running]:
            self._stop(prefix)

    def inbox(self, settings: Settings) -> NotesFolder | None:
        """Return the inbox, whose thread is not started yet, or None if there is none."""
        self._inbox = None
        if settings.inbox_dir is None:
            return None
        root = settings.inbox_dir.absolute()
        kept = self.settings.data_dir / TAKEN
        parts = replace(self.parts, root=root, prefix=f"{root.as_posix()}/", direction="in", all_files=True)
        self._inbox = NotesFolder(parts, read_taken(kept, root))
        return self._inbox

    def follow(self) -> None:
        """Keep the vaults that the database names now, and no others."""
        with self._lock:
            with self.parts.store.read() as tx:
                wanted = dict(self._vaults(watched(tx)))
            for prefix, folder in [*self._running.items()]:
                if prefix and (prefix not in wanted or folder.parts != wanted[prefix][0]):
                    self._stop(prefix, for_good=prefix not in wanted)
            for prefix in wanted.keys() - self._running.keys():
                parts, watch_id = wanted[prefix]
                self._start(Vault(parts, watch_id))

    def _vaults(
        self, known: Iterator[tuple[SyncedFolder, WatchRecord]]
    ) -> Iterator[tuple[str, tuple[FolderParts, str]]]:
        for folder, record in known:
            if folder.is_kept:
                parts = replace(
                    self.parts,
                    root=Path(folder.path),
                    prefix=folder.prefix,
                    all_files=True,
                    tags=tuple(record.tags),
                    exclude=tuple(record.exclude),
                    new_notes=None if self.settings.notes_dir else record.new_notes,
                    new_since=record.kept_since or self.parts.new_since,
                )
                yield folder.prefix, (parts, record.id)

    def check(self, folder: SyncedFolder, request: WatchRequest) -> None:
        """Refuse a vault that is not on this machine, or overlaps another place of kb.

        Raises:
            Invalid: the engine cannot keep it.
        """
        root = Path(folder.path)
        if request.place != place_of(root):
            raise Invalid(ELSEWHERE.format(root))
        others = {f"the folder {name.rstrip('/')}": each.parts.root for name, each in self._running.items() if name}
        others.pop(f"the folder {folder.prefix.rstrip('/')}", None)
        try:
            check_folder("path", root, self._own_places() | {"KB_NOTES_DIR": self.settings.notes_dir} | others)
        except SettingError as error:
            raise Invalid(error.detail) from None

    def _own_places(self) -> dict[str, Path | None]:
        settings = self.settings
        inbox = self._inbox.parts.root if self._inbox else settings.inbox_dir
        return {"KB_DATA_DIR": settings.data_dir, "KB_INBOX_DIR": inbox, "KB_BACKUP_DIR": settings.backup_dir}

    def _start(self, folder: NotesFolder) -> None:
        self._running[folder.parts.prefix] = folder
        folder.__enter__()

    def _stop(self, prefix: str, *, for_good: bool = False) -> None:
        folder = self._running.pop(prefix)
        folder.__exit__(None, None, None)
        if for_good:
            with suppress(OSError):
                marker.remove(folder.parts.root)
            with self.parts.store.write() as tx:
                tx.note_files(prefix).forget()

    def status(self) -> NotesFolderStatus | None:
        """Return the state of the notes folder, or None if there is none."""
        return self._running[""].status() if "" in self._running else None

    def act(self, action: NotesFolderAction, name: str = "") -> NotesFolderStatus:
        """Decide about missing files of a folder, by its name; return its state.

        Raises:
            NoNotesFolder: the engine does not keep this folder.
            NotesFolderElsewhere: another engine holds it.
        """
        folder = self._running.get(f"{name.rstrip('/')}/" if name else "")
        if folder is None:
            raise NoNotesFolder
        return folder.act(action)

    def troubles(self) -> Iterator[tuple[str, str]]:
        """Yield the notes folder and the inbox if they need attention, with the first reason."""
        for folder in filter(None, (self._running.get(""), self._inbox)):
            status = folder.status()
            problems = (f"{item.path}: {item.reason}" for item in status.problems)
            reasons = [*status.trouble, status.stopped, *status.withheld, *problems]
            if first := next(filter(None, reasons), None):
                yield folder.parts.name, first


def check_folder(name: str, root: Path, others: Mapping[str, Path | None]) -> None:
    """Refuse a folder in which other parts of kb work, or that is in one of theirs.

    Raises:
        SettingError: the folder cannot be used.
    """
    for other_name, other in others.items():
        if other is None:
            continue
        one, two = root.resolve(), other.resolve()
        if one.is_relative_to(two) or two.is_relative_to(one):
            raise SettingError(f"{name}: {other_name} is {other}. Choose a separate folder.")
    if root.exists() and not root.is_dir():
        raise SettingError(f"{name}: {root} is not a folder. Choose another one.")


def read_taken(file: Path, root: Path) -> dict[str, tuple[int, int]]:
    """Return the files that an earlier version of kb took from the inbox, with their times and sizes."""
    try:
        known = {Path(path): (int(time), int(size)) for path, (time, size) in json.loads(file.read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
    return {path.relative_to(root).as_posix(): state for path, state in known.items() if path.is_relative_to(root)}
