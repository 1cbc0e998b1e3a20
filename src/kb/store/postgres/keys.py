"""The named keys, which all engines share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kb.store.postgres.statements import statements
from kb.store.row_mapping import Execute, field_values, map_key, mapped
from kb.store.rows import NamedKey

if TYPE_CHECKING:
    from kb.store.postgres.blobs import Connect


class PostgresKeys:
    """See `kb.store.protocol.Keys`. Each change runs in its own transaction.

    Args:
        connect: lends a connection.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._sql = statements("keys")

    def all(self) -> list[NamedKey]:
        with self._connect() as connection:
            execute: Execute = connection.execute
            return mapped(map_key, execute(self._sql["select_keys"]))

    def add(self, key: NamedKey) -> bool:
        return self._written("insert_key", key)

    def rotate(self, key: NamedKey, before: str) -> bool:
        return self._written("rotate_key", key, before=before)

    def remove(self, name: str) -> None:
        with self._connect() as connection:
            connection.execute(self._sql["delete_key"], (name,))

    def used(self, moments: Mapping[str, str]) -> None:
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.executemany(self._sql["set_used"], [(at, name) for name, at in sorted(moments.items())])

    def _written(self, statement: str, key: NamedKey, **others: str) -> bool:
        values = field_values(key) | {"tags": list(key.tags)} | others
        with self._connect() as connection:
            return bool(connection.execute(self._sql[statement], values).rowcount)
