"""Uploaded files that wait for their job, and those that came inside others: each of these becomes a job of its own.

Requirement E-10.
"""

from __future__ import annotations

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
"""How old a file that nothing in the database names is removed, where others may have put it and not yet named it."""

AT_ONCE: Final = 20
"""How many files are removed before it is asked whether they may still be."""

OURS: Final = re.compile(STAGED + r"[0-9a-f]{32}(\.[0-9a-f]{32}\.part)?")
"""What a staged file is called, and one that is being written. What else is in a shared place is not kb's."""

_MAX_NAME: Final = 200


def stage(content: Readable, blobs: Blobs) -> tuple[str, str]:
    """Stage a file; it is durable when this returns.

    Returns:
        Its name, and the SHA-256 of its content.

    Raises:
        DiskFull: there is no room for it; nothing of it is left.
        FilesUnavailable: the place of the files does not answer; what is left of it is removed later on.
    """
    name, reader = uuid4().hex, DigestReader(content)
    blobs.put(staged_as(name), reader)
    return name, reader.digest


def discard(name: str | None, blobs: Blobs) -> None:
    """Remove a staged file that no job will ask for; where its place does not answer, a sweep does it later on."""
    if name:
        with suppress(FilesUnavailable, StoreUnavailable):
            blobs.remove([staged_as(name)])


def sweep_staged(store: Store, blobs: Blobs) -> None:
    """Remove old staged files that no job waits with; younger ones may be of a job that is just being queued."""
    old = {blob.name for blob in blobs.list(STAGED) if blob.age >= STRAY_SECONDS and OURS.fullmatch(blob.name)}
    if not old:
        return
    # A kept file that is staged again is as old as it was where it is a hard link: who does that writes.
    with store.write() as tx:
        remove_while(tx, old - set(map(staged_as, tx.jobs.staged())), blobs)


def remove_while(tx: Transaction, names: Iterable[str], blobs: Blobs) -> None:
    """Remove files while a transaction lasts that keeps others from naming them.

    Raises:
        StoreUnavailable: it has ended, as PostgreSQL sees to where a place for files takes too long.
    """
    left = iter(names)
    while some := list(islice(left, AT_ONCE)):
        tx.jobs.pending()  # which raises
        blobs.remove(some)


class DigestReader:
    """Reads a file, and knows the SHA-256 of what was read."""

    def __init__(self, file: Readable) -> None:
        self._file = file
        self._digest = sha256()

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        block = self._file.read(size)
        self._digest.update(block)
        return block

    @property
    def digest(self) -> str:
        """The SHA-256 in hex."""
        return self._digest.hexdigest()


@contextmanager
def staged_jobs(job: Job, attachments: Sequence[Attachment], blobs: Blobs) -> Iterator[list[NewJob]]:
    """Stage the files that came with a job's file, and give their jobs; unless the block ends well, discard them.

    Those of jobs that may have been queued stay: a sweep removes what no job waits with.
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
    """Return a name without folders and line breaks, cut at its front: its end says what kind of file it is."""
    name = one_line(clean(filename)).replace("\\", "/").rpartition("/")[2]
    return name[-_MAX_NAME:].strip(". ") or "attachment"
