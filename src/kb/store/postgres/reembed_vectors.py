"""Second vectors, of another model or prefix, which replace the vectors in use in one transaction.

The database has two tables of vectors, and a row that names the table in use. Each table has its own index, which grows
with it, so a switch changes only that row and nobody waits. One engine makes the second vectors; if it is gone, another
one continues. kb embeds new chunks first only for the vectors in use, and later for the second vectors. It deletes
vectors of deleted chunks from both tables.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import psycopg
from numpy.typing import NDArray

from kb.api.errors import NotReembedding, StoreUnavailable
from kb.store.postgres.connection import Connection
from kb.store.postgres.jobs import ENGINES
from kb.store.postgres.statements import statements
from kb.store.postgres.vector_space import MOST_DIMENSIONS, TOO_LONG, index_vectors, recount_precisions
from kb.store.postgres.vectors import VectorTable
from kb.store.rows import VectorSpace
from kb.store.sql.reembed_vectors import SecondVectors

HUNG_SECONDS: Final = 120.0
"""A live engine without a sign of work on the second vectors for this time counts as hung."""

IN_USE: Final = (
    "Another program, such as a backup, is reading the vectors that would be deleted. Try again once it has finished."
)


class PostgresSecondVectors(SecondVectors):
    """See `kb.store.protocol.SecondVectors`. Remembers whether its transaction `switched`.

    Args:
        connection: the transaction's.
        vectors: the vectors in use.
    """

    def __init__(self, connection: Connection, vectors: VectorTable, engine: int) -> None:
        super().__init__(connection.execute)
        self._connection = connection
        self._vectors = vectors
        self._engine = engine
        self.switched = False

    def begin(self, space: VectorSpace) -> None:
        """Begin an empty set of this space.

        Raises:
            NotReembedding: the vectors are too long for an index.
        """
        if space.dimensions > MOST_DIMENSIONS:
            raise NotReembedding(TOO_LONG)
        super().begin(space)
        index_vectors(self._connection, self._vectors.other, space.dimensions)

    def take(self) -> bool:
        sql = self._sql("take").format(gone=statements("jobs")["gone"])
        row = self._execute(sql, {"engine": self._engine, "class": ENGINES, "seconds": HUNG_SECONDS})
        return row.get is not None

    def discard(self) -> None:
        """Delete the second vectors.

        Raises:
            StoreUnavailable: another transaction reads them.
        """
        try:
            self._execute(self._sql("wait_briefly"))
            self._execute(statements("vectors")["empty"].format(vectors=self._vectors.other))
            self._execute(self._sql("delete_second"))
        except psycopg.errors.LockNotAvailable as error:
            raise StoreUnavailable(IN_USE) from error

    def add(self, ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(self._sql("insert_vector"), list(zip(vectors, ids, strict=True)))

    def code(self) -> bool:
        """Return False, because the index grew with the vectors."""
        return False

    def switch(self) -> bool:
        second = self.get()
        if second is None or self._execute(self._sql("is_incomplete")).get:
            return False
        former = self._vectors.space
        recount_precisions(self._connection, second.space.precision)
        self._execute(statements("second")["delete_empty"].format(vectors=self._vectors.name))
        self._execute(self._sql("switch_space"), (self._vectors.other,))
        self._record("kept", former)
        self.switched = True
        return True

    def _sql(self, name: str) -> str:
        sql = statements("second")[name]
        return sql.format(vectors=self._vectors.other) if "{vectors}" in sql else sql
