"""The queue, in SQL."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from kb import clock
from kb.api.errors import LeaseLost
from kb.api.fields import VECTORS, JobStatus
from kb.api.rights import Caller, Limit
from kb.store.row_mapping import Execute, counts, field_values, map_job, mapped, moment, stored_limit
from kb.store.rows import Author, Job, NewJob
from kb.store.sql.operations import note_operation
from kb.store.statements import Statements, condition

LOOKED_AT = 200
"""The number of jobs among which kb searches for short ones."""


class Jobs:
    """See `kb.store.protocol.Jobs`.

    Args:
        execute: the transaction's.
        statements: the store's.
        engine: the parameters of the statements that identify this engine.
    """

    def __init__(self, execute: Execute, statements: Statements, engine: Mapping[str, int] | None = None) -> None:
        self._execute = execute
        self._statements = statements
        self._sql = statements("jobs")
        self._engine: dict[str, object] = dict(engine or {})

    def add(self, job: NewJob) -> int:
        note_operation(self._execute, self._statements("operations"), job.author, moment(clock.own.now()))
        columns = field_values(job) | field_values(job.author) | {"id": self._new_id()}
        columns |= {"tags": list(job.tags), "limits": stored_limit(job.limit)}
        added = self._execute(self._sql["insert_job"], columns).fetchall()
        job_id: int = added[0][0] if added else self._ask("find_by_key", key=job.idempotency_key).get
        return job_id

    def await_vectors(
        self, document_id: int, title: str, text: str, author: Author, limit: Limit | None = None
    ) -> None:
        if not self._ask("select_awaiting", id=document_id).fetchall():
            job_id = self.add(NewJob(VECTORS, title, text=text, author=author, limit=limit))
            self.set_document(job_id, document_id, existed=False, omitted={})

    def get(self, job_id: int) -> Job | None:
        return next(iter(self._jobs(["where_id"], id=job_id, limit=1)), None)

    def with_key(self, idempotency_key: str) -> Job | None:
        return next(iter(self._jobs(["where_key"], key=idempotency_key, limit=1)), None)

    def pending(self, of: Caller | None = None) -> int:
        names, parameters = sent_by(of)
        count: int = self._ask("count_pending", names, **parameters).get
        return count

    def count(self, of: Caller | None = None) -> dict[str, int]:
        """Return the number of jobs in each state, of all callers or of one."""
        names, parameters = sent_by(of)
        return dict(self._ask("count_by_status", names, **parameters).fetchall())

    def queue_age(self) -> float:
        """Return the wait of the oldest queued job in seconds; 0 if the queue is empty."""
        age: float | None = self._ask("queue_age").get
        return max(0.0, age or 0.0)

    def page(self, *, status: JobStatus | None, limit: int, before: int | None, of: Caller | None = None) -> list[Job]:
        names, parameters = sent_by(of)
        if status is not None:
            names.append("where_status")
        if before is not None:
            names.append("where_before")
        return self._jobs(names, **parameters, status=status, before=before, limit=limit)

    def claim(self, limit: int, *, files: bool = True, begun_first: bool = False) -> list[Job]:
        for begun in (begun_first, not begun_first):
            rows = self._ask("claim", files=files, begun=begun, limit=1 if begun else limit).fetchall()
            if jobs := self._claimed(rows):
                return jobs
        return []

    def claim_short(self, limit: int, size: int, is_short: Callable[[str], bool] | None) -> list[Job]:
        notes = self._ask("select_short_notes", size=size, limit=limit).fetchall()
        ids = [job_id for job_id, _ in notes]
        if is_short and len(ids) < limit:
            files = self._ask("select_new_files", limit=LOOKED_AT).fetchall()
            ids += islice((job_id for job_id, staged in files if is_short(staged)), limit - len(ids))
        return self._claimed(self._ask("claim_these", ids=ids).fetchall())

    def heartbeat(self, job_ids: Iterable[int]) -> None:
        self._ask("heartbeat", ids=list(job_ids))

    def set_progress(self, job_id: int, progress: float) -> bool:
        return bool(self._ask("set_progress", id=job_id, progress=progress).fetchall())

    def set_started(self, job_id: int, seconds: float) -> None:
        self._ask("set_started", id=job_id, seconds=seconds)

    def take_up(self, attempts: int, error: str) -> list[int]:
        failed = self._ask("give_up", attempts=attempts, error=error).fetchall()
        self._ask("release_all")
        return [job_id for job_id, *_ in failed]

    def try_vectors_again(self, seconds: float, attempts: int) -> int:
        return len(self._ask("try_vectors_again", seconds=seconds, attempts=attempts).fetchall())

    def release_stalled(self, seconds: float) -> int:
        return len(self._ask("release_stalled", seconds=seconds).fetchall())

    def release(self, job_ids: Iterable[int], *, failed: bool) -> None:
        self._ask("release", ids=list(job_ids), uncounted=int(not failed))

    def finish(
        self, job_id: int, document_id: int, *, existed: bool = False, omitted: Mapping[str, int] | None = None
    ) -> None:
        self._end("finish", job_id, document_id=document_id, existed=existed, omitted=counts(omitted))
        self._ask("forget_failed", id=job_id)

    def set_document(self, job_id: int, document_id: int, *, existed: bool, omitted: Mapping[str, int]) -> None:
        self._ask("set_document", id=job_id, document_id=document_id, existed=existed, omitted=counts(omitted))

    def awaits(self, source_path: str, before: int) -> bool:
        return bool(self._ask("is_path_awaited", source_path=source_path, before=before).get)

    def fail(self, job_id: int, error: str, *, drop: bool = False) -> None:
        self._end("fail", job_id, error=error, drop=drop)

    def later(self, job_id: int) -> int | None:
        last: int | None = self._ask("select_later", id=job_id).get
        return last

    def retry(self, job_id: int) -> bool:
        return bool(self._ask("retry", id=job_id).fetchall())

    def retry_parts(self, document_id: int) -> None:
        self._ask("retry_parts", id=document_id).fetchall()

    def expire(self, days: int, limit: int) -> int:
        return len(self._ask("expire", expiry=moment(clock.own.expiry()), days=days, limit=limit).fetchall())

    def delete(self, job_id: int) -> None:
        self._ask("delete_job", id=job_id).fetchall()

    def staged(self) -> set[str]:
        return {name for (name,) in self._ask("select_staged")}

    def _new_id(self) -> int | None:
        """Return the id of a new job; None if the database assigns it."""
        return None

    def _end(self, name: str, job_id: int, **parameters: object) -> None:
        ended = self._ask(name, id=job_id, **parameters).fetchall()
        if not ended and self.get(job_id):
            raise LeaseLost(f"Another engine has taken over job {job_id}; this engine saved none of its results.")

    def _jobs(self, names: Iterable[str], **parameters: object) -> list[Job]:
        return mapped(map_job, self._ask("select_jobs", names, **parameters))

    def _ask(self, name: str, names: Iterable[str] | None = None, /, **parameters: object) -> Any:  # noqa: ANN401 - a cursor
        """Execute a statement, with the named conditions if it takes conditions."""
        sql = self._sql[name]
        if names is not None:
            sql = sql.format(condition=condition(self._sql, names))
        return self._execute(sql, self._engine | parameters)

    def _claimed(self, rows: Iterable[tuple[int]]) -> list[Job]:
        ids = [job_id for (job_id,) in rows]
        return self._jobs(["where_ids"], ids=ids, limit=len(ids))[::-1] if ids else []


def sent_by(caller: Caller | None) -> tuple[list[str], dict[str, str | None]]:
    """Return the condition on jobs that a caller sent, with the limit of the key; no condition for None."""
    if caller is None:
        return [], {}
    return ["where_sent"], {"sent_by": caller.name, "limits": stored_limit(caller.limit)}
