"""Who did what, in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb import clock
from kb.store.postgres.document_query import joined
from kb.store.postgres.statements import statements
from kb.store.row_mapping import Execute, audit_line_of, field_values, mapped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kb.store.rows import AuditEvent, AuditLine, Author, Retention


class PostgresAudit:
    """See `kb.store.protocol.Audit`."""

    def __init__(self, execute: Execute, retention: Retention) -> None:
        self._execute = execute
        self._retention = retention
        self._sql = statements("audit")

    def add(self, events: Iterable[AuditEvent], author: Author) -> None:
        """Write a line for each."""
        for event in events:
            self._execute(self._sql["insert_line"], field_values(event) | field_values(author))

    def page(self, *, limit: int, before: int | None, document_id: int | None, by: str | None) -> list[AuditLine]:
        """Return lines with an id below `before`, newest first, of all or of a document or a key."""
        asked = (("id < %s", before), ("document_id = %s", document_id), ("by_key = %s", by))
        condition, parameters = joined((sql, (value,)) for sql, value in asked if value is not None)
        sql = self._sql["select_lines"].format(condition=condition)
        return mapped(audit_line_of, self._execute(sql, (*parameters, limit)))

    def expire(self, limit: int) -> int:
        """Delete at most so many lines that are too old or too many; return how many."""
        kept = self._retention
        return len(
            self._execute(
                self._sql["expire"], (clock.own.expiry(), kept.audit_days, kept.audit_lines, limit)
            ).fetchall()
        )
