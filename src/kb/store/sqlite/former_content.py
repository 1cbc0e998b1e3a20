"""What documents held once: their chunks, compressed together, and the vectors of these in half precision.

See docs/adr/0019-history.md for what either costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kb.store.compressed import compressed, decompressed
from kb.store.sqlite.statements import statements

if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw
    from numpy.typing import NDArray

    from kb.store.row_mapping import Execute
    from kb.store.rows import Chunk
    from kb.store.sqlite.schema import VectorTable


class FormerContents:
    """The contents of former versions, in a transaction."""

    def __init__(self, connection: apsw.Connection, table: VectorTable) -> None:
        self._execute: Execute = connection.execute
        self._table = table
        self._sql = statements("history")

    def keep(self, document_id: int, chunks: Sequence[Chunk]) -> None:
        """Keep the chunks that a document holds for the former versions that held them."""
        vectors = self._vectors([chunk.id for chunk in chunks])
        row = document_id, compressed(chunks), vectors
        content_id = self._execute(self._sql["insert_content"], row).get
        self._execute(self._sql["fill_content"], (content_id, document_id))

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

    def _vectors(self, chunk_ids: Sequence[int]) -> bytes | None:
        """Return the vectors of the chunks; None if one of them has none."""
        found = [self._execute(self._table.select_one, (chunk_id,)).get for chunk_id in chunk_ids]
        if not all(found):
            return None
        return np.frombuffer(b"".join(found), np.float32).astype(np.float16).tobytes()
