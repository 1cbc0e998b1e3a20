"""The queue, in PostgreSQL."""

from __future__ import annotations

from kb.store.postgres.statements import statements
from kb.store.row_mapping import Execute
from kb.store.sql.jobs import Jobs

GONE_SECONDS = 10.0
"""How long a job must have given no sign of life whose engine seems gone: that may have lost but a connection."""

ENGINES = 0x6B62
"""The class of the advisory locks that engines hold on their numbers."""


class PostgresJobs(Jobs):
    """See `kb.store.protocol.Jobs`. The jobs of other engines that are there are left to these.

    Args:
        execute: the transaction's.
        engine: the number of this engine.
    """

    def __init__(self, execute: Execute, engine: int) -> None:
        super().__init__(execute, statements, {"engine": engine, "class": ENGINES})

    def release_stalled(self, seconds: float) -> int:
        """Queue running jobs again that gave no heartbeat for so long, and those of engines that are gone."""
        self._ask("release_gone", seconds=GONE_SECONDS)
        return super().release_stalled(seconds)

    def left_at(self, place: str) -> list[str]:
        """Return the staged files that are in a data directory still, and not where every engine has them."""
        return [name for (name,) in self._ask("select_left", place=place)]

    def set_brought(self, staged: str) -> None:
        """Say that every engine has a staged file."""
        self._ask("set_brought", staged=staged)
