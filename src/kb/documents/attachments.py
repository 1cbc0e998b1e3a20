"""Files that came inside others, such as messages: each becomes a job of its own (requirement E-10)."""

from __future__ import annotations

import io
import logging
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from kb.documents.staging import stage
from kb.formats.text.encoding import clean, one_line
from kb.store.rows import NewJob

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from kb.formats.registry import Attachment
    from kb.store.rows import Job

logger = logging.getLogger(__name__)

MAX_DEPTH: Final = 3
"""How deep files may be inside others: a message in a message in a message."""

MAX_ATTACHMENTS: Final = 100
_LONGEST_NAME: Final = 200


@contextmanager
def staged_jobs(job: Job, attachments: Sequence[Attachment], staging: Path) -> Iterator[list[NewJob]]:
    """The jobs of the files that came with a job's file, staged; unless the block ends well, they are not any more."""
    depth = job.depth + 1
    wanted = attachments[:MAX_ATTACHMENTS] if depth <= MAX_DEPTH else ()
    if len(wanted) < len(attachments):
        logger.warning("job %s: %s of its attachments are left out", job.id, len(attachments) - len(wanted))
    jobs: list[NewJob] = []
    try:
        for attachment, name in zip(wanted, _names(wanted), strict=True):
            staged, digest = stage(io.BytesIO(attachment.data), staging)
            path = f"{job.source_path or f'job:{job.id}'}#{name}"
            jobs.append(
                NewJob(
                    "file",
                    source_path=path,
                    tags=job.tags,
                    staged=staged,
                    filename=name,
                    content_hash=digest,
                    depth=depth,
                )
            )
        yield jobs
    except BaseException:
        for new in jobs:
            (staging / (new.staged or "")).unlink(missing_ok=True)
        raise


def _names(attachments: Sequence[Attachment]) -> Iterator[str]:
    """What the attachments are called, numbered when repeated."""
    taken: set[str] = set()
    for attachment in attachments:
        name = PurePath(_plain(attachment.filename))
        count, numbered = 1, name.name
        while numbered in taken:
            count += 1
            numbered = f"{name.stem} ({count}){name.suffix}"
        taken.add(numbered)
        yield numbered


def _plain(filename: str) -> str:
    """A name without folders and line breaks, of a sensible length; the end of it, which says what kind it is."""
    name = one_line(clean(filename)).replace("\\", "/").rpartition("/")[2]
    return name[-_LONGEST_NAME:].strip(". ") or "attachment"
