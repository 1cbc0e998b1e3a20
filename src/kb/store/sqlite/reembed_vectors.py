"""A second set of vectors, of another model or prefix, that replaces the vectors in use in one transaction.

The replaced vectors become the second set, so kb can switch back the same way. New content first gets vectors only for
the set in use, and for the second set afterwards: the switch waits until no vector is missing. Triggers delete from
both sets.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.quantize import Quantizer
from kb.store.row_mapping import listed_ids
from kb.store.rows import VectorSpace
from kb.store.sql.reembed_vectors import SecondVectors
from kb.store.sqlite.schema import declare_vectors
from kb.store.sqlite.statements import statements
from kb.store.sqlite.vector_codes import CHECKSUM, MEAN, pack, unpack, unpacked_mean
from kb.store.sqlite.vector_space import read_space, record_space, recount_precisions
from kb.store.sqlite.vectors import Vectors, scan

# Codes per transaction.
CODED: Final = 2048

# The number of vectors from which the mean is computed.
SAMPLE: Final = 8192

TABLES: Final = ("second_space", "second_vectors", "second_mean", "second_codes")
SWAPPED: Final = (
    ("vector_codes", "second_codes"),
    ("vector_mean", "second_mean"),
)
"""Pairs of tables that exchange their names."""


class SqliteSecondVectors(SecondVectors):
    """See `kb.store.protocol.SecondVectors`. `switched` is the new space after its transaction switched."""

    def __init__(self, connection: apsw.Connection, vectors: Vectors) -> None:
        super().__init__(connection.execute)
        self._connection = connection
        self._vectors = vectors
        self.switched: VectorSpace | None = None

    def take(self) -> bool:
        """Return True, because SQLite has only one engine."""
        return True

    def discard(self) -> None:
        for table in TABLES:
            self._execute(f"DELETE FROM {table}")  # noqa: S608 - a constant

    def add(self, ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
        packed = pack(np.array(ids, np.int64), vectors)
        self._connection.executemany(self._sql("insert_vector"), zip(packed, ids, strict=True))

    def code(self) -> bool:
        second = self.get()
        if second is None or not self._vectors.exceeds(self._execute(statements("documents")["count_chunks"]).get):
            return False
        quantizer = self._quantizer(second.space.dimensions)
        uncoded = listed_ids(self._execute(self._sql("select_uncoded"), (CODED,)).get)
        ids, vectors = self._packed(uncoded, second.space.dimensions)
        codes = (code.tobytes() for code in quantizer.encode(ids, vectors))
        self._connection.executemany(self._sql("insert_code"), zip(ids.tolist(), codes, strict=True))
        return bool(ids.size)

    def switch(self) -> bool:
        second = self.get()
        if second is None or self._execute(self._sql("is_incomplete")).get or self.code():
            return False
        former = read_space(self._connection)
        with self._unchanged_triggers():
            self._swap_codes()
            self._swap_vectors(second.space.dimensions)
        record_space(self._connection, second.space)
        recount_precisions(self._connection, second.space.precision)
        self._record("kept", former)
        self.switched = second.space
        return True

    @contextmanager
    def _unchanged_triggers(self) -> Iterator[None]:
        """Let SQLite leave the names of renamed tables in triggers."""
        self._connection.pragma("legacy_alter_table", True)  # noqa: FBT003 - it has no keyword
        try:
            yield
        finally:
            self._connection.pragma("legacy_alter_table", False)  # noqa: FBT003 - it has no keyword

    def _swap_vectors(self, dimensions: int) -> None:
        declaration = self._execute(self._sql("select_declaration")).get
        self._execute("ALTER TABLE second_vectors RENAME TO next_vectors")
        self._execute(declaration)
        for ids, vectors in scan(self._connection, self._vectors.era):
            is_made = vectors.any(axis=1)  # the others are made again before a switch back
            self.add(ids[is_made].tolist(), vectors[is_made])
            self._connection.executemany(self._sql("delete_code"), [(chunk_id,) for chunk_id in ids[~is_made].tolist()])
        declare_vectors(self._connection, dimensions)
        self._execute(
            "INSERT INTO chunks_vec (chunk_id, embedding) SELECT chunk_id, substr(vector, 1, ?) FROM next_vectors",
            (4 * dimensions,),
        )
        self._execute("DELETE FROM next_vectors")  # as in `declare_vectors`
        self._execute("DROP TABLE next_vectors")

    def _swap_codes(self) -> None:
        for one, other in SWAPPED:
            for before, after in ((one, "swapped"), (other, one), ("swapped", other)):
                self._execute(f"ALTER TABLE {before} RENAME TO {after}")

    def _quantizer(self, dimensions: int) -> Quantizer:
        """Return the quantizer of the second set; compute and record it if it is missing."""
        if (mean := unpacked_mean(self._execute(self._sql("select_mean")).get, dimensions)) is not None:
            return Quantizer(mean)
        for table in ("second_mean", "second_codes"):
            self._execute(f"DELETE FROM {table}")  # noqa: S608 - a constant
        ids = np.sort(listed_ids(self._execute(self._sql("select_ids")).get))
        sample = ids[np.linspace(0, ids.size - 1, min(SAMPLE, ids.size)).astype(np.intp)]
        _, vectors = self._packed(sample, dimensions)
        quantizer = Quantizer(vectors.mean(0))
        [blob] = pack(MEAN, quantizer.mean[None])
        self._execute(self._sql("insert_mean"), (blob,))
        return quantizer

    def _packed(self, ids: NDArray[np.int64], dimensions: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the chunks that have a second vector, and these vectors."""
        if not ids.size:  # carray refuses an empty array
            return ids, np.empty((0, dimensions), np.float32)
        keys: Any
        blob: Any
        [(keys, blob)] = self._execute(self._sql("select_vectors"), (apsw.carray(ids), 4 * dimensions + CHECKSUM))
        stored_ids = listed_ids(keys)
        vectors, _ = unpack(stored_ids, blob or b"", dimensions)
        return stored_ids, vectors

    def _sql(self, name: str) -> str:
        return statements("second")[name]
