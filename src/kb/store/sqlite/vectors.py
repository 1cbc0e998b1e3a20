"""The vectors in memory, at each point in time that a transaction may see.

The table `chunks_vec` is the source of truth. kb keeps a small number of vectors in memory as they are, and only a code
of each if there are many (docs/adr/0018).

A transaction must see vectors exactly as old as its tables. Therefore each change of the vectors makes a new index with
the number that the same transaction writes to the table `generation`. A reader takes the index with the number that it
reads there.
"""

import logging
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.coded_index import CodedIndex, StoredIndex
from kb.index.vectors.flat_index import FlatIndex, columns, usable
from kb.index.vectors.protocol import NewVector, VectorIndex, VectorSnapshot
from kb.index.vectors.quantize import Quantizer
from kb.index.vectors.shared_rows import Rows
from kb.store.rows import VectorSpace
from kb.store.sqlite.schema import VectorSchema
from kb.store.sqlite.statements import statements
from kb.store.sqlite.vector_codes import chunk_ids, has_codes, read_codes, read_quantizer, write_codes
from kb.store.sqlite.vector_reader import SqliteVectorReader

logger = logging.getLogger(__name__)

KEPT = 16


@dataclass(frozen=True, slots=True)
class Era:
    """The range of snapshots with vectors of one space.

    Args:
        first: the number of the first snapshot.
        space: the model and settings of the vectors.
        table: the columns of `chunks_vec`.
    """

    first: int
    space: VectorSpace
    table: VectorSchema


# Vectors per read: Python objects for all of them would fragment the memory.
BLOCK = 1024


