"""The base of the parts of a transaction that need nothing but its connection and their own statements."""

from collections.abc import Mapping

from kb.store.row_mapping import Execute


class SqlPart:
    def __init__(self, execute: Execute, sql: Mapping[str, str]) -> None:
        self._execute = execute
        self._sql = sql
