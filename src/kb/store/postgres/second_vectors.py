"""Vectors of another model beside those in use: there are none yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from kb.api.errors import NotReembedding
from kb.store.postgres.statements import statements

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from kb.api.models import ReembedState
    from kb.store.row_mapping import Execute
    from kb.store.rows import Chunk, MissingVector, SecondSpace, VectorSpace


class PostgresSecondVectors:
    """See `kb.store.protocol.SecondVectors`. As none can be begun, there are none."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    def get(self) -> SecondSpace | None:
        """Return None: there are none."""

    def begin(self, space: VectorSpace) -> None:
        """Refuse to begin."""
        _refuse()

    def set_state(self, state: ReembedState) -> None:
        """Refuse to go on."""
        _refuse()

    def discard(self) -> None:
        """There is nothing to delete."""

    def counts(self) -> tuple[int, int]:
        """Return that there are none, and how many chunks there are."""
        return 0, self._execute(statements("documents")["count_chunks"]).get

    def missing(self, after: int, limit: int) -> list[MissingVector]:
        """Refuse to go on."""
        _refuse()

    def missing_former(self, after: int, limit: int) -> list[tuple[int, list[Chunk]]]:
        """Refuse to go on."""
        _refuse()

    def add(self, ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Refuse to go on."""
        _refuse()

    def add_former(self, content_id: int, vectors: NDArray[np.float32]) -> None:
        """Refuse to go on."""
        _refuse()

    def code(self) -> bool:
        """There is nothing to make."""
        return False

    def switch(self) -> bool:
        """Refuse to switch."""
        _refuse()


def _refuse() -> NoReturn:
    raise NotReembedding("Making vectors of another model (kb reembed) is not there yet over PostgreSQL.")
