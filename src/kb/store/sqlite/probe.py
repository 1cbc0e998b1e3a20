"""Check that a database answers searches."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import numpy as np

from kb.store.protocol import Transaction
from kb.store.rows import Filter
from kb.store.sqlite.store import SqliteStore
from kb.store.sqlite.vector_space import recorded_space


def probe(path: Path) -> Iterator[str]:
    """Yield the faults of searches in a database. An older database is migrated. No other program may use it.

    Raises:
        StoreError: the database cannot be opened.
    """
    space = recorded_space(path)
    try:
        with closing(SqliteStore(path, space)) as store, store.read() as tx:
            if tx.counts().chunks:
                yield from _unanswered(tx, space.dimensions)
    except apsw.Error as error:
        yield f"a search fails: {error}"


def _unanswered(tx: Transaction, dimensions: int) -> Iterator[str]:
    every = tx.index.select(Filter())
    nearest = every.nearest(np.full(dimensions, dimensions**-0.5, np.float32), 1)
    if not nearest.ids.size:
        yield "a semantic search finds nothing"
    words = [tx.index.hits(nearest.ids.tolist())[0].text.split()[0]] if nearest.ids.size else []
    if any(word.isalnum() for word in words) and not every.full_text(words, 1).ids.size:
        yield f"a search for {words[0]!r} finds nothing"
