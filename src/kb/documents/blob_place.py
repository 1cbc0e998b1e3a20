"""Where uploaded files are: beside a database in a file, in PostgreSQL, or in a place outside that engines share."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import unquote, urlsplit

from kb.api.errors import FilesUnavailable, SettingError
from kb.blobs.folder import FolderBlobs, KeptFiles, SharedFolder
from kb.blobs.protocol import Blobs, kept_as, staged_as
from kb.store.open import is_postgres, postgres
from kb.store.protocol import Store

if TYPE_CHECKING:
    from kb.store.postgres.blobs import BlobPlace
    from kb.store.postgres.store import PostgresStore

logger = logging.getLogger(__name__)

NAME: Final = "place"
"""The file that names a data directory whose engine had its files for itself."""

MARKER: Final = "database"
"""The blob that names the database whose files are in a place outside."""


def open_blobs(url: str | None, store: Store, folder: Path) -> Blobs:
    """Return where the files of a store are.

    Args:
        url: where they are, if not with the database.
        store: the database.
        folder: of a database in a file the one with its files; of others one to fetch files into, below `staging`.

    Raises:
        SettingError: the place is not this database's.
    """
    if store.keys is None:
        if url:
            raise SettingError(
                "KB_BLOB_URL: files of a database in a file are beside it; the setting is for PostgreSQL"
            )
        return FolderBlobs(folder)
    shared = cast("PostgresStore", store)
    scratch = folder / "staging"
    blobs = _outside(url, scratch) if url else shared.blobs(scratch)
    try:
        bind(shared, blobs)
    except FilesUnavailable as error:  # searches need no files
        logger.error("files wait for their place: %s", error.detail)
    return blobs


@contextmanager
def blobs_apart(database_url: str | None, url: str | None, folder: Path, *, to_write: bool = False) -> Iterator[Blobs]:
    """Where the files of a database are that no engine needs to have open.

    Args:
        database_url: the database.
        url: see `open_blobs`.
        folder: likewise.
        to_write: whether the place becomes that of the database's files, if it has none yet.

    Raises:
        SettingError: the place is not this database's.
        FilesUnavailable: it does not answer.
    """
    if not is_postgres(database_url):
        yield FolderBlobs(folder)
        return
    scratch = folder / "staging"
    with postgres("opening").files(database_url, scratch) as (blobs, place):
        if url:
            blobs = _outside(url, scratch)
        with place() as outside:
            (_bind if to_write else _is_new)(outside, blobs)
        yield blobs


def bind(store: Store, blobs: Blobs) -> None:
    """Let a place be that of a database's files, and record that; check it afterwards.

    So what is not mounted is not taken for a place that lost its files, nor another database's for one with leftovers.

    Raises:
        SettingError: it is not this database's.
        FilesUnavailable: it does not answer.
    """
    with cast("PostgresStore", store).blob_place() as place:
        _bind(place, blobs)


def _bind(place: BlobPlace, blobs: Blobs) -> None:
    if _is_new(place, blobs):
        if _named(blobs) is None:
            blobs.put(MARKER, io.BytesIO(place.id.encode()))
        place.set_outside()


def _is_new(place: BlobPlace, blobs: Blobs) -> bool:
    """Return whether a place outside may become that of a database's files, and is not yet. Raises as `bind`."""
    if not blobs.is_outside:
        if place.is_outside:
            raise SettingError("KB_BLOB_URL: the files of this database are in a place outside it: name that place")
        return False
    if not place.is_outside and place.holds_files:
        raise SettingError("KB_BLOB_URL: the files of this database are in it, and cannot be moved out yet: unset it")
    named = _named(blobs)
    if named is None and place.is_outside:
        raise SettingError("KB_BLOB_URL: the files of this database are not there. Is it mounted, and the right one?")
    if named not in (None, place.id):
        raise SettingError("KB_BLOB_URL: the files of another database are there: name another folder or prefix")
    return not place.is_outside


def _outside(url: str, scratch: Path) -> Blobs:
    if url.startswith("file:///"):
        return SharedFolder(Path(unquote(urlsplit(url).path)), MARKER)
    if not url.startswith("s3://"):
        raise SettingError("KB_BLOB_URL: only s3://bucket/prefix and file:///folder are served")
    try:
        from kb.blobs.s3 import S3Blobs
    except ModuleNotFoundError as error:
        raise SettingError("KB_BLOB_URL: S3 needs the extra 's3' of kb-local installed") from error
    return S3Blobs(url, scratch)


def _named(blobs: Blobs) -> str | None:
    """Return the database that a place names."""
    if blobs.size(MARKER) is None:
        return None
    return b"".join(blobs.open(MARKER).blocks).decode()


def bring_in(store: Store, blobs: Blobs, folder: Path, data_dir: Path) -> None:
    """Bring files that lie in a data directory, where engines once had them, to where every engine has them."""
    place_file = data_dir / NAME
    if not place_file.exists():
        return
    jobs = cast("PostgresStore", store)
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
    except FilesUnavailable as error:  # the next start goes on
        logger.error("files stay in %s: %s", folder, error.detail)


def _move(path: Path, name: str, blobs: Blobs) -> None:
    if path.exists():
        if blobs.size(name) is None:
            with path.open("rb") as file:
                blobs.put(name, file)
        path.unlink()
