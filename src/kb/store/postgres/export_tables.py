"""Export and import of a database in PostgreSQL; see `kb.store.sql.export_tables`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import psycopg
from numpy.typing import NDArray

from kb.api.document_day import own_day
from kb.api.errors import StoreError
from kb.store.postgres.jobs import ENGINES
from kb.store.postgres.statements import statements
from kb.store.postgres.vector_space import IN_USE
from kb.store.row_mapping import Execute
from kb.store.sql.export_tables import ARRAYS, Transfer

if TYPE_CHECKING:
    from kb.store.postgres.vectors import VectorTable

REFUSALS: Final = (psycopg.IntegrityError, psycopg.DataError, psycopg.errors.ProgramLimitExceeded)
"""The errors for a row that breaks a rule or is too long for an index."""


class PostgresTransfer(Transfer):
    """The rows of a transaction, and its vectors."""

    def __init__(self, execute: Execute, vectors: VectorTable) -> None:
        super().__init__(execute, statements("transfer"), "%s", REFUSALS)
        self._vectors = vectors

    def stored(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row from an export in the form of its table, with the day of its document date."""
        stored = {column: list(value) if column in ARRAYS else value for column, value in super().stored(row).items()}
        return stored | {"own_day": own_day(row["date"])} if "date" in row else stored

    def begin(self) -> None:
        """Postpone the index of the vectors to the end, which takes a tenth of the time for many vectors.

        Raises:
            StoreError: an engine has started. An engine that starts later finds that the database is incomplete.
        """
        if self._execute(statements("jobs")["count_engines"], {"class": ENGINES}).get > 1:
            raise StoreError(IN_USE)
        super().begin()
        self._execute(statements("vectors")["drop_index"].format(vectors=self._vectors.name))

    def finish(self) -> None:
        """Make the index if it is missing, and update the planner's statistics."""
        table = {"vectors": self._vectors.name}
        if not self._execute(self._sql["is_indexed"].format(**table)).get:
            sql = statements("vectors")["create_index"]
            self._execute(sql.format(**table, dimensions=self._vectors.space.dimensions))
        self._execute(self._sql["analyze"])

    def vectors(self, chunk_ids: Sequence[int]) -> NDArray[np.float32]:
        ids = np.array(chunk_ids, np.int64)
        vectors = np.empty((ids.size, self._vectors.space.dimensions), np.float32)
        vectors[np.argsort(ids)] = self._vectors.vectors(ids)
        return vectors
