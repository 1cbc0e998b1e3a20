"""What documents held once: their chunks, compressed together. See docs/adr/0019-history.md for what that costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kb.store.chunk_compression import compressed, decompressed
from kb.store.row_mapping import Execute
from kb.store.rows import Chunk


class FormerContents:
    """The contents of former versions, in a transaction; `sql` are the statements about history."""

    def __init__(self, execute: Execute, sql: Mapping[str, str]) -> None:
        self._execute = execute
        self._sql = sql

    def keep(self, document_id: int, chunks: Sequence[Chunk]) -> None:
        """Keep the chunks that a document holds for the former versions that held them."""
        row = {"id": document_id, "chunks": compressed(chunks)}
        content_id: int = self._execute(self._sql["insert_content"], row).get
        self._execute(self._sql["fill_content"], {"id": document_id, "content_id": content_id})

    def is_missing(self, document_id: int) -> bool:
        """Return whether a former version held what the document holds still."""
        return bool(self._execute(self._sql["is_content_missing"], {"id": document_id}).get)

    def chunks(self, content_id: int) -> list[Chunk]:
        """Return the chunks of a former version."""
        return decompressed(self._execute(self._sql["select_content"], {"id": content_id}).get)
