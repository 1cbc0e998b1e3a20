"""Backups as they lie on a disk: a folder that keeps many of them, or an archive of one.

A folder:

    objects/ab/abcd…      files by the SHA-256 of their content, shared by all backups
    2026-11-21T…Z/        a backup: kb.db, manifest.json and manifest.json.sha256

With a key (KB_BACKUP_KEY) there is a `manifest.json.hmac` that nobody can make without it: the manifest names all else.

An archive (`.tar`) has the same names, those of its one backup at its top. What is not finished is called `.part`.
"""

from __future__ import annotations

import hmac
import io
import json
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, TypeVar
from uuid import uuid4

from pydantic import SecretStr, TypeAdapter, ValidationError

from kb import clock
from kb.api.errors import StoreError
from kb.api.overview_models import Seal
from kb.blobs.protocol import Readable
from kb.filesystem import open_regular, sync, sync_descriptor

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
DIGEST: Final = "manifest.json.sha256"
SEAL: Final = "manifest.json.hmac"
DATABASE: Final = "kb.db"
OBJECTS: Final = "objects"
PART: Final = ".part"
ARCHIVE: Final = ".tar"
STAMP: Final = "%Y-%m-%dT%H-%M-%S.%fZ"
NAME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}Z")
"""What a finished backup is called."""
DIGITS: Final = re.compile(r"[0-9a-f]{64}")
"""A SHA-256."""
UNFINISHED: Final = re.compile(r"[0-9a-f]{32}")
"""What a file is called that is being written to a backup, before its ending."""
STAGED: Final = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]*")
"""What a file is called that waits for its job: a name in one folder."""
BLOCK: Final = 1 << 20
C = TypeVar("C", bound="Collector")
LARGEST_MANIFEST: Final = 1 << 28
"""In bytes: of a backup with some three million files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    """What a backup is made of.

    Args:
        made_at: its moment, in UTC.
        kb: the version of the program that made it.
        schema: the version of the database's schema.
        database: the SHA-256 of the database.
        counts: how many rows there are.
        originals: the SHA-256 of each kept file.
        staged: the files that wait for their job: their names, and the SHA-256 of each.
        missing: the files that could not be copied, for they are not what they were or not there.
    """

    made_at: str
    kb: str
    schema: int
    database: str
    counts: dict[str, int]
    originals: list[str]
    staged: dict[str, str]
    missing: list[str]

    @property
    def objects(self) -> set[str]:
        """The SHA-256 of every file."""
        return {*self.originals, *self.staged.values()}

    def dump(self) -> bytes:
        """Return the manifest as it is written."""
        return (json.dumps({"kb-backup": FORMAT} | asdict(self), indent=1) + "\n").encode()

    @classmethod
    def load(cls, raw: bytes) -> BackupManifest:
        """Return the manifest that was written so.

        Raises:
            ValueError: it is none, or of a later format.
        """
        try:
            fields: dict[str, Any] = json.loads(raw)
            if fields.pop("kb-backup", None) != FORMAT:
                raise ValueError("it is of another format")
            if fields.keys() != cls.__dataclass_fields__.keys():
                raise ValueError("it has other fields than a manifest")
            manifest = TypeAdapter(cls).validate_json(raw, strict=True)
        except (RecursionError, AttributeError, TypeError, ValidationError) as error:
            raise ValueError("it is not a manifest") from error
        are_digests = all(map(DIGITS.fullmatch, [manifest.database, *manifest.objects]))
        are_names = all(map(STAGED.fullmatch, manifest.staged))
        if not are_digests or not are_names:
            raise ValueError("it names files as no backup does")
        return manifest


def object_name(digest: str) -> str:
    """Return where a file is kept."""
    return f"{OBJECTS}/{digest[:2]}/{digest}"


def copy(source: Readable, target: Path) -> str:
    """Write what is left of `source` to a new file, which is on the disk then; return the SHA-256."""
    digest = sha256()
    with target.open("xb") as file:
        while block := source.read(BLOCK):
            digest.update(block)
            file.write(block)
        file.flush()
        sync_descriptor(file.fileno())
    return digest.hexdigest()


def stream_digest(file: BinaryIO) -> str:
    """Return the SHA-256 of what is left of a file."""
    return file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # that of an archive reads like a file


class Collector(Protocol):
    """What files and a database are copied to."""

    database: Path
    """Where its copy of the database belongs."""

    def has(self, digest: str) -> bool: ...
    def put(self, file: BinaryIO) -> str:
        """Keep a file; return its SHA-256."""

    def discard(self) -> None:
        """Remove what is not finished."""


class Writer(Collector, Protocol):
    """What a backup is written with."""

    def finish(self, manifest: BackupManifest) -> Path:
        """Make a backup of it, on the disk and under its name; return where it is."""


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

    def has(self, digest: str) -> bool:
        """Return whether a backup has this file."""
        return bool(DIGITS.fullmatch(digest)) and (self._root / object_name(digest)).exists()

    def put(self, file: BinaryIO) -> str:
        """Keep a file for this backup and others; return its SHA-256."""
        part = self._objects / f"{uuid4().hex}{PART}"
        try:
            digest = copy(file, part)
            target = self._root / object_name(digest)
            target.parent.mkdir(exist_ok=True, mode=0o700)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        sync(target.parent)
        return digest

    def finish(self, manifest: BackupManifest) -> Path:
        """Give the backup its name, once all of it is on the disk."""
        for name, content in _signed(manifest, self._key):
            copy(io.BytesIO(content), self._part / name)
        for folder in (self._part, self._objects, self._root):
            sync(folder)
        self._part.rename(self._target)
        sync(self._root)
        return self._target

    def discard(self) -> None:
        """Remove what is not finished."""
        shutil.rmtree(self._part, ignore_errors=True)


class ArchiveWriter:
    """Writes a backup into an archive, in a folder beside it that is removed in the end.

    Raises:
        StoreError: there is such a folder.
    """

    def __init__(self, path: Path, key: SecretStr | None = None) -> None:
        self._path = path
        self._key = key
        self._folder = path.with_name(f"{path.name}{PART}")
        if self._folder.exists():
            raise StoreError(f"{self._folder} is there already: remove it, if it is of a backup that was cut off.")
        self._folder.mkdir(mode=0o700)
        self._part = self._folder / path.name
        self._part.touch(mode=0o600)
        self._file = self._part.open("wb", buffering=0)
        self._tar = tarfile.open(fileobj=self._file, mode="w")  # noqa: SIM115 - `finish` closes it
        self._digests: set[str] = set()
        self.database = self._folder / DATABASE
        self.database.touch(mode=0o600)

    def has(self, digest: str) -> bool:
        """Return whether the file is there."""
        return digest in self._digests

    def put(self, file: BinaryIO) -> str:
        """Add a file; return its SHA-256."""
        digest = stream_digest(file)
        self._add(object_name(digest), file)
        self._digests.add(digest)
        return digest

    def finish(self, manifest: BackupManifest) -> Path:
        """Give the archive its name, once it is on the disk."""
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
        """Remove what is not finished."""
        self._file.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _add(self, name: str, file: BinaryIO) -> None:
        member = tarfile.TarInfo(name)
        member.mode = 0o600
        member.size = file.seek(0, io.SEEK_END)
        file.seek(0)
        self._tar.addfile(member, file)


class OpenBackup:
    """A backup in a folder, or in an archive that is open.

    Raises:
        StoreError: the manifest cannot be read, or is not what it was.
    """

    def __init__(self, path: Path, key: SecretStr | None = None, tar: tarfile.TarFile | None = None) -> None:
        self.name = str(path)
        self._path = path
        self._tar = tar
        self.manifest, self.seal = _load(self, key)

    def open(self, name: str) -> BinaryIO:
        """Open a part of it."""
        if self._tar:
            return _open_member(self._tar, name)
        folder = self._path.parent if name.startswith(OBJECTS) else self._path
        return open_regular(folder / name)

    def is_there(self) -> bool:
        """Return whether no later backup took its place."""
        return self._path.exists()


def _open_member(tar: tarfile.TarFile, name: str) -> BinaryIO:
    try:
        member = tar.getmember(name)
        is_plain = member.isreg() and not member.issparse()  # a link leads elsewhere, a sparse one may be endless
        file = tar.extractfile(member) if is_plain else None
    except (KeyError, tarfile.TarError) as error:
        raise FileNotFoundError(f"{name}: {error}") from error
    if file is None:
        raise FileNotFoundError(f"{name} is not a file")
    return file  # type: ignore[return-value]  # it reads like a file


@dataclass(frozen=True, slots=True)
class FoundBackup:
    """A backup that was found; `open` raises a StoreError if its manifest is damaged, or its seal of another key."""

    path: Path
    open: Callable[[], OpenBackup]


def write_to(path: Path, key: SecretStr | None) -> Writer:
    """Return what writes a backup to a folder, or to an archive, and seals it with a key if there is one."""
    if path.suffix == ARCHIVE and not path.is_dir():
        return ArchiveWriter(path, key)
    return FolderWriter(path, key)


@contextmanager
def opened_backups(path: Path, key: SecretStr | None = None) -> Iterator[Sequence[FoundBackup]]:
    """The backups of a folder, the oldest first, or the one that `path` names.

    Raises:
        StoreError: there is none.
    """
    if path.is_file():
        try:
            tar = tarfile.open(path, "r:")  # noqa: SIM115 - what cannot be opened is told from what fails inside
        except (OSError, tarfile.TarError) as error:
            raise StoreError(f"{path} is no backup: {error}.") from error
        with tar:
            yield [FoundBackup(path, partial(OpenBackup, path, key, tar))]
    elif folders := [path] if (path / MANIFEST).exists() else backup_folders(path):
        yield [FoundBackup(folder, partial(OpenBackup, folder, key)) for folder in folders]
    else:
        raise StoreError(f"There is no backup in {path}.")


def backup_folders(root: Path) -> list[Path]:
    """Return the folders of the backups that are finished, the oldest first."""
    return sorted(path for path in (root.iterdir() if root.is_dir() else ()) if NAME.fullmatch(path.name))


def objects_in(root: Path) -> list[Path]:
    """Return the files of a folder's backups, and parts of files."""
    objects = root / OBJECTS
    files = [path for path in objects.glob("??/*") if DIGITS.fullmatch(path.name) and path.name[:2] == path.parent.name]
    return files + [path for path in objects.glob(f"*{PART}") if UNFINISHED.fullmatch(path.stem)]


