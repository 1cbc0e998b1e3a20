"""Files that came inside others, such as messages: each becomes a job of its own (requirement E-10)."""

from __future__ import annotations

import io
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from kb.api.access import OF_JOB
from kb.api.errors import Unconfirmed
from kb.documents.staging import discard, stage
from kb.formats.text.encoding import clean, one_line
from kb.formats.text.parts import is_batch
from kb.store.rows import NewJob

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kb.blobs.protocol import Blobs
    from kb.formats.text.extracted import Attachment
    from kb.store.rows import Job

_MAX_NAME: Final = 200


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
