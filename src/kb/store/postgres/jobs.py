"""The queue, in PostgreSQL."""

from kb.store.postgres.statements import statements
from kb.store.row_mapping import Execute
from kb.store.sql.jobs import Jobs

GONE_SECONDS = 10.0
"""The time without a heartbeat after which kb requeues a job whose engine seems gone; it may only be disconnected."""

ENGINES = 0x6B62
"""The class of the advisory locks that engines hold for their numbers."""


class PostgresJobs(Jobs):
    """See `kb.store.protocol.Jobs`. It leaves the jobs of other live engines to these engines.

    Args:
        execute: the transaction's.
    """

    def __init__(self, execute: Execute, engine: int) -> None:
        super().__init__(execute, statements, {"engine": engine, "class": ENGINES})

    def release_stalled(self, seconds: float) -> int:
        """Requeue running jobs without a heartbeat for `seconds`, and jobs of engines that are gone."""
        self._ask("release_gone", seconds=GONE_SECONDS)
        return super().release_stalled(seconds)

    def left_at(self, place: str) -> list[str]:
        """Return the staged files that are still only in the data folder `place`, where other engines cannot read."""
        return [name for (name,) in self._ask("select_left", place=place)]

    def set_brought(self, staged: str) -> None:
        """Record that every engine can read a staged file."""
        self._ask("set_brought", staged=staged)