def age_of_newest(root: Path) -> float:
    """Return for how many seconds the newest backup of a folder has been there; endless if there is none.

    One from the future says nothing of when it was made: a clock was put back. While a clock is wrong, one from before
    is no older for it.
    """
    folders = backup_folders(root)
    made_at = _made_at(folders[-1]) if folders else clock.LAST
    ages = [(now - made_at).total_seconds() for now in (clock.own.expiry(), clock.own.now())]
    return min((age for age in ages if age >= 0), default=float("inf"))


@contextmanager
def discarded_unless_finished(writer: C) -> Iterator[C]:
    """Remove in the end what is not finished."""
    try:
        yield writer
    finally:
        writer.discard()


def _next_stamp(root: Path) -> str:
    """Return a name behind those of all backups, also when the clock was put back."""
    now = clock.own.now()
    if folders := backup_folders(root):
        now = max(now, _parse_moment(folders[-1]) + timedelta(microseconds=1))
    return now.strftime(STAMP)


def _made_at(folder: Path) -> datetime:
    """Return when a backup was made, which its name may be behind."""
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
            raise ValueError("it is not what it was")
        return BackupManifest.load(raw), _check_seal(backup, raw, key)
    except (OSError, ValueError, tarfile.TarError, RecursionError, MemoryError) as error:
        raise StoreError(f"The manifest of the backup {backup.name} cannot be used: {error}.") from error


def _check_seal(backup: OpenBackup, raw: bytes, key: SecretStr | None) -> Seal:
    """Return whether a backup is sealed.

    Raises:
        ValueError: it is, but not with this key.
    """
    try:
        seal = _read(backup, SEAL)
    except FileNotFoundError:
        return "unsealed"
    if key is None:
        return "unchecked"
    if not hmac.compare_digest(seal, _seal(raw, key)):
        raise ValueError("it is not sealed with KB_BACKUP_KEY: somebody changed it, or it has another key")
    return "sealed"


def _read(backup: OpenBackup, name: str) -> bytes:
    with backup.open(name) as file:
        raw = file.read(LARGEST_MANIFEST + 1)
    if len(raw) > LARGEST_MANIFEST:
        raise ValueError(f"{name} is too large")
    return raw
