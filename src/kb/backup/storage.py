"""Backups on disk: a folder with many backups, or an archive of one.

A folder:

    objects/ab/abcd…      files by the SHA-256 of their content, shared by all backups
    2026-11-21T…Z/        a backup: kb.db, manifest.json and manifest.json.sha256
    lock                  held while a backup is written

With a key (KB_BACKUP_KEY), a backup also has a `manifest.json.hmac`, which cannot be forged without the key. The
manifest names everything else.

An archive (`.tar`) has the same names, but no folder for its one backup. The name of an unfinished backup ends in
`.part`.
"""

from __future__ import annotations

import hmac
import io
import json
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, TypeVar
from uuid import uuid4

from pydantic import SecretStr, TypeAdapter, ValidationError

from kb import clock
from kb.api.errors import StoreError
from kb.api.overview_models import Seal
from kb.blobs.protocol import Readable
from kb.filesystem import open_regular, sync, sync_descriptor, write_private

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
DIGEST: Final = "manifest.json.sha256"
SEAL: Final = "manifest.json.hmac"
DATABASE: Final = "kb.db"
OBJECTS: Final = "objects"
LOCK: Final = "lock"
SOURCE: Final = "backup.id"
"""The file with the id of a data folder."""

PART: Final = ".part"
DAMAGED: Final = ".damaged"
"""The ending of a damaged file that was set aside."""
ARCHIVE: Final = ".tar"
STAMP: Final = "%Y-%m-%dT%H-%M-%S.%fZ"
NAME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}Z")
"""The name of a finished backup."""
DIGITS: Final = re.compile(r"[0-9a-f]{64}")
UNFINISHED: Final = re.compile(r"[0-9a-f]{32}")
"""The name, without its ending, of a file that is being copied to a backup."""
STAGED: Final = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]*")
"""The name of a staged file, in one folder."""
BLOCK: Final = 1 << 20
C = TypeVar("C", bound="Collector")
LARGEST_MANIFEST: Final = 1 << 28
"""In bytes: the manifest of a backup with about three million files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    """The contents of a backup.

    Args:
        made_at: the time of the backup, in UTC.
        kb: the version of kb that made it.
        schema: the version of the database's schema.
        database: the SHA-256 of the database.
        counts: row counts by table.
        originals: the SHA-256 of each kept file.
        staged: the name and SHA-256 of each staged file.
        missing: the files that could not be copied because they are damaged or missing.
        source: the id of the data folder, because several may have their backups in one folder; empty in old backups.
    """

    made_at: str
    kb: str
    schema: int
    database: str
    counts: dict[str, int]
    originals: list[str]
    staged: dict[str, str]
    missing: list[str]
    source: str = ""

    @property
    def objects(self) -> set[str]:
        return {*self.originals, *self.staged.values()}

    def dump(self) -> bytes:
        """Return the text of the manifest file."""
        return (json.dumps({"kb-backup": FORMAT} | asdict(self), indent=1) + "\n").encode()

    @classmethod
    def load(cls, raw: bytes) -> BackupManifest:
        """Return the manifest written by `dump`.

        Raises:
            ValueError: the text is not a manifest, or has another format.
        """
        try:
            fields: dict[str, Any] = json.loads(raw)
            if fields.pop("kb-backup", None) != FORMAT:
                raise ValueError("it has another format")
            if {"source", *fields} != cls.__dataclass_fields__.keys():
                raise ValueError("its fields are not the fields of a manifest")
            manifest = TypeAdapter(cls).validate_json(raw, strict=True)
        except (RecursionError, AttributeError, TypeError, ValidationError) as error:
            raise ValueError("it is not a manifest") from error
        are_digests = all(map(DIGITS.fullmatch, [manifest.database, *manifest.objects]))
        are_names = all(map(STAGED.fullmatch, manifest.staged))
        if not are_digests or not are_names:
            raise ValueError("it contains invalid file names")
        return manifest


def object_name(digest: str) -> str:
    """Return the name of a file within the backups."""
    return f"{OBJECTS}/{digest[:2]}/{digest}"


def copy(source: Readable, target: Path) -> str:
    """Write the rest of `source` to a new file and sync it to disk; return its SHA-256."""
    digest = sha256()
    with target.open("xb") as file:
        while block := source.read(BLOCK):
            digest.update(block)
            file.write(block)
        file.flush()
        sync_descriptor(file.fileno())
    return digest.hexdigest()


def stream_digest(file: BinaryIO) -> str:
    """Return the SHA-256 of the rest of a file."""
    return file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # a member of an archive reads like a file


class Collector(Protocol):
    """The target for copies of the files and the database."""

    database: Path
    """The path for the copy of the database."""

    def has(self, digest: str) -> bool: ...
    def put(self, file: BinaryIO) -> str:
        """Store a file; return its SHA-256."""

    def discard(self) -> None:
        """Remove unfinished files."""


class Writer(Collector, Protocol):
    """Writes one backup."""

    def finish(self, manifest: BackupManifest) -> Path:
        """Complete the backup on disk and give it its final name; return its path."""


class FolderWriter:
    """Writes the next backup of a folder."""

    def __init__(self, root: Path, key: SecretStr | None = None) -> None:
        self._root = root
        self._key = key
        self._objects = root / OBJECTS
        self._objects.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._target = root / _next_stamp(root)
        self._part = self._target.with_name(f"{self._target.name}{PART}")
        self._part.mkdir(mode=0o700)
        self.database = self._part / DATABASE
        self.damaged: set[str] = set()
        """The files of earlier backups that must not be used again."""

    def has(self, digest: str) -> bool:
        """Return whether a backup in the folder has this file, undamaged."""
        is_usable = bool(DIGITS.fullmatch(digest)) and digest not in self.damaged
        return is_usable and (self._root / object_name(digest)).exists()

    def put(self, file: BinaryIO) -> str:
        """Store a file for this and other backups; return its SHA-256."""
        part = self._objects / f"{uuid4().hex}{PART}"
        try:
            digest = copy(file, part)
            target = self._root / object_name(digest)
            target.parent.mkdir(exist_ok=True, mode=0o700)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        sync(target.parent)
        self.damaged.discard(digest)
        return digest

    def finish(self, manifest: BackupManifest) -> Path:
        """Give the backup its final name, once all of it is on disk."""
        for name, content in _signed(manifest, self._key):
            copy(io.BytesIO(content), self._part / name)
        for folder in (self._part, self._objects, self._root):
            sync(folder)
        self._part.rename(self._target)
        sync(self._root)
        return self._target

    def discard(self) -> None:
        shutil.rmtree(self._part, ignore_errors=True)


class ArchiveWriter:
    """Writes a backup into an archive, through a temporary folder next to it.

    Raises:
        StoreError: the temporary folder exists already.
    """

    def __init__(self, path: Path, key: SecretStr | None = None) -> None:
        self._path = path
        self._key = key
        self._folder = path.with_name(f"{path.name}{PART}")
        if self._folder.exists():
            raise StoreError(
                f"{self._folder} already exists. If it is left over from an interrupted backup, remove it."
            )
        self._folder.mkdir(mode=0o700)
        self._part = self._folder / path.name
        self._part.touch(mode=0o600)
        self._file = self._part.open("wb", buffering=0)
        self._tar = tarfile.open(fileobj=self._file, mode="w")  # noqa: SIM115 - `finish` closes it
        self._digests: set[str] = set()
        self.database = self._folder / DATABASE
        self.database.touch(mode=0o600)

    def has(self, digest: str) -> bool:
        """Return whether the archive has this file."""
        return digest in self._digests

    def put(self, file: BinaryIO) -> str:
        """Add a file; return its SHA-256."""
        digest = stream_digest(file)
        self._add(object_name(digest), file)
        self._digests.add(digest)
        return digest

    def finish(self, manifest: BackupManifest) -> Path:
        """Give the archive its final name, once it is on disk."""
        with self.database.open("rb") as database:
            self._add(DATABASE, database)
        for name, content in _signed(manifest, self._key):
            self._add(name, io.BytesIO(content))
        self._tar.close()
        sync_descriptor(self._file.fileno())
        self._part.replace(self._path)
        sync(self._path.parent)
        return self._path

    def discard(self) -> None:
        self._file.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _add(self, name: str, file: BinaryIO) -> None:
        member = tarfile.TarInfo(name)
        member.mode = 0o600
        member.size = file.seek(0, io.SEEK_END)
        file.seek(0)
        self._tar.addfile(member, file)


class OpenBackup:
    """A backup in a folder or in an open archive.

    Raises:
        StoreError: the manifest is unreadable or damaged.
    """

    def __init__(self, path: Path, key: SecretStr | None = None, tar: tarfile.TarFile | None = None) -> None:
        self.name = str(path)
        self._path = path
        self._tar = tar
        self.manifest, self.seal = _load(self, key)

    def open(self, name: str) -> BinaryIO:
        """Open a file of the backup."""
        if self._tar:
            return _open_member(self._tar, name)
        folder = self._path.parent if name.startswith(OBJECTS) else self._path
        return open_regular(folder / name)

    def is_there(self) -> bool:
        """Return whether the backup still exists: a later one may have pruned it."""
        return self._path.exists()


def _open_member(tar: tarfile.TarFile, name: str) -> BinaryIO:
    try:
        member = tar.getmember(name)
        is_plain = member.isreg() and not member.issparse()  # a link leads elsewhere, a sparse file may be endless
        file = tar.extractfile(member) if is_plain else None
    except (KeyError, tarfile.TarError) as error:
        raise FileNotFoundError(f"{name}: {error}") from error
    if file is None:
        raise FileNotFoundError(f"{name} is not a file")
    return file  # type: ignore[return-value]  # it reads like a file


@dataclass(frozen=True, slots=True)
class FoundBackup:
    """A backup found on disk. `open` raises a StoreError if its manifest is damaged or sealed with another key."""

    path: Path
    open: Callable[[], OpenBackup]


def write_to(path: Path, key: SecretStr | None) -> Writer:
    """Return a writer for a folder or an archive, which seals the backup if a key is given."""
    if path.suffix == ARCHIVE and not path.is_dir():
        return ArchiveWriter(path, key)
    return FolderWriter(path, key)


@contextmanager
def opened_backups(path: Path, key: SecretStr | None = None) -> Iterator[Sequence[FoundBackup]]:
    """Yield the backups of a folder, oldest first, or the one backup that `path` names.

    Raises:
        StoreError: `path` has no backups.
    """
    if path.is_file():
        try:
            tar = tarfile.open(path, "r:")  # noqa: SIM115 - separates an unreadable archive from errors inside
        except (OSError, tarfile.TarError) as error:
            raise StoreError(f"{path} is not a backup: {error}.") from error
        with tar:
            yield [FoundBackup(path, partial(OpenBackup, path, key, tar))]
    elif folders := [path] if (path / MANIFEST).exists() else backup_folders(path):
        yield [FoundBackup(folder, partial(OpenBackup, folder, key)) for folder in folders]
    else:
        raise StoreError(f"{path} contains no backup.")


def backup_folders(root: Path) -> list[Path]:
    """Return the folders of finished backups, oldest first."""
    return sorted(path for path in (root.iterdir() if root.is_dir() else ()) if NAME.fullmatch(path.name))


def source_of(folder: Path) -> str:
    """Return the id of the data folder that a backup is of; empty if that is unknown."""
    try:
        return _read_source(folder)
    except StoreError:
        return ""


@lru_cache(maxsize=1024)
def _read_source(folder: Path) -> str:
    return OpenBackup(folder).manifest.source


def own_backups(root: Path, source: str | None) -> list[Path]:
    """Return the finished backups of a data folder, oldest first; all of them if its id is unknown."""
    return [path for path in backup_folders(root) if source is None or source_of(path) in ("", source)]


def known_source(data_dir: Path) -> str | None:
    """Return the id of a data folder; None if it has not made a backup."""
    with suppress(OSError):
        return (data_dir / SOURCE).read_text("ascii").strip() or None
    return None


def make_source(data_dir: Path) -> str:
    """Return the id of a data folder, and make it before the first backup."""
    if (source := known_source(data_dir)) is None:
        write_private(data_dir / SOURCE, source := uuid4().hex)
    return source


def objects_in(root: Path) -> list[Path]:
    """Return the files of a folder's backups, files that were set aside, and unfinished files."""
    objects = root / OBJECTS
    files = [
        path
        for path in objects.glob("??/*")
        if DIGITS.fullmatch(path.name.removesuffix(DAMAGED)) and path.name[:2] == path.parent.name
    ]
    return files + [path for path in objects.glob(f"*{PART}") if UNFINISHED.fullmatch(path.stem)]


