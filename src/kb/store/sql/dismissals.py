"""Near duplicates that a person dismissed, in SQL."""

from collections.abc import Iterable

from kb.store.sql.sql_part import SqlPart


class Dismissals(SqlPart):
    """See `kb.store.protocol.Dismissals`."""

    def all(self) -> set[tuple[str, str]]:
        return {(one, other) for one, other in self._execute(self._sql["select_dismissed"])}

    def set(self, pairs: Iterable[tuple[str, str]], *, dismissed: bool) -> None:
        for one, other in pairs:
            self._execute(self._sql["dismiss" if dismissed else "show_again"], {"one": one, "other": other})