class Vectors:
    """The indexes that transactions may still see. One writer at a time; any number of readers.

    Args:
        connection: the writer's connection.
        space: the model and settings of the vectors.
        flat_limit: the number of vectors up to which all are in memory; half of it if the database has codes.
    """

    def __init__(self, connection: apsw.Connection, space: VectorSpace, flat_limit: int) -> None:
        self._lock = threading.Lock()
        self._flat_limit = flat_limit
        self._is_damaged = False
        self._may_write_codes = True
        self.quantizer = read_quantizer(connection, space.dimensions)
        self.has_worthless_codes = self.quantizer is None and has_codes(connection)
        self._quantizer_before = self.quantizer
        self._newest = generation(connection)
        self._eras = [Era(self._newest, space, VectorSchema.of(connection))]
        self._indexes: dict[int, VectorIndex] = {self._newest: self._open(connection, self.era, self.quantizer)}

    @property
    def newest(self) -> int:
        """The number of the newest index."""
        return self._newest

    @property
    def index(self) -> VectorIndex:
        """The newest index."""
        with self._lock:
            return self._indexes[self._newest]

    @property
    def era(self) -> Era:
        """The era of the newest snapshot."""
        return self._eras[-1]

    def era_of(self, connection: apsw.Connection) -> Era:
        """Return the era that the connection's transaction sees."""
        return self._era_at(generation(connection))

    @property
    def must_be_coded(self) -> bool:
        """Whether the vectors need codes in memory and do not have them yet."""
        exceeds = self.exceeds(self.index.count, self.quantizer)
        return self._may_write_codes and exceeds and not isinstance(self.index, CodedIndex)

    @property
    def must_be_flat(self) -> bool:
        """Whether all vectors fit in memory, but are not all there or still have codes."""
        is_flat = isinstance(self.index, FlatIndex) and not self.quantizer
        return self._may_write_codes and not is_flat and not self.exceeds(self.index.count, self.quantizer)

    @property
    def must_drop_codes(self) -> bool:
        """Whether the database has obsolete codes."""
        return self._may_write_codes and self.has_worthless_codes

    def give_up_codes(self, error: apsw.CorruptError) -> None:
        """Write no codes until the next start, because their part of the database is damaged."""
        self.quantizer = None
        self._may_write_codes = False
        logger.warning(
            "semantic searches take longer, because the codes of the vectors in the database are damaged (%s):"
            " run 'kb doctor'; 'kb reindex' rebuilds the database",
            error,
        )

    def seen_by(self, connection: apsw.Connection) -> VectorSnapshot:
        """Return the snapshot that the connection's transaction sees."""
        number = generation(connection)
        with self._lock:
            index = self._indexes.get(number)
        return (index or stored_index(connection)).snapshot(self._reader(connection, self._era_at(number)))

    def reader(self, connection: apsw.Connection) -> SqliteVectorReader:
        """Return a reader of the vectors that the connection's transaction sees."""
        return self._reader(connection, self.era_of(connection))

    def publish(self, connection: apsw.Connection, added: Sequence[NewVector], removed: Collection[int]) -> int:
        """Make the next index and return its number. Transactions that read the number see it."""
        index = self.index.changed(added, removed)
        if self.quantizer and added:
            self._write_codes(connection, self.quantizer, added)
        with self._lock:
            self._newest += 1
            self._indexes[self._newest] = index
            self._indexes.pop(self._newest - KEPT, None)
        return self._newest

    def write_filled(self, connection: apsw.Connection, filled: Sequence[NewVector]) -> None:
        """Write the codes of vectors that were made after their chunks."""
        if self.quantizer:
            self._write_codes(connection, self.quantizer, filled)

    def fill(self, filled: Sequence[NewVector]) -> None:
        """Set such vectors in the newest index, after the commit: they make no new one."""
        self.index.fill(filled)

    def switch(self, connection: apsw.Connection, space: VectorSpace) -> int:
        """Start an era after `chunks_vec` got the vectors of another space; return the number of its first index."""
        era = Era(self._newest + 1, space, VectorSchema.of(connection))
        quantizer = read_quantizer(connection, space.dimensions)
        index = self._open(connection, era, quantizer)
        with self._lock:
            self._quantizer_before, self.quantizer = self.quantizer, quantizer
            self._eras = [*self._eras[1 - KEPT :], era]
            self._newest = era.first
            self._indexes[self._newest] = index
        return self._newest

    def withdraw(self) -> None:
        """Remove the newest index, because its transaction was rolled back."""
        with self._lock:
            if self.era.first == self._newest and len(self._eras) > 1:
                self._eras.pop()
                self.quantizer = self._quantizer_before
            del self._indexes[self._newest]
            self._newest -= 1

    def adopt(self, index: VectorIndex) -> None:
        """Replace the newest index with an equivalent one; no other thread may write during the call."""
        with self._lock:
            self._indexes[self._newest] = index

    def flat_index(self, connection: apsw.Connection) -> FlatIndex:
        """Return all vectors that the connection's transaction sees."""
        return flat_index(connection, self.era)

    def exceeds(self, count: int, quantizer: Quantizer | None = None) -> bool:
        """Return whether `count` vectors are too many to keep all in memory; with codes, half the limit applies."""
        return count > (self._flat_limit // 2 if quantizer else self._flat_limit)

    def _open(self, connection: apsw.Connection, era: Era, quantizer: Quantizer | None) -> VectorIndex:
        if not self.exceeds(connection.execute(statements("documents")["count_chunks"]).get, quantizer):
            return flat_index(connection, era)
        if quantizer:
            rows = read_codes(connection, quantizer)
            if rows.alive.all():
                return CodedIndex.of(rows, quantizer)
        return stored_index(connection)

    def _era_at(self, number: int) -> Era:
        return next((era for era in reversed(self._eras) if era.first <= number), self._eras[0])

    def _reader(self, connection: apsw.Connection, era: Era) -> SqliteVectorReader:
        return SqliteVectorReader(connection, era.table, era.space.dimensions, self._report)

    def _write_codes(self, connection: apsw.Connection, quantizer: Quantizer, added: Sequence[NewVector]) -> None:
        try:
            write_codes(connection, quantizer, *columns(added, self.era.space.dimensions))
        except apsw.CorruptError as error:  # SQLite refuses all further writes in this transaction
            self.give_up_codes(error)
            raise

    def _report(self, error: Exception) -> None:
        if not self._is_damaged:
            self._is_damaged = True
            logger.warning(
                "semantic searches miss some passages, because their vectors in the database are damaged (%s): run"
                " 'kb doctor' while the engine is stopped",
                error,
            )


def flat_index(connection: apsw.Connection, era: Era) -> FlatIndex:
    """Return all vectors that the connection's transaction sees; it must see this era."""
    ids = np.sort(np.array([chunk_id for (chunk_id,) in connection.execute(era.table.sql("select_ids"))], np.int64))
    rows = Rows.of(ids, np.empty((ids.size, era.space.dimensions), np.float32)).with_room()
    for block, vectors in scan(connection, era):
        rows.data[np.searchsorted(ids, block)] = usable(vectors)
    return FlatIndex(rows)


def scan(connection: apsw.Connection, era: Era) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Yield all vectors that the connection's transaction sees, with their chunks, in any order, in blocks."""
    cursor = connection.execute(era.table.sql("scan"))
    while block := list(islice(cursor, BLOCK)):
        vectors = np.frombuffer(b"".join(vector for _, vector in block), np.float32)
        yield np.array([chunk_id for chunk_id, _ in block], np.int64), vectors.reshape(-1, era.space.dimensions)


def stored_index(connection: apsw.Connection) -> StoredIndex:
    """Return an index of the ids that the connection's transaction sees, without vectors in memory."""
    ids = chunk_ids(connection)
    return StoredIndex(Rows.of(ids, np.empty((ids.size, 0))).with_room())


def generation(connection: apsw.Connection) -> int:
    """Return the number of the snapshot that the connection's transaction sees."""
    number: int = connection.execute("SELECT number FROM generation").get
    return number
