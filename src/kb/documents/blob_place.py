"""The place of uploaded files: next to a database file, in a shared database, or in shared storage outside."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote, urlsplit

from kb.api.errors import FilesUnavailable, SettingError
from kb.blobs.folder import FolderBlobs, KeptFiles, SharedFolder
from kb.blobs.protocol import Blobs, kept_as, staged_as
from kb.settings import Settings
from kb.store.open import backend
from kb.store.protocol import Store

if TYPE_CHECKING:
    from kb.store.backend import BlobPlace, SharedStore

logger = logging.getLogger(__name__)

NAME: Final = "place"
"""The file that names a data folder whose engine had files of its own."""

MARKER: Final = "database"
"""The blob that names the database whose files are in outside storage."""


def open_blobs(url: str | None, store: Store, folder: Path) -> Blobs:
    """Return the storage for the files of a store.

    Args:
        url: the outside storage, if the files are not with the database.
        folder: for a database file, the folder with its files; otherwise one for fetched files, below `staging`.

    Raises:
        SettingError: the storage belongs to another database.
    """
    if not store.is_shared:
        if url:
            raise SettingError(
                "KB_BLOB_URL: this setting is for PostgreSQL; with SQLite, files are in the data folder. Unset it."
            )
        return FolderBlobs(folder)
    shared = cast("SharedStore", store)
    scratch = folder / "staging"
    blobs = _outside(url, scratch) if url else shared.blobs(scratch)
    try:
        bind(shared, blobs)
    except FilesUnavailable as error:  # searches need no files
        logger.error("file storage is unavailable; kb will try again later: %s", error.detail)
    return blobs


@contextmanager
def blobs_apart(settings: Settings, *, to_write: bool = False) -> Iterator[Blobs]:
    """The storage for the files of a database that no engine needs to have open.

    Args:
        to_write: whether to bind the storage to the database, if it has none yet.

    Raises:
        SettingError: the storage belongs to another database.
        FilesUnavailable: the storage does not answer.
    """
    if not settings.store_kind.is_shared:
        yield FolderBlobs(settings.files_dir.parent)
        return
    with backend(settings).files(settings, settings.staging_dir) as (blobs, place):
        if settings.blob_url:
            blobs = _outside(settings.blob_url, settings.staging_dir)
        with place() as outside:
            (_bind if to_write else _is_new)(outside, blobs)
        yield blobs


def bind(store: Store, blobs: Blobs) -> None:
    """Bind a storage to a database and record that; on later calls check it.

    This detects an unmounted folder, which would look like lost files, and the storage of another database.

    Raises:
        SettingError: the storage belongs to another database.
        FilesUnavailable: the storage does not answer.
    """
    with cast("SharedStore", store).blob_place() as place:
        _bind(place, blobs)


def _bind(place: BlobPlace, blobs: Blobs) -> None:
    if _is_new(place, blobs):
        if _named(blobs) is None:
            blobs.put(MARKER, io.BytesIO(place.id.encode()))
        place.set_outside()


def _is_new(place: BlobPlace, blobs: Blobs) -> bool:
    """Return whether an outside storage can be bound to a database and is not yet. Raises the same errors as `bind`."""
    if not blobs.is_outside:
        if place.is_outside:
            raise SettingError(
                "KB_BLOB_URL: the files of this database are in storage outside the database. Set its URL."
            )
        return False
    if not place.is_outside and place.holds_files:
        raise SettingError(
            "KB_BLOB_URL: the files are inside the database, and kb cannot move them out. Unset the variable."
        )
    named = _named(blobs)
    if named is None and place.is_outside:
        raise SettingError(
            "KB_BLOB_URL: this storage does not contain the files of this database."
            " Is it mounted, and is it the right one?"
        )
    if named not in (None, place.id):
        raise SettingError("KB_BLOB_URL: the files of another database are there. Choose another folder or prefix.")
    return not place.is_outside


def _outside(url: str, scratch: Path) -> Blobs:
    if url.startswith("file:///"):
        return SharedFolder(Path(unquote(urlsplit(url).path)), MARKER)
    if not url.startswith("s3://"):
        raise SettingError("KB_BLOB_URL: must be s3://bucket/prefix or file:///folder")
    try:
        from kb.blobs.s3 import S3Blobs
    except ModuleNotFoundError as error:
        raise SettingError("KB_BLOB_URL: S3 support is not installed; it needs 'kb-local[s3]'") from error
    return S3Blobs(url, scratch)


def _named(blobs: Blobs) -> str | None:
    """Return the id of the database that a storage names."""
    if blobs.size(MARKER) is None:
        return None
    return b"".join(blobs.open(MARKER).blocks).decode()


def bring_in(store: Store, blobs: Blobs, folder: Path, data_dir: Path) -> None:
    """Move files from a data folder, where earlier engines kept them, to the shared storage."""
    place_file = data_dir / NAME
    if not place_file.exists():
        return
    jobs: Any = store  # only an early store in PostgreSQL kept files there
    with jobs.read() as tx:
        left = tx.jobs.left_at(place_file.read_text())
    try:
        for name in left:
            _move(folder / "staging" / name, staged_as(name), blobs)
            with jobs.write() as tx:
                tx.jobs.set_brought(name)
        originals = KeptFiles(folder / "files")
        for digest in originals.digests():
            _move(originals.path(digest), kept_as(digest), blobs)
    except FilesUnavailable as error:  # the next start continues
        logger.error(
            "the files in %s could not be moved to the shared storage; kb will try again at the next start: %s",
            folder,
            error.detail,
        )


def _move(path: Path, name: str, blobs: Blobs) -> None:
    if path.exists():
        if blobs.size(name) is None:
            with path.open("rb") as file:
                blobs.put(name, file)
        path.unlink()
