"""The queue, in SQL."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

from kb import clock
from kb.store.row_mapping import Execute, array, counts, field_values, job_of, mapped, moment, next_ids, stored_limit
from kb.store.sql.operations import note_operation
from kb.store.sqlite.statements import statements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import apsw

    from kb.api.access import Caller
    from kb.api.models import JobStatus
    from kb.store.rows import Job, NewJob

LOOKED_AT = 200
"""Among how many jobs short ones are looked for."""


class SqliteJobs:
    """See `kb.store.protocol.Jobs`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute: Execute = connection.execute
        self._sql = statements("jobs")

    def add(self, job: NewJob) -> int:
        """Queue a job, unless there is one under its key; return the id of either."""
        note_operation(self._execute, statements("operations"), job.author, moment(clock.own.now()))
        [job_id] = next_ids(self._execute, self._sql["take_job_ids"], 1)
        columns = field_values(job) | field_values(job.author) | {"id": job_id, "tags": array(job.tags)}
        columns["limits"] = stored_limit(job.limit)
        added = self._execute(self._sql["insert_job"], columns).fetchall()
        earlier: int = job_id if added else self._execute(self._sql["find_by_key"], (job.idempotency_key,)).get
        return earlier

    def get(self, job_id: int) -> Job | None:
        """Return the job, if there is one."""
        return next(iter(self._jobs("id = ?", (job_id,))), None)

    def with_key(self, idempotency_key: str) -> Job | None:
        """Return the job that was accepted under this key."""
        return next(iter(self._jobs("idempotency_key = ?", (idempotency_key,))), None)

    def pending(self, of: Caller | None = None) -> int:
        """Return how many jobs are queued or running, of all or of those that one sent."""
        condition, parameters = sent_by(of)
        count: int = self._execute(self._sql["count_pending"].format(condition=condition), parameters).get
        return count

    def count(self, of: Caller | None = None) -> dict[str, int]:
        """Return how many jobs there are in each state, of all or of those that one sent."""
        condition, parameters = sent_by(of)
        return dict(self._execute(self._sql["count_by_status"].format(condition=condition), parameters))

    def queue_age(self) -> float:
        """For how many seconds the oldest queued job has waited; 0 if there is none."""
        age: float | None = self._execute(self._sql["queue_age"]).get
        return max(0.0, age or 0.0)

    def page(self, *, status: JobStatus | None, limit: int, before: int | None, of: Caller | None = None) -> list[Job]:
        """Jobs with an id below `before`, newest first, of all or of those that one sent."""
        condition, values = sent_by(of)
        conditions, parameters = [condition], list[object](values)
        if status is not None:
            conditions.append("status = ?")
            parameters.append(status)
        if before is not None:
            conditions.append("id < ?")
            parameters.append(before)
        where = " AND ".join(conditions)
        return self._jobs(f"{where} ORDER BY id DESC LIMIT ?", (*parameters, limit))

    def claim(self, limit: int, *, files: bool = True, begun_first: bool = False) -> list[Job]:
        """Turn queued jobs to running: new ones together, or one that was begun before, by itself."""
        for begun in (begun_first, not begun_first):
            if jobs := self._begin(files, begun=begun, limit=1 if begun else limit):
                return jobs
        return []

    def claim_short(self, limit: int, size: int, is_short: Callable[[str], bool] | None) -> list[Job]:
        """Turn queued new notes of at most so many bytes, and files that are short, to running."""
        ids = [job_id for job_id, _ in self._execute(self._sql["select_short_notes"], (size, limit))]
        if is_short and len(ids) < limit:
            files = self._execute(self._sql["select_new_files"], (LOOKED_AT,)).fetchall()
            ids += islice((job_id for job_id, staged in files if is_short(staged)), limit - len(ids))
        return self._claimed(self._execute(self._sql["claim_these"], (json.dumps(ids),)).fetchall())

    def heartbeat(self, job_ids: Iterable[int]) -> None:
        """Say that the jobs are still being worked on."""
        for job_id in job_ids:
            self._execute(self._sql["heartbeat"], (job_id,))

    def set_progress(self, job_id: int, progress: float) -> bool:
        """Say how far the job is, from 0 to 1; return whether it is still there."""
        return bool(self._execute(self._sql["set_progress"], (progress, job_id)).fetchall())

    def set_started(self, job_id: int, seconds: float) -> None:
        """Say that the job was begun so long ago."""
        self._execute(self._sql["set_started"], (f"-{seconds:.3f} seconds", job_id))

    def give_up(self, attempts: int, error: str) -> list[int]:
        """Fail the running jobs that were begun so often; return their ids."""
        return [job_id for (job_id,) in self._execute(self._sql["give_up"], (error, attempts))]

    def release_all(self) -> None:
        """Queue every running job again: whoever ran it is gone."""
        self._execute(self._sql["release_all"])

    def release_stalled(self, seconds: float) -> int:
        """Queue running jobs again that gave no heartbeat for so long."""
        return len(self._execute(self._sql["release_stalled"], (f"-{seconds} seconds",)).fetchall())

    def release(self, job_ids: Iterable[int], *, failed: bool) -> None:
        """Queue running jobs again; the attempt counts if it `failed`."""
        for job_id in job_ids:
            self._execute(self._sql["release"], (not failed, job_id))

    def finish(
        self, job_id: int, document_id: int, *, existed: bool = False, omitted: Mapping[str, int] | None = None
    ) -> None:
        """The job is done; its text is in the document now, or `existed` there."""
        self._execute(self._sql["finish"], (document_id, existed, counts(omitted), job_id))

    def forget_failed(self, job_id: int) -> None:
        """Forget the earlier jobs for this one's path that failed and kept nothing."""
        self._execute(self._sql["forget_failed"], (job_id,))

    def fail(self, job_id: int, error: str) -> None:
        """The job failed, for a reason in plain words."""
        self._execute(self._sql["fail"], (error, job_id))

    def later(self, job_id: int) -> int | None:
        """Return the last job that came after this one for its path, and is done or runs."""
        found: int | None = self._execute(self._sql["select_later"], (job_id,)).get
        return found

    def retry(self, job_id: int) -> bool:
        """Queue a failed job again whose content is still there; answers whether it was one."""
        return bool(self._execute(self._sql["retry"], (job_id,)).fetchall())

    def retry_parts(self, document_id: int) -> None:
        """Queue the failed jobs again of what came inside a document, whose content is still there."""
        self._execute(self._sql["retry_parts"], (document_id,))

    def expire(self, days: int, limit: int) -> int:
        """Delete the jobs that were done so long ago, the oldest first; return how many."""
        return len(self._execute(self._sql["expire"], (f"-{days} days", limit)).fetchall())

    def delete(self, job_id: int) -> None:
        """Forget the job."""
        self._execute(self._sql["delete_job"], (job_id,))

    def drop_content(self, job_id: int) -> None:
        """The staged file is of no use any more."""
        self._execute(self._sql["drop_content"], (job_id,))

    def staged(self) -> set[str]:
        """Return the staged files that are still needed."""
        return {name for (name,) in self._execute(self._sql["select_staged"])}

    def _jobs(self, condition: str, parameters: tuple[object, ...]) -> list[Job]:
        return mapped(job_of, self._execute(self._sql["select_jobs"].format(condition=condition), parameters))

    def _begin(self, files: bool, *, begun: bool, limit: int) -> list[Job]:
        wanted = {"files": files, "begun": begun, "limit": limit}
        return self._claimed(self._execute(self._sql["claim"], wanted).fetchall())

    def _claimed(self, ids: Sequence[tuple[int]]) -> list[Job]:
        among = json.dumps([job_id for (job_id,) in ids])
        return self._jobs("id IN (SELECT value FROM json_each(?)) ORDER BY id", (among,)) if ids else []


def sent_by(caller: Caller | None) -> tuple[str, tuple[object, ...]]:
    """Return the condition on jobs that one sent, within the limit that the key has; all for None."""
    if caller is None:
        return "TRUE", ()
    return "sent_by IS ? AND limits IS ?", (caller.name, stored_limit(caller.limit))
