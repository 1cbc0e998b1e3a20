"""Check a database and its files: the same for a backup as for the data in use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from hashlib import file_digest

from kb.blobs.folder import KeptFiles
from kb.settings import Settings
from kb.store.sqlite.verify import Check, Remedy, Verification


def verify_data(settings: Settings) -> Iterator[str]:
    """Yield each fault of the database and its files.

    Raises:
        StoreError: the database does not exist or cannot be read.
    """
    with closing(open_data(settings)) as database:
        for check in checks_of_data(database, settings):
            if check.remedy is not Remedy.NOTICE:
                yield from (f"{check.name}: {fault}" for fault in check.find())


def checks_of_data(database: Verification, settings: Settings) -> Sequence[Check]:
    """Return the checks of the database and its files."""
    originals = KeptFiles(settings.files_dir)
    return [
        *database.checks,
        Check("kept files", partial(_damaged_files, database, originals), Remedy.BACKUP),
        Check("missing files", partial(_missing_files, database, originals), Remedy.NOTICE),
        Check("queued files", partial(_missing_staged, database, settings), Remedy.BACKUP),
    ]


def open_data(settings: Settings) -> Verification:
    """Open the database for checks; the caller closes it."""
    return Verification(settings.database_path)


def _damaged_files(database: Verification, originals: KeptFiles) -> Iterator[str]:
    """Yield the kept files that are damaged."""
    for document_id, content_hash in database.file_hashes():
        if originals.has(content_hash):
            path = originals.path(content_hash)
            with path.open("rb") as file:
                if file_digest(file, "sha256").hexdigest() != content_hash:
                    yield f"the file of document {document_id} was changed or is damaged: {path}"


def _missing_files(database: Verification, originals: KeptFiles) -> Iterator[str]:
    missing = [document_id for document_id, digest in database.file_hashes() if not originals.has(digest)]
    if missing:
        yield (
            f"{len(missing)} documents are missing their stored file, such as document {missing[0]}:"
            " KB_KEEP_FILES was off, or the file is lost"
        )


def _missing_staged(database: Verification, settings: Settings) -> Iterator[str]:
    """Yield the jobs whose staged file is missing. A second look leaves out jobs that have ended in the meantime."""
    missing = [staged_file for staged_file in database.staged() if not (settings.staging_dir / staged_file[1]).exists()]
    if missing:
        with closing(open_data(settings)) as now:
            waiting = set(now.staged())
        for staged_file in missing:
            if staged_file in waiting:
                yield f"the file of queued job {staged_file[0]} is missing"