def age_of_newest(root: Path, source: str | None = None) -> float:
    """Return the age of the newest backup in a folder, in seconds; infinite without a backup.

    A date in the future says nothing about the age, because a clock was set back. While the clock is wrong, a backup
    from before does not count as older.
    """
    folders = own_backups(root, source)
    newest = made_at(folders[-1]) if folders else clock.LAST
    ages = [(now - newest).total_seconds() for now in (clock.own.expiry(), clock.own.now())]
    return min((age for age in ages if age >= 0), default=float("inf"))


@contextmanager
def discarded_unless_finished(writer: C) -> Iterator[C]:
    """Discard unfinished files when the block ends."""
    try:
        yield writer
    finally:
        writer.discard()


def _next_stamp(root: Path) -> str:
    """Return a name that sorts after all backups, even if the clock was set back."""
    now = clock.own.now()
    if folders := backup_folders(root):
        now = max(now, _parse_moment(folders[-1]) + timedelta(microseconds=1))
    return now.strftime(STAMP)


def made_at(folder: Path) -> datetime:
    """Return the time of a backup, which may be earlier than its name."""
    try:
        return datetime.fromisoformat(OpenBackup(folder).manifest.made_at)
    except (StoreError, ValueError):
        return _parse_moment(folder)


def _parse_moment(folder: Path) -> datetime:
    return datetime.strptime(folder.name, STAMP).replace(tzinfo=UTC)


