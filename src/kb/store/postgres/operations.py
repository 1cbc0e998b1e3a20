"""What belongs together and is taken back together, in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kb.store.postgres.statements import statements
from kb.store.row_mapping import Execute, field_values, mapped, operation_of
from kb.store.rows import OperationCounts

if TYPE_CHECKING:
    from kb.api.access import Caller
    from kb.store.rows import Author, Operation

MOST: Final = 100_000
"""So many operations are kept."""

HAS_EFFECT: Final = """
(
  EXISTS (SELECT 1 FROM documents WHERE documents.operation = operations.id)
  OR EXISTS (SELECT 1 FROM versions WHERE versions.operation = operations.id)
  OR EXISTS (SELECT 1 FROM bin WHERE bin.operation = operations.id)
  OR EXISTS (
    SELECT 1 FROM jobs WHERE jobs.operation_key = operations.key AND jobs.status IN ('queued', 'running')
  )
)
"""
"""Whether anything is left of an operation that could be taken back."""


def note_operation(execute: Execute, author: Author, now: str) -> None:
    """Note the operation that a change is part of, before the change."""
    if author.operation_key is None:
        return
    sql = statements("operations")
    noted = execute(sql["note"], field_values(author) | {"now": now}).fetchone()
    if noted:
        execute(sql["trim"], (noted[0] - MOST,))


class PostgresOperations:
    """See `kb.store.protocol.Operations`."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._sql = statements("operations")

    def get(self, number: int) -> Operation | None:
        """Return an operation, if it is known."""
        return next(iter(self._operations("id = %s", number)), None)

    def page(self, *, limit: int, before: int | None = None, of: Caller | None = None) -> list[Operation]:
        """Return operations of which something is left, newest first, of all or of one caller."""
        condition = HAS_EFFECT
        parameters: list[object] = []
        if before is not None:
            condition += " AND id < %s"
            parameters.append(before)
        if of is not None:
            condition += " AND by_key IS NOT DISTINCT FROM %s"
            parameters.append(of.name)
        return self._operations(f"{condition} ORDER BY id DESC LIMIT %s", *parameters, limit)

    def documents(self, number: int) -> list[int]:
        """Return the documents that an operation added, changed or deleted, by ascending id."""
        rows = self._execute(self._sql["select_documents"], {"id": number})
        return sorted(document_id for (document_id,) in rows)

    def jobs(self, operation: Operation) -> list[int]:
        """Return the jobs of an operation that are not done yet."""
        return [job_id for (job_id,) in self._execute(self._sql["select_jobs"], (operation.key,))]

    def counts(self, number: int) -> OperationCounts:
        """Return how many documents an operation added, changed and deleted."""
        return OperationCounts(*self._execute(self._sql["count"], {"id": number}).fetchone())

    def _operations(self, condition: str, *parameters: object) -> list[Operation]:
        sql = self._sql["select"].format(condition=condition)
        return mapped(operation_of, self._execute(sql, parameters))
