"""The queue, in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.store.rows import Job, NewJob
from kb.store.sqlite.values import NOW, Execute, array, iso, next_ids, strings

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw

    from kb.api.models import JobStatus

COLUMNS = (
    "id, status, kind, title, filename, source_path, tags, progress, document_id, error,"
    " created_at, started_at, finished_at, attempts, text, staged, request_hash, content_hash, part_of"
)


class SqliteJobs:
    """See `kb.store.protocol.Jobs`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute: Execute = connection.execute

    def add(self, job: NewJob) -> int:
        """Queue a job."""
        tags = array(job.tags)
        [job_id] = next_ids(self._execute, "jobs", 1)
        self._execute(
            "INSERT INTO jobs (id, status, kind, title, source_path, tags, text, staged, filename, idempotency_key,"
            " request_hash, content_hash, part_of, created_at)"
            f" VALUES (?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {NOW})",
            (
                job_id,
                job.kind,
                job.title,
                job.source_path,
                tags,
                job.text,
                job.staged,
                job.filename,
                job.idempotency_key,
                job.request_hash,
                job.content_hash,
                job.part_of,
            ),
        )
        return job_id

    def get(self, job_id: int) -> Job | None:
        """The job, if there is one."""
        return next(iter(self._jobs("WHERE id = ?", (job_id,))), None)

    def with_key(self, idempotency_key: str) -> Job | None:
        """The job that was accepted under this key."""
        return next(iter(self._jobs("WHERE idempotency_key = ?", (idempotency_key,))), None)

    def pending(self) -> int:
        """How many jobs are queued or running."""
        count: int = self._execute("SELECT count(*) FROM jobs WHERE status IN ('queued', 'running')").get
        return count

    def queue_age(self) -> float:
        """For how many seconds the oldest queued job has waited; 0 if there is none."""
        oldest = "(SELECT created_at FROM jobs WHERE status = 'queued' ORDER BY id LIMIT 1)"
        age: float | None = self._execute(f"SELECT 86400 * (julianday({NOW}) - julianday({oldest}))").get
        return max(0.0, age or 0.0)

    def page(self, *, status: JobStatus | None, limit: int, before: int | None) -> list[Job]:
        """Jobs with an id below `before`, newest first."""
        conditions, parameters = ["TRUE"], list[object]()
        if status is not None:
            conditions.append("status = ?")
            parameters.append(status)
        if before is not None:
            conditions.append("id < ?")
            parameters.append(before)
        where = " AND ".join(conditions)
        return self._jobs(f"WHERE {where} ORDER BY id DESC LIMIT ?", (*parameters, limit))

    def claim(self, limit: int) -> list[Job]:
        """Turn the oldest queued jobs to running: new ones together, one that was begun before by itself."""
        oldest = self._execute("SELECT id, attempts FROM jobs WHERE status = 'queued' ORDER BY id LIMIT 1").fetchall()
        again = bool(oldest) and oldest[0][1] > 0
        return self._claim("(attempts > 0) = ?", (again,), 1 if again else limit)

    def claim_short(self, limit: int, chars: int) -> list[Job]:
        """Turn queued new notes of at most so many characters, that replace nothing, to running."""
        short = "kind = 'note' AND source_path IS NULL AND attempts = 0 AND length(text) <= ?"
        return self._claim(short, (chars,), limit)

    def _claim(self, condition: str, parameters: tuple[object, ...], limit: int) -> list[Job]:
        claimed = self._execute(
            f"UPDATE jobs SET status = 'running', started_at = {NOW}, heartbeat_at = {NOW} WHERE id IN"
            f" (SELECT id FROM jobs WHERE status = 'queued' AND {condition} ORDER BY id LIMIT ?) RETURNING id",
            (*parameters, limit),
        ).fetchall()
        return [job for (job_id,) in sorted(claimed) if (job := self.get(job_id))]

    def heartbeat(self, job_ids: Iterable[int]) -> None:
        """Say that the jobs are still being worked on."""
        for job_id in job_ids:
            self._execute(f"UPDATE jobs SET heartbeat_at = {NOW} WHERE id = ?", (job_id,))

    def set_progress(self, job_ids: Iterable[int], progress: float) -> None:
        """Say how far the jobs are, from 0 to 1."""
        for job_id in job_ids:
            self._execute("UPDATE jobs SET progress = ? WHERE id = ?", (progress, job_id))

    def release_all(self) -> None:
        """Queue every running job again: whoever ran it is gone."""
        self._execute("UPDATE jobs SET status = 'queued' WHERE status = 'running'")

    def release_stalled(self, seconds: float) -> int:
        """Queue running jobs again that gave no heartbeat for so long."""
        released = self._execute(
            "UPDATE jobs SET status = 'queued' WHERE status = 'running'"
            " AND heartbeat_at <= strftime('%Y-%m-%d %H:%M:%f', 'now', ?) RETURNING id",
            (f"-{seconds} seconds",),
        )
        return len(released.fetchall())

    def release(self, job_ids: Iterable[int], *, failed: bool) -> None:
        """Queue running jobs again; `failed` counts it as an attempt."""
        for job_id in job_ids:
            self._execute(
                "UPDATE jobs SET status = 'queued', attempts = attempts + ? WHERE id = ? AND status = 'running'",
                (failed, job_id),
            )

    def finish(self, job_id: int, document_id: int) -> None:
        """The job is done; its text is in the document now."""
        self._execute(
            f"UPDATE jobs SET status = 'done', document_id = ?, progress = 1, finished_at = {NOW},"
            " text = NULL, staged = NULL WHERE id = ?",
            (document_id, job_id),
        )

    def fail(self, job_id: int, error: str) -> None:
        """The job failed, for a reason in plain words."""
        self._execute(
            f"UPDATE jobs SET status = 'failed', error = ?, finished_at = {NOW} WHERE id = ?", (error, job_id)
        )

    def retry(self, job_id: int) -> bool:
        """Queue a failed job again whose content is still there; answers whether it was one."""
        queued = self._execute(
            "UPDATE jobs SET status = 'queued', attempts = 0, progress = 0, error = NULL, finished_at = NULL"
            " WHERE id = ? AND status = 'failed' AND (text IS NOT NULL OR staged IS NOT NULL) RETURNING id",
            (job_id,),
        )
        return bool(queued.fetchall())

    def drop_content(self, job_id: int) -> None:
        """The staged file is of no use any more."""
        self._execute("UPDATE jobs SET staged = NULL WHERE id = ?", (job_id,))

    def staged(self) -> set[str]:
        """The staged files that are still needed."""
        rows = self._execute("SELECT staged FROM jobs WHERE staged IS NOT NULL")
        return {name for (name,) in rows}

    def _jobs(self, rest: str, parameters: tuple[object, ...]) -> list[Job]:
        rows = self._execute(f"SELECT {COLUMNS} FROM jobs {rest}", parameters)
        return [
            Job(*[*row[:6], strings(row[6]), *row[7:10], iso(row[10]), iso(row[11]), iso(row[12]), *row[13:]])
            for row in rows
        ]
