"""What is kept in memory of the table `chunks_vec`, at each moment that a transaction may see.

`chunks_vec` is the source of truth. Of a few vectors all are in memory, of many a code of each (docs/adr/0018).

A transaction must see the vectors of its own moment, neither older nor newer than its tables. So each change of
the vectors makes a new index, numbered like the row of the table `generation` that the same transaction
writes; a reader takes the index with the number that it reads.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.store.rows import VectorSpace
from kb.store.sqlite.schema import VectorSchema
from kb.store.sqlite.statements import statements
from kb.store.sqlite.vector_codes import chunk_ids, has_codes, read_codes, read_quantizer, write_codes
from kb.store.sqlite.vector_reader import SqliteVectorReader
from kb.vectors.coded_index import CodedIndex, StoredIndex
from kb.vectors.flat_index import FlatIndex, columns, usable
from kb.vectors.protocol import NewVector, VectorIndex, VectorSnapshot
from kb.vectors.quantize import Quantizer
from kb.vectors.shared_rows import Rows

logger = logging.getLogger(__name__)

KEPT = 16


@dataclass(frozen=True, slots=True)
class Era:
    """The moments in which vectors of one space are in use.

    Args:
        first: the number of the first of them.
        space: what the vectors are of.
        table: `chunks_vec`.
    """

    first: int
    space: VectorSpace
    table: VectorSchema


BLOCK = 1024
"""How many vectors are read at a time: Python objects of all of them would leave holes in memory."""


class Vectors:
    """The indexes that transactions may still see. One writer at a time; any number of readers.

    Args:
        connection: the writer's.
        space: what the vectors are of.
        flat_limit: up to how many vectors are all in memory; half as many once there were more.
    """

    def __init__(self, connection: apsw.Connection, space: VectorSpace, flat_limit: int) -> None:
        self._lock = threading.Lock()
        self._flat_limit = flat_limit
        self._damaged: set[int] = set()
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
        """What is in use at the newest moment."""
        return self._eras[-1]

    def era_of(self, connection: apsw.Connection) -> Era:
        """Return what is in use at the moment that the connection's transaction sees."""
        return self._era_at(generation(connection))

    @property
    def must_be_coded(self) -> bool:
        """Whether there are too many vectors to have no codes in memory."""
        exceeds = self.exceeds(self.index.count, self.quantizer)
        return self._may_write_codes and exceeds and not isinstance(self.index, CodedIndex)

    @property
    def must_be_flat(self) -> bool:
        """Whether there are so few vectors that all shall be in memory."""
        is_flat = isinstance(self.index, FlatIndex) and not self.quantizer
        return self._may_write_codes and not is_flat and not self.exceeds(self.index.count, self.quantizer)

    @property
    def must_drop_codes(self) -> bool:
        """Whether there are codes in the database that count for nothing."""
        return self._may_write_codes and self.has_worthless_codes

    @property
    def is_damaged(self) -> bool:
        """Whether there are chunks without an intact copy of their vector."""
        return bool(self._damaged)

    def give_up_codes(self, error: apsw.CorruptError) -> None:
        """Write no codes until the next start: where they would be is damaged."""
        self.quantizer = None
        self._may_write_codes = False
        logger.warning(
            "searches by vectors take longer, for their codes in the database are damaged (%s):"
            " 'kb doctor' says what else is, and 'kb reindex' makes the database anew",
            error,
        )

    def take_damaged(self) -> NDArray[np.int64]:
        """Return the ids of the chunks without an intact copy, ascending, and forget them."""
        with self._lock:
            ids, self._damaged = self._damaged, set()
        return np.array(sorted(ids), np.int64)

    def seen_by(self, connection: apsw.Connection) -> VectorSnapshot:
        """Return the snapshot of the moment that the connection's transaction sees."""
        number = generation(connection)
        with self._lock:
            index = self._indexes.get(number)
        return (index or stored_index(connection)).snapshot(self._reader(connection, self._era_at(number)))

    def reader(self, connection: apsw.Connection) -> SqliteVectorReader:
        """Return what reads vectors in the connection's transaction."""
        return self._reader(connection, self.era_of(connection))

    def publish(self, connection: apsw.Connection, added: Sequence[NewVector], removed: Collection[int]) -> int:
        """Make the next index, visible to those who read its number, and return the number."""
        index = self.index.changed(added, removed)
        if self.quantizer and added:
            self._write_codes(connection, self.quantizer, added)
        with self._lock:
            self._newest += 1
            self._indexes[self._newest] = index
            self._indexes.pop(self._newest - KEPT, None)
        return self._newest

    def switch(self, connection: apsw.Connection, space: VectorSpace) -> int:
        """Begin an era: other vectors are in `chunks_vec` now. Return the number of its first moment."""
        era = Era(self._newest + 1, space, VectorSchema.of(connection))
        quantizer = read_quantizer(connection, space.dimensions)
        index = self._open(connection, era, quantizer)
        with self._lock:
            self._quantizer_before, self.quantizer = self.quantizer, quantizer
            self._eras = [*self._eras[1 - KEPT :], era]
            self._damaged = set()
            self._newest = era.first
            self._indexes[self._newest] = index
        return self._newest

    def withdraw(self) -> None:
        """Take the newest index back: its transaction was rolled back."""
        with self._lock:
            if self.era.first == self._newest and len(self._eras) > 1:
                self._eras.pop()
                self.quantizer = self._quantizer_before
            del self._indexes[self._newest]
            self._newest -= 1

    def adopt(self, index: VectorIndex) -> None:
        """Take another index of the newest moment; no one may write meanwhile."""
        with self._lock:
            self._indexes[self._newest] = index

    def flat_index(self, connection: apsw.Connection) -> FlatIndex:
        """Return all vectors of the moment that the connection's transaction sees."""
        return flat_index(connection, self.era)

    def exceeds(self, count: int, quantizer: Quantizer | None = None) -> bool:
        """Return whether so many vectors are too many to be all in memory; half as many once there are codes."""
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
        except apsw.CorruptError as error:  # after which SQLite lets this transaction write no more
            self.give_up_codes(error)
            raise

    def _report(self, ids: NDArray[np.int64]) -> None:
        if self.quantizer:
            with self._lock:
                self._damaged.update(ids.tolist())


def flat_index(connection: apsw.Connection, era: Era) -> FlatIndex:
    """Return all vectors of the moment that the connection's transaction sees, which is one of this era."""
    dimensions = era.space.dimensions
    ids = np.sort(np.array([chunk_id for (chunk_id,) in connection.execute(era.table.sql("select_ids"))], np.int64))
    rows = Rows.of(ids, np.empty((ids.size, dimensions), np.float32)).with_room()
    cursor = connection.execute(era.table.sql("scan"))
    while block := list(islice(cursor, BLOCK)):
        places = np.searchsorted(ids, [chunk_id for chunk_id, _ in block])
        vectors = np.frombuffer(b"".join(vector for _, vector in block), np.float32)
        rows.data[places] = usable(vectors.reshape(-1, dimensions))
    return FlatIndex(rows)


def stored_index(connection: apsw.Connection) -> StoredIndex:
    """Return the ids of the moment that the connection's transaction sees."""
    ids = chunk_ids(connection)
    return StoredIndex(Rows.of(ids, np.empty((ids.size, 0))).with_room())


def generation(connection: apsw.Connection) -> int:
    """Return the number of the moment that the connection's transaction sees."""
    number: int = connection.execute("SELECT number FROM generation").get
    return number
