"""Back up the database and its files at one point in time, while the engine runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from filelock import FileLock, Timeout

from kb import __version__, clock
from kb.api.errors import StoreError
from kb.backup.objects import damaged_objects
from kb.backup.prune import prune, version_fault
from kb.backup.storage import (
    ARCHIVE,
    LOCK,
    STAGED,
    BackupManifest,
    Collector,
    FolderWriter,
    Writer,
    backup_folders,
    discarded_unless_finished,
    make_source,
    object_name,
    stream_digest,
    write_to,
)
from kb.backup.swap import finish_restore
from kb.blobs.folder import KeptFiles
from kb.filesystem import give_to_owner
from kb.settings import Settings
from kb.store.sqlite.backup import Snapshot

logger = logging.getLogger(__name__)

MOST_OPEN: Final = 256
"""The number of new files that may be opened while writers wait; if more files are new, kb copies them first."""


@dataclass(frozen=True, slots=True)
class BackupResult:
    """A finished backup.

    Args:
        path: the folder or archive.
        manifest: its contents.
        added: the number of files that no earlier backup in the folder contains.
        absent: the number of files that are neither kept nor in an earlier backup: they were not kept, or are lost.
        healed: the digests of damaged files in the folder that were copied again, for all backups.
        damaged: the digests of damaged files in the folder that could not be copied again.
    """

    path: Path
    manifest: BackupManifest
    added: int
    absent: int
    healed: frozenset[str] = frozenset()
    damaged: frozenset[str] = frozenset()

    @property
    def warnings(self) -> list[str]:
        """Messages for everybody who relies on the backups."""
        lines = [
            f"the file {name} is damaged or missing; an earlier backup may have it" for name in self.manifest.missing
        ]
        if self.absent:
            lines.append(
                f"the backup lacks {self.absent} files of documents, because KB_KEEP_FILES was off or they are lost;"
                " 'kb doctor' reports them"
            )
        if self.healed:
            lines.append(f"{len(self.healed)} damaged files in the backup folder were copied again: check its disk")
        if self.damaged:
            lines.append(
                f"{len(self.damaged)} damaged files in the backup folder, such as {object_name(min(self.damaged))},"
                " cannot be copied again, because the data folder does not have them; earlier backups lack them:"
                " restore these with --without-damaged"
            )
        if fault := version_fault(self.manifest, self.path.name):
            lines.append(f"{fault} This backup does not replace earlier ones.")
        return lines


def back_up(settings: Settings, target: Path, keep: int, checkpoint: Callable[[], None] = lambda: None) -> BackupResult:
    """Make a backup in an archive (`.tar`), or in the folder `target`, which keeps its newest `keep` backups.

    With KB_BACKUP_KEY it is sealed. It shows one point in time: files are listed and opened while nobody can write, so
    that none is deleted before it is copied. An interrupted restore is completed first. `checkpoint` is called
    regularly and may stop the work by raising an error.

    Raises:
        StoreError: the database is unreadable or damaged, or the backup cannot be written. Nothing is left of it.
    """
    finish_restore(settings)
    refuse_own_files(settings, target)
    path = settings.database_path
    try:
        with (
            _sole_writer(target),
            closing(Snapshot(path)) as moment,
            discarded_unless_finished(write_to(target, settings.backup_key)) as writer,
        ):
            found = _damaged_objects(settings, target, writer, checkpoint)
            copier = Copier(settings, moment, writer, checkpoint)
            manifest = copier.copy()
            left = writer.damaged if isinstance(writer, FolderWriter) else set()
            made = BackupResult(
                writer.finish(manifest), manifest, copier.added, copier.absent, found - left, found & left
            )
            if target.suffix != ARCHIVE:
                prune(target, keep, manifest.source)
                give_to_owner(target, target)
    except OSError as error:
        raise StoreError(f"kb cannot write the backup {target}: {error.strerror or error}.") from error
    return made


def _damaged_objects(settings: Settings, root: Path, writer: Writer, checkpoint: Callable[[], None]) -> frozenset[str]:
    """Find damaged files of earlier backups, and keep the writer from using them again; return their digests."""
    if not isinstance(writer, FolderWriter):
        return frozenset()
    originals = KeptFiles(settings.files_dir)

    def size_of(digest: str) -> int | None:
        path = originals.path(digest)
        return path.stat().st_size if path.exists() else None

    writer.damaged = damaged_objects(root, size_of, checkpoint)
    return frozenset(writer.damaged)


class Copier:
    """Copies the files at one point in time, then the database.

    Args:
        settings: the settings of the engine.
        moment: the snapshot of the database.
        writer: the target.
        checkpoint: is called regularly and may stop the work by raising an error.
    """

    def __init__(self, settings: Settings, moment: Snapshot, writer: Collector, checkpoint: Callable[[], None]) -> None:
        self.added = self.absent = 0
        self._originals = KeptFiles(settings.files_dir)
        self._staging = settings.staging_dir
        self._source = make_source(settings.data_dir)
        self._moment = moment
        self._writer = writer
        self._checkpoint = checkpoint
        self._damaged: set[Path] = set()

    def copy(self) -> BackupManifest:
        """Copy everything; return the manifest."""
        with ExitStack() as stack:
            while True:
                with self._moment.taken():
                    originals = self._originals.digests()
                    staged = [staged_file for staged_file in self._moment.staged() if STAGED.fullmatch(staged_file[0])]
                    needed = self._moment.file_hashes()
                    paths = self._paths(originals, staged)
                    missing = {path: digest for path, digest in paths.items() if not self._has(path, digest)}
                    existing = [path for path in missing if path.exists()]
                    if len(existing) <= MOST_OPEN:
                        made_at = clock.own.now().isoformat()
                        opened = {path: stack.enter_context(path.open("rb")) for path in existing}
                        break
                for path in existing:
                    with suppress(FileNotFoundError), path.open("rb") as file:
                        self._put(path, file, missing[path])
            paths |= {path: self._put(path, file, missing[path]) for path, file in opened.items()}
        lost = self._damaged | {path for path in missing if path not in opened}
        # Needed files that an earlier backup has. Other files that are missing may never have been kept.
        saved = {digest for digest in needed - originals if self._writer.has(digest)}
        self.absent = len(needed - originals - saved)
        self._moment.copy(self._writer.database, self._checkpoint)
        with self._writer.database.open("rb") as database:
            digest = stream_digest(database)
        return BackupManifest(
            made_at=made_at,
            kb=__version__,
            schema=self._moment.schema_version,
            database=digest,
            counts=self._moment.counts(),
            originals=sorted(
                saved | {original for original in originals if self._originals.path(original) not in lost}
            ),
            staged={name: str(paths[self._staging / name]) for name, _ in staged if self._staging / name not in lost},
            missing=sorted(map(str, lost | {self._originals.path(digest) for digest in saved})),
            source=self._source,
        )

    def _paths(self, originals: Iterable[str], staged: Iterable[tuple[str, str | None]]) -> dict[Path, str | None]:
        digests: dict[Path, str | None] = {self._originals.path(digest): digest for digest in originals}
        return digests | {self._staging / name: digest for name, digest in staged}

    def _has(self, path: Path, digest: str | None) -> bool:
        return path in self._damaged or (digest is not None and self._writer.has(digest))

    def _put(self, path: Path, file: BinaryIO, expected: str | None) -> str:
        """Copy a file; a damaged file does not replace an intact copy."""
        self._checkpoint()
        digest = self._writer.put(file)
        if expected not in (None, digest):
            self._damaged.add(path)
        self.added += 1
        return digest


def refuse_own_files(settings: Settings, target: Path) -> None:
    """Refuse a folder among the files of kb, which removes unknown files there.

    Raises:
        StoreError: the target is in one of them.
    """
    whole = target.resolve()
    for own in (settings.files_dir, settings.staging_dir):
        if whole.is_relative_to(own.resolve()):
            raise StoreError(f"kb keeps its own files in {own}. Choose a separate folder for backups.")


def refuse_occupied(folder: Path) -> None:
    """Refuse a folder for backups that contains other files.

    Raises:
        StoreError: the folder contains other files and no backup.
    """
    is_ours = not folder.exists() or (folder / LOCK).exists() or backup_folders(folder)
    if not is_ours and any(path.name != "lost+found" for path in folder.iterdir()):
        raise StoreError(f"{folder} contains other files but no backups. Choose another folder.")


@contextmanager
def _sole_writer(target: Path) -> Iterator[None]:
    """Keep two backups from removing each other's files."""
    lock = target.with_name(f"{target.name}.lock") if target.suffix == ARCHIVE else target / LOCK
    if target.suffix != ARCHIVE:
        refuse_occupied(target)
    lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        acquired = FileLock(lock, timeout=0).acquire()
    except Timeout:
        raise StoreError(f"Another backup is being written to {target}. Try again once it has finished.") from None
    try:
        with acquired:
            yield
    finally:
        if target.suffix == ARCHIVE:
            lock.unlink(missing_ok=True)
