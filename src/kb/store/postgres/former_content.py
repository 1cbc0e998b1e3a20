"""What documents held once: their chunks, compressed together, and the vectors of these in half precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kb.store.compressed import compressed, decompressed
from kb.store.postgres.statements import statements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kb.store.postgres.vectors import VectorTable
    from kb.store.row_mapping import Execute
    from kb.store.rows import Chunk


class FormerContents:
    """The contents of former versions, in a transaction."""

    def __init__(self, execute: Execute, vectors: VectorTable) -> None:
        self._execute = execute
        self._vectors = vectors
        self._sql = statements("history")

    def keep(self, document_id: int, chunks: Sequence[Chunk]) -> None:
        """Keep the chunks that a document holds for the former versions that held them."""
        blob = compressed(chunks)
        vectors = self._vectors.vectors(np.array([chunk.id for chunk in chunks], np.int64)).astype(np.float16).tobytes()
        content_id = self._execute(self._sql["insert_content"], (document_id, blob, vectors)).get
        self._execute(self._sql["fill_content"], (content_id, document_id))
        self._execute(self._sql["change_size"], (len(blob) + len(vectors),))

    def is_missing(self, document_id: int) -> bool:
        """Return whether a former version held what the document holds still."""
        return bool(self._execute(self._sql["is_content_missing"], (document_id,)).get)

    def chunks(self, content_id: int) -> list[Chunk]:
        """Return the chunks of a former version."""
        return decompressed(self._execute(self._sql["select_content"], (content_id,)).get)

    def vectors(self, content_id: int, count: int) -> NDArray[np.float32] | None:
        """Return the vectors of a former version's chunks, of shape (count, dimensions); None if there are none."""
        blob = self._execute(self._sql["select_former_vectors"], (content_id,)).get
        return None if blob is None else np.frombuffer(blob, np.float16).astype(np.float32).reshape(count, -1)
