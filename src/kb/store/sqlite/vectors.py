"""The vectors of the table `chunks_vec` in memory, at each moment that a transaction may see.

`chunks_vec` is the source of truth; this copy of it makes a search several times faster than a scan of the table.

A transaction must see the vectors of its own moment, neither older nor newer than its tables. So each change of
the vectors makes a new snapshot, numbered like the row of the table `generation` that the same transaction
writes; a reader takes the snapshot with the number that it reads.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from kb.store.sqlite.schema import VectorTable
from kb.vectors.flat import FlatSnapshot

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import apsw

    from kb.vectors.snapshot import NewVector, Snapshot

KEPT_SNAPSHOTS = 16


class Vectors:
    """The snapshots that transactions may still see. One writer at a time; any number of readers."""

    def __init__(self, connection: apsw.Connection, dimensions: int) -> None:
        self._lock = threading.Lock()
        self._dimensions = dimensions
        self.table = VectorTable.of(connection)
        self._newest = generation(connection)
        # Room to grow from the start, or the first note that is added would wait for a copy of everything.
        self._snapshots: dict[int, Snapshot] = {self._newest: self._read(connection).with_room()}

    @property
    def newest(self) -> int:
        """The number of the newest snapshot."""
        return self._newest

    def seen_by(self, connection: apsw.Connection) -> Snapshot:
        """Return the snapshot of the moment that the connection's transaction sees."""
        with self._lock:
            snapshot = self._snapshots.get(generation(connection))
        return snapshot or self._read(connection)

    def publish(self, added: Sequence[NewVector], removed: Collection[int]) -> int:
        """Make the next snapshot, visible to those who read its number, and return the number."""
        snapshot = self._snapshots[self._newest].changed(added, removed)
        with self._lock:
            self._newest += 1
            self._snapshots[self._newest] = snapshot
            self._snapshots.pop(self._newest - KEPT_SNAPSHOTS, None)
        return self._newest

    def withdraw(self) -> None:
        """Take the newest snapshot back: its transaction was rolled back."""
        with self._lock:
            del self._snapshots[self._newest]
            self._newest -= 1

    def _read(self, connection: apsw.Connection) -> FlatSnapshot:
        rows: list[Any] = connection.execute(self.table.select).fetchall()
        ids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        vectors = np.frombuffer(b"".join(row[1] for row in rows), np.float32).reshape(-1, self._dimensions)
        if not np.isfinite(vectors).all():
            raise ValueError("a vector is no number")
        return FlatSnapshot.of(ids, vectors)


def generation(connection: apsw.Connection) -> int:
    """Return the number of the moment that the connection's transaction sees."""
    number: int = connection.execute("SELECT number FROM generation").get
    return number