def _signed(manifest: BackupManifest, key: SecretStr | None) -> Iterator[tuple[str, bytes]]:
    raw = manifest.dump()
    yield MANIFEST, raw
    yield DIGEST, f"{sha256(raw).hexdigest()}  {MANIFEST}\n".encode()
    if key:
        yield SEAL, _seal(raw, key)


def _seal(raw: bytes, key: SecretStr) -> bytes:
    return f"{hmac.new(key.get_secret_value().encode(), b'kb-backup ' + raw, sha256).hexdigest()}\n".encode()


def _load(backup: OpenBackup, key: SecretStr | None) -> tuple[BackupManifest, Seal]:
    try:
        raw, recorded = (_read(backup, name) for name in (MANIFEST, DIGEST))
        if recorded != f"{sha256(raw).hexdigest()}  {MANIFEST}\n".encode():
            raise ValueError("it was changed or is damaged")
        return BackupManifest.load(raw), _check_seal(backup, raw, key)
    except (OSError, ValueError, tarfile.TarError, RecursionError, MemoryError) as error:
        raise StoreError(f"kb cannot use the manifest of the backup {backup.name}: {error}.") from error


def _check_seal(backup: OpenBackup, raw: bytes, key: SecretStr | None) -> Seal:
    """Return the state of a backup's seal.

    Raises:
        ValueError: the backup is sealed with another key.
    """
    try:
        seal = _read(backup, SEAL)
    except FileNotFoundError:
        return "unsealed"
    if key is None:
        return "unchecked"
    if not hmac.compare_digest(seal, _seal(raw, key)):
        raise ValueError("its seal does not match KB_BACKUP_KEY: it was changed, or sealed with another key")
    return "sealed"


def _read(backup: OpenBackup, name: str) -> bytes:
    with backup.open(name) as file:
        raw = file.read(LARGEST_MANIFEST + 1)
    if len(raw) > LARGEST_MANIFEST:
        raise ValueError(f"{name} is too large")
    return raw
