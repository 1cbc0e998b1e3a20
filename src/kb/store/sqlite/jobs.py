"""The queue, in SQLite."""

from __future__ import annotations

from kb.store.row_mapping import next_ids
from kb.store.sql.jobs import Jobs


class SqliteJobs(Jobs):
    """See `kb.store.protocol.Jobs`. No id is given twice."""

    def _new_id(self) -> int:
        [job_id] = next_ids(self._execute, self._sql["take_job_ids"], 1)
        return job_id
