"""What is kept in memory of the table `chunks_vec`, at each moment that a transaction may see.

`chunks_vec` is the source of truth. Of a few vectors all are in memory, of many a code of each (docs/adr/0018).

A transaction must see the vectors of its own moment, neither older nor newer than its tables. So each change of
the vectors makes a new index, numbered like the row of the table `generation` that the same transaction
writes; a reader takes the index with the number that it reads.
"""

from __future__ import annotations

import logging
import threading
from itertools import islice
from typing import TYPE_CHECKING

import apsw
import numpy as np

from kb.store.sqlite.schema import VectorTable
from kb.store.sqlite.statements import statements
from kb.store.sqlite.vector_codes import chunk_ids, read_codes, read_quantizer, write_codes
from kb.store.sqlite.vector_reader import SqliteVectorReader
from kb.vectors.coded import CodedIndex, StoredIndex
from kb.vectors.flat import FlatIndex, columns, usable
from kb.vectors.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from kb.vectors.quantize import Quantizer
    from kb.vectors.snapshot import NewVector, Snapshot, VectorIndex

logger = logging.getLogger(__name__)

KEPT = 16
BLOCK = 1024
"""How many vectors are read at a time: Python objects of all of them would leave holes in memory."""


class Vectors:
    """The indexes that transactions may still see. One writer at a time; any number of readers.

    Args:
        connection: the writer's.
        dimensions: the length of a vector.
        flat_limit: up to how many vectors are all in memory; half as many once there were more.
    """

    def __init__(self, connection: apsw.Connection, dimensions: int, flat_limit: int) -> None:
        self._lock = threading.Lock()
        self._dimensions = dimensions
        self._flat_limit = flat_limit
        self._damaged: set[int] = set()
        self._may_write_codes = True
        self.table = VectorTable.of(connection)
        self.quantizer = read_quantizer(connection, dimensions)
        self._newest = generation(connection)
        self._indexes: dict[int, VectorIndex] = {self._newest: self._open(connection)}

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
    def must_be_coded(self) -> bool:
        """Whether there are too many vectors to have no codes in memory."""
        exceeds = self._exceeds(self.index.count)
        return self._may_write_codes and exceeds and not isinstance(self.index, CodedIndex)

    @property
    def must_be_flat(self) -> bool:
        """Whether there are so few vectors that all shall be in memory."""
        is_flat = isinstance(self.index, FlatIndex) and not self.quantizer
        return self._may_write_codes and not is_flat and not self._exceeds(self.index.count)

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
            " 'kb verify' says what else is, and 'kb reindex' makes the database anew",
            error,
        )

    def take_damaged(self) -> NDArray[np.int64]:
        """Return the ids of the chunks without an intact copy, ascending, and forget them."""
        with self._lock:
            ids, self._damaged = self._damaged, set()
        return np.array(sorted(ids), np.int64)

    def seen_by(self, connection: apsw.Connection) -> Snapshot:
        """Return the snapshot of the moment that the connection's transaction sees."""
        number = generation(connection)
        with self._lock:
            index = self._indexes.get(number)
        return (index or stored_index(connection)).snapshot(self.reader(connection))

    def reader(self, connection: apsw.Connection) -> SqliteVectorReader:
        """Return what reads vectors in the connection's transaction."""
        return SqliteVectorReader(connection, self.table, self._dimensions, self._report)

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

    def withdraw(self) -> None:
        """Take the newest index back: its transaction was rolled back."""
        with self._lock:
            del self._indexes[self._newest]
            self._newest -= 1

    def adopt(self, index: VectorIndex) -> None:
        """Take another index of the newest moment; no one may write meanwhile."""
        with self._lock:
            self._indexes[self._newest] = index

    def flat_index(self, connection: apsw.Connection) -> FlatIndex:
        """Return all vectors of the moment that the connection's transaction sees."""
        ids = np.sort(np.array([chunk_id for (chunk_id,) in connection.execute(self.table.keys)], np.int64))
        rows = Rows.of(ids, np.empty((ids.size, self._dimensions), np.float32)).with_room()
        found = connection.execute(self.table.scan)
        while block := list(islice(found, BLOCK)):
            places = np.searchsorted(ids, [chunk_id for chunk_id, _ in block])
            vectors = np.frombuffer(b"".join(vector for _, vector in block), np.float32)
            rows.data[places] = usable(vectors.reshape(-1, self._dimensions))
        return FlatIndex(rows)

    def _open(self, connection: apsw.Connection) -> VectorIndex:
        if not self._exceeds(connection.execute(statements("documents")["count_chunks"]).get):
            return self.flat_index(connection)
        if self.quantizer:
            rows = read_codes(connection, self.quantizer)
            if rows.alive.all():
                return CodedIndex(rows, self.quantizer)
        return stored_index(connection)

    def _exceeds(self, count: int) -> bool:
        return count > (self._flat_limit // 2 if self.quantizer else self._flat_limit)

    def _write_codes(self, connection: apsw.Connection, quantizer: Quantizer, added: Sequence[NewVector]) -> None:
        try:
            write_codes(connection, quantizer, *columns(added, self._dimensions))
        except apsw.CorruptError as error:  # after which SQLite lets this transaction write no more
            self.give_up_codes(error)
            raise

    def _report(self, ids: NDArray[np.int64]) -> None:
        if self.quantizer:
            with self._lock:
                self._damaged.update(ids.tolist())


def stored_index(connection: apsw.Connection) -> StoredIndex:
    """Return the ids of the moment that the connection's transaction sees."""
    ids = chunk_ids(connection)
    return StoredIndex(Rows.of(ids, np.empty((ids.size, 0))).with_room())


def generation(connection: apsw.Connection) -> int:
    """Return the number of the moment that the connection's transaction sees."""
    number: int = connection.execute("SELECT number FROM generation").get
    return number
