"""The audit log, in SQL."""

from collections.abc import Iterable, Mapping

from kb import clock
from kb.store.row_mapping import Execute, field_values, map_audit_line, mapped, moment
from kb.store.rows import AuditEvent, AuditLine, Author, Retention
from kb.store.statements import condition


class Audit:
    """See `kb.store.protocol.Audit`."""

    def __init__(self, execute: Execute, sql: Mapping[str, str], retention: Retention) -> None:
        self._execute = execute
        self._sql = sql
        self._retention = retention

    def add(self, events: Iterable[AuditEvent], author: Author) -> None:
        for event in events:
            self._execute(self._sql["insert_line"], field_values(event) | field_values(author))

    def page(self, *, limit: int, before: int | None, document_id: int | None, by: str | None) -> list[AuditLine]:
        asked = {"where_before": before, "where_document": document_id, "where_by": by}
        names = [name for name, value in asked.items() if value is not None]
        sql = self._sql["select_lines"].format(condition=condition(self._sql, names))
        parameters = {"before": before, "document_id": document_id, "by": by, "limit": limit}
        return mapped(map_audit_line, self._execute(sql, parameters))

    def expire(self, limit: int) -> int:
        days, lines = self._retention.audit_days, self._retention.audit_lines
        parameters = {"expiry": moment(clock.own.expiry()), "days": days, "lines": lines, "limit": limit}
        return len(self._execute(self._sql["expire"], parameters).fetchall())
