"""Grants of access to programs, in SQL."""

from kb.store.row_mapping import field_values, map_grant, mapped
from kb.store.rows import Grant
from kb.store.sql.sql_part import SqlPart


class Grants(SqlPart):
    """See `kb.store.protocol.Grants`."""

    def all(self) -> list[Grant]:
        return mapped(map_grant, self._execute(self._sql["select_grants"]))

    def add(self, grant: Grant) -> None:
        self._execute(self._sql["insert_grant"], field_values(grant))

    def exchange(self, grant: Grant, before: str) -> bool:
        values = field_values(grant) | {"before": before}
        return self._execute(self._sql["exchange"], values).fetchone() is not None

    def used(self, grant_id: str, at: str) -> None:
        self._execute(self._sql["set_used"], {"id": grant_id, "at": at})

    def remove(self, grant_id: str) -> None:
        self._execute(self._sql["delete_grant"], {"id": grant_id})

    def remove_of(self, key_name: str) -> None:
        self._execute(self._sql["delete_of_key"], {"key_name": key_name})

    def expire(self, now: str) -> None:
        self._execute(self._sql["expire"], {"now": now})
