"""Operations, whose changes can be undone together, in SQL."""

from collections.abc import Mapping
from typing import Final

from kb.api.rights import Caller
from kb.store.row_mapping import Execute, field_values, map_operation, mapped
from kb.store.rows import Author, Operation, OperationCounts
from kb.store.sql.sql_part import SqlPart
from kb.store.statements import condition

MOST: Final = 100_000
"""The number of operations that kb keeps."""


def note_operation(execute: Execute, sql: Mapping[str, str], author: Author, now: str) -> None:
    """Record the operation of a change, before the change; `sql` contains the statements about operations."""
    if author.operation_key is None:
        return
    noted = execute(sql["note"], field_values(author) | {"now": now}).fetchone()
    if noted:
        execute(sql["trim"], {"id": noted[0] - MOST})


class Operations(SqlPart):
    """See `kb.store.protocol.Operations`."""

    def get(self, number: int) -> Operation | None:
        return next(iter(self._operations("where_number", id=number)), None)

    def page(
        self, *, limit: int, before: int | None = None, of: Caller | None = None, key: str | None = None
    ) -> list[Operation]:
        asked = {
            "where_left": True,
            "where_key": key is not None,
            "where_before": before is not None,
            "where_by": of is not None,
        }
        names = [name for name, is_asked in asked.items() if is_asked]
        return self._operations(*names, before=before, by=of.name if of else None, key=key, limit=limit)

    def documents(self, number: int) -> list[int]:
        rows = self._execute(self._sql["select_documents"], {"id": number})
        return sorted(document_id for (document_id,) in rows)

    def jobs(self, operation: Operation) -> list[int]:
        return [job_id for (job_id,) in self._execute(self._sql["select_jobs"], {"key": operation.key})]

    def counts(self, number: int) -> OperationCounts:
        return OperationCounts(*self._execute(self._sql["count"], {"id": number}).fetchone())

    def _operations(self, *names: str, limit: int = 1, **parameters: object) -> list[Operation]:
        """Return the operations that meet the named conditions."""
        sql = self._sql["select"].format(condition=condition(self._sql, names))
        return mapped(map_operation, self._execute(sql, parameters | {"limit": limit}))
