"""Uploaded files that wait for their job, and files found inside others, each of which becomes its own job.

Requirement E-10.
"""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import islice
from pathlib import PurePath
from typing import Final
from uuid import uuid4

from kb.api.errors import FilesUnavailable, StoreUnavailable, Unconfirmed
from kb.api.rights import OF_JOB
from kb.blobs.protocol import STAGED, Blobs, Readable, staged_as
from kb.formats.text.batches import is_batch
from kb.formats.text.encoding import clean, one_line
from kb.formats.text.extracted import Attachment
from kb.store.protocol import Store, Transaction
from kb.store.rows import Job, NewJob

STRAY_SECONDS: Final = 86_400.0
"""The age in seconds at which a file unknown to the database is removed; a younger one may be about to be recorded."""

AT_ONCE: Final = 20
"""How many files are removed before checking again that this is still allowed."""

OURS: Final = re.compile(STAGED + r"[0-9a-f]{32}(\.[0-9a-f]{32}\.part)?")
"""The names of staged files and of unfinished ones. Other files in shared storage are not kb's."""

_MAX_NAME: Final = 200


def stage(content: Readable, blobs: Blobs) -> tuple[str, str]:
    """Stage a file; it is durable when this returns.

    Returns:
        Its name, and the SHA-256 of its content.

    Raises:
        DiskFull: the disk has no room for the file; nothing of it is left.
        FilesUnavailable: the file storage does not answer; a later sweep removes any rest.
    """
    name, reader = uuid4().hex, DigestReader(content)
    blobs.put(staged_as(name), reader)
    return name, reader.digest


def discard(name: str | None, blobs: Blobs) -> None:
    """Remove a staged file that no job needs; if the storage does not answer, a later sweep removes it."""
    if name:
        with suppress(FilesUnavailable, StoreUnavailable):
            blobs.remove([staged_as(name)])


def sweep_staged(store: Store, blobs: Blobs) -> None:
    """Remove old staged files that no job waits with; the job of a younger file may not be queued yet."""
    old = {blob.name for blob in blobs.list(STAGED) if blob.age >= STRAY_SECONDS and OURS.fullmatch(blob.name)}
    if not old:
        return
    # A kept file staged again as a hard link keeps its old age, but staging it takes the write lock, as this does.
    with store.write() as tx:
        remove_while(tx, old - set(map(staged_as, tx.jobs.staged())), blobs)


def remove_while(tx: Transaction, names: Iterable[str], blobs: Blobs) -> None:
    """Remove files during a transaction that keeps others from recording them.

    Raises:
        StoreUnavailable: the transaction has ended, because a server ends it if the file storage takes too long.
    """
    left = iter(names)
    while some := list(islice(left, AT_ONCE)):
        tx.jobs.pending()  # raises if the transaction has ended
        blobs.remove(some)


class DigestReader:
    """Reads a file and computes the SHA-256 of the bytes read."""

    def __init__(self, file: Readable) -> None:
        self._file = file
        self._digest = sha256()

    def read(self, size: int, /) -> bytes:
        block = self._file.read(size)
        self._digest.update(block)
        return block

    @property
    def digest(self) -> str:
        """The SHA-256 in hex."""
        return self._digest.hexdigest()


@contextmanager
def staged_jobs(job: Job, attachments: Sequence[Attachment], blobs: Blobs) -> Iterator[list[NewJob]]:
    """Stage the files found in a job's file and yield their jobs; discard the files if the block fails.

    Files whose jobs may have been queued stay; a sweep removes the files without a job.
    """
    jobs: list[NewJob] = []
    try:
        for attachment, name in zip(attachments, _names(attachments), strict=True):
            staged, digest = stage(io.BytesIO(attachment.data), blobs)
            path = f"{job.source_path or f'{OF_JOB}{job.id}'}#{name}"
            jobs.append(
                NewJob(
                    "file",
                    source_path=path,
                    tags=job.tags,
                    staged=staged,
                    filename=name,
                    content_hash=digest,
                    depth=max(1, job.depth + (not is_batch(name))),
                    author=job.author,
                )
            )
        yield jobs
    except Unconfirmed:
        raise
    except BaseException:
        for new in jobs:
            discard(new.staged, blobs)
        raise


def _names(attachments: Sequence[Attachment]) -> Iterator[str]:
    """Return the attachments' names, numbered when repeated."""
    taken: set[str] = set()
    for attachment in attachments:
        name = PurePath(_basename(attachment.filename))
        count, numbered = 1, name.name
        while numbered in taken:
            count += 1
            numbered = f"{name.stem} ({count}){name.suffix}"
        taken.add(numbered)
        yield numbered


def _basename(filename: str) -> str:
    """Return a name without folders and line breaks, cut at the front because the end shows the file type."""
    name = one_line(clean(filename)).replace("\\", "/").rpartition("/")[2]
    return name[-_MAX_NAME:].strip(". ") or "attachment"
