"""Requests and replies about added content and its jobs."""

from typing import Annotated, Literal

from pydantic import AfterValidator

from kb.api.fields import JobKind, JobStatus, Reply, Request, SourcePath, Tags, Timestamp, Title
from kb.api.note_models import Alike
from kb.api.web_address import page_address


class FileRequest(Request):
    """The fields of a file to add."""

    title: Title | None = None
    source_path: Annotated[SourcePath, AfterValidator(page_address)] | None = None
    tags: Tags = []


class JobAccepted(Reply):
    """The receipt for a note or a file, whose content is safely on disk. If the job has ended, it has the job's result.

    `document_id` is the stored note, which keyword search finds at once; while the job of a note is queued, only its
    vectors are missing. `existed` is true if a document already had this content. `omitted` counts content that kb did
    not read, as in `Document`. `alike` lists notes that say nearly the same thing as the new note, the nearest first;
    without any, `nearest` is the note that comes nearest. `stored` is false if kb stored nothing because of `if_new`;
    then no job exists.
    """

    job_id: int | None
    status: JobStatus
    document_id: int | None = None
    existed: bool = False
    omitted: dict[str, int] = {}
    error: str | None = None
    stored: bool = True
    alike: list[Alike] = []
    nearest: Alike | None = None


class JobDropped(Reply):
    """The receipt for a dropped job; `was` is its last state."""

    status: Literal["dropped"] = "dropped"
    job_id: int
    was: JobStatus


class Job(Reply):
    """The processing of an added note or file. `progress` runs from 0 to 1; `error` is the reason if the job failed.

    `content_hash` is the SHA-256 of the content, as in its document. `existed` is true if the document already had this
    content. `omitted` counts content that kb did not read, as in `Document`.
    """

    id: int
    status: JobStatus
    kind: JobKind
    title: str | None
    filename: str | None
    source_path: str | None
    content_hash: str | None
    tags: list[str]
    progress: float
    document_id: int | None
    existed: bool
    omitted: dict[str, int] = {}
    error: str | None
    created_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None


class JobList(Reply):
    """A page of jobs, newest first. `next_cursor` is null on the last page."""

    jobs: list[Job]
    next_cursor: str | None
