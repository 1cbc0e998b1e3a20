"""Near duplicates that a person dismissed, in SQL."""

from collections.abc import Iterable, Mapping

from kb.store.row_mapping import Execute


class Dismissals:
    """See `kb.store.protocol.Dismissals`."""

    def __init__(self, execute: Execute, sql: Mapping[str, str]) -> None:
        self._execute = execute
        self._sql = sql

    def all(self) -> set[tuple[str, str]]:
        return {(one, other) for one, other in self._execute(self._sql["select_dismissed"])}

    def set(self, pairs: Iterable[tuple[str, str]], *, dismissed: bool) -> None:
        for one, other in pairs:
            self._execute(self._sql["dismiss" if dismissed else "show_again"], {"one": one, "other": other})
