"""Second vectors, of another model or prefix than the vectors in use, in SQL."""

from abc import ABC, abstractmethod

from kb.api.fields import ReembedState
from kb.store.row_mapping import Execute, field_values
from kb.store.rows import MissingVector, SecondSpace, VectorSpace


class SecondVectors(ABC):
    """See `kb.store.protocol.SecondVectors`."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    def get(self) -> SecondSpace | None:
        row = self._execute(self._sql("select_second")).fetchone()
        return SecondSpace(row[0], VectorSpace(*row[1:])) if row else None

    def begin(self, space: VectorSpace) -> None:
        self.discard()
        self._record("building", space)

    def set_state(self, state: ReembedState) -> None:
        self._execute(self._sql("update_state"), {"state": state})

    def counts(self) -> tuple[int, int]:
        return self._execute(self._sql("count_vectors")).get, self._execute(self._sql("count_wanted")).get

    def missing(self, after: int, limit: int) -> list[MissingVector]:
        rows = self._execute(self._sql("select_missing"), {"after": after, "limit": limit}).fetchall()
        return [MissingVector(*row) for row in rows]

    @abstractmethod
    def discard(self) -> None: ...

    @abstractmethod
    def _sql(self, name: str) -> str:
        """Return a statement about the second vectors."""

    def _record(self, state: ReembedState, space: VectorSpace) -> None:
        self._execute(self._sql("record_second"), field_values(space) | {"state": state})
