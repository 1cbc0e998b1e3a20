"""Documents with their tags and chunks, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from kb.index.words.document_names import FILE_MARK, tokens_of_names
from kb.store.postgres.document_query import PostgresConditions
from kb.store.postgres.full_text import FullText, NewText
from kb.store.postgres.statements import statements
from kb.store.row_mapping import field_values
from kb.store.rows import ChunkPosition, Content, Named, VectorSpace
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

    def write_chunks(self, document_id: int, content: Content, new: Sequence[tuple[int, int]]) -> None:
        self.changed = True
        sections: dict[tuple[str, tuple[str, ...]], int | None] = {NO_SECTION: None}
        if len(new) < len(content.chunks):
            known = self._execute(self._sql["select_sections"], {"id": document_id})
            sections |= {(header, tuple(heading)): section_id for header, heading, section_id in known}
        rows: list[dict[str, Any]] = []
        vectors: list[dict[str, Any]] = []
        texts: list[NewText] = []
        for index, chunk_id in new:
            self._checkpoint()
            chunk, vector = content.chunks[index], content.vectors[index]
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

    def index_older(self, limit: int) -> bool:
        self.changed = True
        return self._words.index_older(limit)

    def place_chunks(self, document_id: int, places: Sequence[tuple[int, int, ChunkPosition]]) -> None:
        document = {"document_id": document_id}
        self._execute(self._sql["lift_chunks"], document | {"ids": [chunk_id for chunk_id, *_ in places]})
        columns = [
            field_values(place) | document | {"id": chunk_id, "index": index} for chunk_id, index, place in places
        ]
        with self._connection.cursor() as cursor:
            cursor.executemany(self._sql["place_chunk"], columns)

    def note_order(self, document_id: int, ids: Sequence[int]) -> None:
        """Do nothing: searches find the neighbours of a chunk by its index."""

    def ids_without_vectors(self, document_id: int) -> set[int]:
        sql = self._sql["select_empty"].format(vectors=self._vectors.name)
        return {chunk_id for (chunk_id,) in self._execute(sql, {"id": document_id})}

    def write_vectors(self, document_id: int, vectors: Mapping[int, NDArray[np.float32]]) -> None:
        self.changed = True
        rows = [{"id": chunk_id, "document_id": document_id, "vector": vector} for chunk_id, vector in vectors.items()]
        with self._connection.cursor() as cursor:
            cursor.executemany(self._sql["set_vector"].format(vectors=self._vectors.name), rows)

    def delete_chunks(self, document_id: int, ids: Sequence[int] | None) -> None:
        self.changed = True
        if ids is None:
            ids = [chunk_id for (chunk_id,) in self._execute(self._sql["select_chunk_ids"], {"id": document_id})]
        self._words.remove(document_id, ids)
        self._execute(self._sql["delete_chunks"], {"id": document_id, "ids": ids})
        self._execute(self._sql["delete_unused_sections"], {"id": document_id})

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
