"""Export and import of the tables; see `kb.store.sql.export_tables`."""

from collections.abc import Sequence
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.store.row_mapping import array
from kb.store.sql.export_tables import ARRAYS, Transfer
from kb.store.sqlite.schema import VectorSchema
from kb.store.sqlite.statements import statements
from kb.store.sqlite.vector_reader import SqliteVectorReader


class SqliteTransfer(Transfer):
    """The rows and vectors of a transaction, for an export or import."""

    def __init__(self, connection: apsw.Connection, dimensions: int) -> None:
        super().__init__(connection.execute, statements("transfer"), "?", (apsw.ConstraintError, OverflowError))
        self._connection = connection
        self._dimensions = dimensions

    def stored(self, row: dict[str, Any]) -> dict[str, Any]:
        return {column: array(value) if column in ARRAYS else value for column, value in super().stored(row).items()}

    def vectors(self, chunk_ids: Sequence[int]) -> NDArray[np.float32]:
        reader = SqliteVectorReader(self._connection, VectorSchema.of(self._connection), self._dimensions)
        return reader.vectors(np.array(chunk_ids, np.int64))
