"""The queue, in SQL."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from kb import clock
from kb.api.errors import LeaseLost
from kb.store.postgres.statements import statements
from kb.store.row_mapping import Execute, counts, field_values, job_of, mapped, moment, stored_limit
from kb.store.sql.operations import note_operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kb.api.access import Caller
    from kb.api.models import JobStatus
    from kb.store.rows import Job, NewJob

LOOKED_AT = 200
"""Among how many jobs short ones are looked for."""

GONE_SECONDS = 10.0
"""How long a job must have given no sign of life whose engine seems gone: that may have lost but a connection."""

ENGINES = 0x6B62
"""The class of the advisory locks that engines hold on their numbers."""


class PostgresJobs:
    """See `kb.store.protocol.Jobs`. The jobs of other engines that are there are left to these.

    Args:
        execute: the transaction's.
        engine: the number of this engine.
    """

    def __init__(self, execute: Execute, engine: int) -> None:
        self._execute = execute
        self._engine = engine
        self._sql = statements("jobs")

    def add(self, job: NewJob) -> int:
        """Queue a job, unless there is one under its key; return the id of either."""
        note_operation(self._execute, statements("operations"), job.author, moment(clock.own.now()))
        columns = field_values(job) | field_values(job.author)
        columns |= {"tags": list(job.tags), "limits": stored_limit(job.limit)}
        added = self._execute(self._sql["insert_job"], columns).fetchone()
        job_id: int = added[0] if added else self._execute(self._sql["find_by_key"], (job.idempotency_key,)).get
        return job_id

    def get(self, job_id: int) -> Job | None:
        """Return the job, if there is one."""
        return next(iter(self._jobs("id = %s", (job_id,))), None)

    def with_key(self, idempotency_key: str) -> Job | None:
        """Return the job that was accepted under this key."""
        return next(iter(self._jobs("idempotency_key = %s", (idempotency_key,))), None)

    def pending(self, of: Caller | None = None) -> int:
        """Return how many jobs are queued or running, of all or of those that one sent."""
        condition, parameters = sent_by(of)
        count: int = self._execute(self._sql["count_pending"].format(condition=condition), parameters).get
        return count

    def count(self, of: Caller | None = None) -> dict[str, int]:
        """Return how many jobs there are in each state, of all or of those that one sent."""
        condition, parameters = sent_by(of)
        return dict(self._execute(self._sql["count_by_status"].format(condition=condition), parameters).fetchall())

    def queue_age(self) -> float:
        """For how many seconds the oldest queued job has waited; 0 if there is none."""
        age: float | None = self._execute(self._sql["queue_age"]).get
        return max(0.0, age or 0.0)

    def page(self, *, status: JobStatus | None, limit: int, before: int | None, of: Caller | None = None) -> list[Job]:
        """Jobs with an id below `before`, newest first, of all or of those that one sent."""
        condition, values = sent_by(of)
        conditions, parameters = [condition], list[object](values)
        if status is not None:
            conditions.append("status = %s")
            parameters.append(status)
        if before is not None:
            conditions.append("id < %s")
            parameters.append(before)
        where = " AND ".join(conditions)
        return self._jobs(f"{where} ORDER BY id DESC LIMIT %s", (*parameters, limit))

    def claim(self, limit: int, *, files: bool = True, begun_first: bool = False) -> list[Job]:
        """Turn queued jobs to running: new ones together, or one that was begun before, by itself."""
        for begun in (begun_first, not begun_first):
            if jobs := self._begin(files, begun=begun, limit=1 if begun else limit):
                return jobs
        return []

    def claim_short(self, limit: int, size: int, is_short: Callable[[str], bool] | None) -> list[Job]:
        """Turn queued new notes of at most so many bytes, and files that are short, to running."""
        ids = [job_id for job_id, _ in self._execute(self._sql["select_short_notes"], (size, limit)).fetchall()]
        if is_short and len(ids) < limit:
            files = self._execute(self._sql["select_new_files"], (LOOKED_AT,)).fetchall()
            ids += islice((job_id for job_id, staged in files if is_short(staged)), limit - len(ids))
        return self._claimed(self._execute(self._sql["claim_these"], (self._engine, ids)))

    def heartbeat(self, job_ids: Iterable[int]) -> None:
        """Say that the jobs are still being worked on."""
        self._execute(self._sql["heartbeat"], (list(job_ids), self._engine))

    def set_progress(self, job_id: int, progress: float) -> bool:
        """Say how far the job is, from 0 to 1; return whether it is still there."""
        return bool(self._execute(self._sql["set_progress"], (progress, job_id)).fetchall())

    def set_started(self, job_id: int, seconds: float) -> None:
        """Say that the job was begun so long ago."""
        self._execute(self._sql["set_started"], (seconds, job_id))

    def give_up(self, attempts: int, error: str) -> list[int]:
        """Fail the running jobs that were begun so often; return their ids."""
        return [job_id for job_id, _ in self._unless_elsewhere("give_up", attempts=attempts, error=error)]

    def release_all(self) -> None:
        """Queue every running job again: whoever ran it is gone."""
        self._unless_elsewhere("release_all")

    def release_stalled(self, seconds: float) -> int:
        """Queue running jobs again that gave no heartbeat for so long, and those of engines that are gone."""
        self._unless_elsewhere("release_gone", seconds=GONE_SECONDS)
        return len(self._unless_elsewhere("release_stalled", seconds=seconds).fetchall())

    def release(self, job_ids: Iterable[int], *, failed: bool) -> None:
        """Queue running jobs again that are this engine's still; the attempt counts if it `failed`."""
        self._execute(self._sql["release"], (int(not failed), list(job_ids), self._engine))

    def finish(
        self, job_id: int, document_id: int, *, existed: bool = False, omitted: Mapping[str, int] | None = None
    ) -> None:
        """The job is done; its text is in the document now, or `existed` there.

        Raises:
            LeaseLost: another engine has it.
        """
        self._end("finish", job_id, document_id=document_id, existed=existed, omitted=counts(omitted))

    def forget_failed(self, job_id: int) -> None:
        """Forget the earlier jobs for this one's path that failed and kept nothing."""
        self._execute(self._sql["forget_failed"], (job_id,))

    def fail(self, job_id: int, error: str) -> None:
        """The job failed, for a reason in plain words. Raises as `finish`."""
        self._end("fail", job_id, error=error)

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
        return len(self._execute(self._sql["expire"], (clock.own.expiry(), days, limit)).fetchall())

    def delete(self, job_id: int) -> None:
        """Forget the job."""
        self._execute(self._sql["delete_job"], (job_id,))

    def drop_content(self, job_id: int) -> None:
        """The staged file is of no use any more."""
        self._execute(self._sql["drop_content"], (job_id,))

    def staged(self) -> set[str]:
        """Return the staged files that are still needed."""
        return {name for (name,) in self._execute(self._sql["select_staged"])}

    def left_at(self, place: str) -> list[str]:
        """Return the staged files that are in a data directory still, and not where every engine has them."""
        return [name for (name,) in self._execute(self._sql["select_left"], (place,))]

    def set_brought(self, staged: str) -> None:
        """Say that every engine has a staged file."""
        self._execute(self._sql["set_brought"], (staged,))

    def _end(self, name: str, job_id: int, **values: object) -> None:
        sql = self._sql[name].format(held=self._sql["held"])
        ended = self._execute(sql, values | {"id": job_id, "engine": self._engine}).fetchone()
        if not ended and self.get(job_id):
            raise LeaseLost(f"Another engine has taken up job {job_id}; nothing of it was written here.")

    def _jobs(self, condition: str, parameters: tuple[object, ...]) -> list[Job]:
        return mapped(job_of, self._execute(self._sql["select_jobs"].format(condition=condition), parameters))

    def _begin(self, files: bool, *, begun: bool, limit: int) -> list[Job]:
        wanted = {"engine": self._engine, "files": files, "begun": begun, "limit": limit}
        return self._claimed(self._execute(self._sql["claim"], wanted))

    def _claimed(self, rows: Iterable[tuple[int]]) -> list[Job]:
        ids = [job_id for (job_id,) in rows]
        return self._jobs("id = ANY(%s) ORDER BY id", (ids,)) if ids else []

    def _unless_elsewhere(self, name: str, **parameters: object) -> Any:  # noqa: ANN401 - a cursor
        sql = self._sql[name].format(gone=self._sql["gone"])
        return self._execute(sql, parameters | {"engine": self._engine, "class": ENGINES})


def sent_by(caller: Caller | None) -> tuple[str, tuple[object, ...]]:
    """Return the condition on jobs that one sent, within the limit that the key has; all for None."""
    if caller is None:
        return "TRUE", ()
    same = "sent_by IS NOT DISTINCT FROM %s::text AND limits IS NOT DISTINCT FROM %s::text"
    return same, (caller.name, stored_limit(caller.limit))
