"""Vectors of another model beside those in use: there are none yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from kb.api.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from kb.api.models import ReembedState
    from kb.store.rows import Chunk, MissingVector, SecondSpace, VectorSpace


class PostgresSecondVectors:
    """See `kb.store.protocol.SecondVectors`. As none can be begun, there are none."""

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
        """Refuse to count."""
        _refuse()

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
    raise StoreError("Making vectors of another model (kb reembed) is not there yet over PostgreSQL.")
