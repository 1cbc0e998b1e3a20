"""What a document is about, as one vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kb.store.rows import Filter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kb.store.protocol import Transaction

MAX_CHUNKS = 1000
"""How many chunks of a document at most say what it is about."""


def mean_vector(tx: Transaction, document_id: int) -> NDArray[np.float32]:
    """Return the unit vector between those of a document's chunks."""
    ids = np.array([chunk.id for chunk in tx.documents.chunk_places(document_id)[:MAX_CHUNKS]], np.int64)
    total: NDArray[np.float32] = tx.index.select(Filter()).vectors(np.sort(ids)).sum(axis=0)
    length = max(float(np.linalg.norm(total)), float(np.finfo(np.float32).tiny))
    return total / np.float32(length)
