"""Documents with their tags and chunks, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from kb.lexical.document_names import FILE_MARK, tokens_of_names
from kb.store.postgres.document_query import PostgresConditions
from kb.store.postgres.full_text import FullText, NewText
from kb.store.postgres.statements import statements
from kb.store.row_mapping import field_values
from kb.store.rows import Content, Named, VectorSpace
from kb.store.sql.documents import Documents

if TYPE_CHECKING:
    from kb.store.postgres.connection import Connection
    from kb.store.postgres.vectors import VectorTable


NO_SECTION: tuple[str, tuple[str, ...]] = "", ()
"""The header and headings of a chunk without any."""

LONGEST_NAME: Final = 500
"""The number of characters of a name that a filter compares; more would not fit the index."""


class PostgresDocuments(Documents):
    """See `kb.store.sql.documents`. Remembers whether its transaction `changed` chunks.

    Args:
        connection: the transaction's.
        words: the transaction's full-text index.
        vectors: the transaction's vectors.
        checkpoint: called between written chunks.
    """

    def __init__(
        self,
        connection: Connection,
        words: FullText,
        vectors: VectorTable,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(connection.execute, statements, PostgresConditions(connection.execute, words))
        self._connection = connection
        self._words = words
        self._checkpoint = checkpoint
        self._vectors = vectors
        self.changed = False

    @property
    def space(self) -> VectorSpace:
        return self._vectors.space

    def insert_document(self, columns: dict[str, object]) -> int:
        document_id: int = self._execute(self._sql["insert_document"], columns).get
        return document_id

    def new_chunk_ids(self, count: int) -> Sequence[int]:
        return [chunk_id for (chunk_id,) in self._execute(self._sql["take_chunk_ids"], {"count": count})]

    def write_chunks(self, document_id: int, content: Content, ids: Sequence[int]) -> None:
        self.changed = True
        sections: dict[tuple[str, tuple[str, ...]], int | None] = {NO_SECTION: None}
        rows: list[dict[str, Any]] = []
        vectors: list[dict[str, Any]] = []
        texts: list[NewText] = []
        for index, (chunk_id, chunk, vector) in enumerate(zip(ids, content.chunks, content.vectors, strict=True)):
            self._checkpoint()
            text = self._words.new_text(chunk_id, document_id, chunk.text, chunk.header, content.language)
            columns = field_values(chunk.place) | {"id": chunk_id, "document_id": document_id, "index": index}
            section = chunk.header, chunk.place.heading
            if section not in sections:
                parameters = {"document_id": document_id, "header": chunk.header, "heading": list(chunk.place.heading)}
                sections[section] = self._execute(self._sql["insert_section"], parameters).get
            columns |= {"text": chunk.text, "section_id": sections[section], "length": text.length}
            rows.append(columns)
            vectors.append({"id": chunk_id, "document_id": document_id, "vector": vector})
            texts.append(text)
        with self._connection.cursor() as cursor:
            cursor.executemany(self._sql["insert_chunk"], rows)
            cursor.executemany(self._sql["insert_vector"].format(vectors=self._vectors.name), vectors)
        self._words.add(texts)

    def has_vectors(self, document_id: int) -> bool:
        sql = self._sql["has_empty_vector"].format(vectors=self._vectors.name)
        return not self._execute(sql, {"id": document_id}).get

    def delete_chunks(self, document_id: int) -> None:
        self.changed = True
        self._words.remove(document_id)
        self._execute(self._sql["delete_chunks"], {"id": document_id})

    def add_tags(self, document_id: int, tags: Iterable[str]) -> None:
        self._execute(self._sql["tag_document"], {"id": document_id, "tags": list(tags)})

    def remove_tags(self, document_id: int, tags: Iterable[str]) -> None:
        self._execute(self._sql["untag_document"], {"id": document_id, "tags": list(tags)})

    def clear_tags(self, document_id: int) -> None:
        """Do nothing: the database deletes them with the document."""

    def name_tokens(self, document: Named) -> list[str]:
        """Return the words of the document's names, and the whole names for a filter by name."""
        words = tokens_of_names(self._words.tokenizer.indexed, document.names, document.source_path)
        return [*words, *dict.fromkeys(f"{FILE_MARK}{name}"[:LONGEST_NAME] for name in document.folded_names)]

    def insert_names(self, tokens: Sequence[tuple[int, str]]) -> None:
        columns = {"ids": [document_id for document_id, _ in tokens], "tokens": [token for _, token in tokens]}
        self._execute(statements("names")["insert_names"], columns)
