"""Documents with their tags and chunks, in SQLite."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.index.words.document_names import tokens_of_names
from kb.index.words.segmentation import segmented, varied
from kb.store.analyzer import FtsTokenizer
from kb.store.row_mapping import array, field_values, next_ids
from kb.store.rows import ChunkPosition, Content, Named, VectorSpace
from kb.store.sql.documents import Documents
from kb.store.sqlite.document_query import SqliteConditions
from kb.store.sqlite.statements import statements
from kb.store.sqlite.vectors import Era

# The header and the headings of a chunk without a section.
NO_SECTION = "", "[]"


class SqliteDocuments(Documents):
    """See `kb.store.sql.documents`. Keeps the vectors that its transaction `added`, `removed` and `filled` later."""

    def __init__(
        self,
        connection: apsw.Connection,
        era: Era,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(connection.execute, statements, SqliteConditions(connection.execute))
        self._connection = connection
        self._table = era.table
        self._checkpoint = checkpoint
        self._space = era.space
        self.added: list[tuple[int, NDArray[np.float32]]] = []
        self.removed: list[int] = []
        self.filled: list[tuple[int, NDArray[np.float32]]] = []

    @property
    def space(self) -> VectorSpace:
        return self._space

    def write_names(self, limit: int) -> bool:
        if not self._execute(statements("names")["has_unnamed"]).get:
            return False
        has_more = super().write_names(limit)
        if not has_more:
            self._execute(statements("names")["forget_gone_unnamed"])
        return has_more

    def insert_document(self, columns: dict[str, object]) -> int:
        [document_id] = next_ids(self._execute, self._sql["take_document_ids"], 1)
        self._execute(self._sql["insert_document"], columns | {"id": document_id})
        return document_id

    def new_chunk_ids(self, count: int) -> Sequence[int]:
        return next_ids(self._execute, self._sql["take_chunk_ids"], count)

    def write_chunks(self, document_id: int, content: Content, new: Sequence[tuple[int, int]]) -> None:
        sections: dict[tuple[str, str], int | None] = {NO_SECTION: None}
        if len(new) < len(content.chunks):
            known = self._execute(self._sql["select_sections"], {"id": document_id})
            sections |= {(header, heading): section_id for header, heading, section_id in known}
        for index, chunk_id in new:
            self._checkpoint()
            chunk = content.chunks[index]
            columns = field_values(chunk.place) | {"id": chunk_id, "document_id": document_id, "index": index}
            section = chunk.header, array(chunk.place.heading)
            if section not in sections:
                indexed = segmented(chunk.header), varied(chunk.header, content.language)
                sections[section] = self._execute(self._sql["insert_section"], (document_id, *section, *indexed)).get
            columns |= {"text": chunk.text, "segmented": segmented(chunk.text)}
            columns |= {"variants": varied(chunk.text, content.language), "section_id": sections[section]}
            self._execute(self._sql["insert_chunk"], columns)
        for index, chunk_id in new:
            vector = content.vectors[index]
            self._execute(self._table.sql("insert"), (chunk_id, vector.tobytes()))
            self.added.append((chunk_id, vector))

    def place_chunks(self, document_id: int, places: Sequence[tuple[int, int, ChunkPosition]]) -> None:
        document = {"document_id": document_id}
        self._execute(self._sql["lift_chunks"], document | {"ids": [chunk_id for chunk_id, *_ in places]})
        columns = (
            field_values(place) | document | {"id": chunk_id, "index": index} for chunk_id, index, place in places
        )
        self._connection.executemany(self._sql["place_chunk"], columns)

    def note_order(self, document_id: int, ids: Sequence[int]) -> None:
        is_scattered = any(following - chunk_id != 1 for chunk_id, following in pairwise(ids))
        self._execute(self._sql["scatter" if is_scattered else "gather"], {"id": document_id})

    def ids_without_vectors(self, document_id: int) -> set[int]:
        sizes = document_id, np.dtype(np.float32).itemsize * self._space.dimensions
        return {chunk_id for (chunk_id,) in self._execute(self._table.sql("select_empty"), sizes)}

    def write_vectors(self, document_id: int, vectors: Mapping[int, NDArray[np.float32]]) -> None:
        rows = [(vector.tobytes(), chunk_id) for chunk_id, vector in vectors.items()]
        self._connection.executemany(self._table.sql("update"), rows)
        self.filled += vectors.items()

    def delete_chunks(self, document_id: int, ids: Sequence[int] | None) -> None:
        document = {"id": document_id}
        if ids is None:
            ids = [chunk_id for (chunk_id,) in self._execute(self._sql["select_chunk_ids"], document)]
        self._connection.executemany(self._table.sql("delete"), [(chunk_id,) for chunk_id in ids])
        self._execute(self._sql["delete_chunks"], {"ids": ids})
        self._execute(self._sql["delete_unused_sections"], document)
        self.removed += ids

    def add_tags(self, document_id: int, tags: Iterable[str]) -> None:
        for tag in tags:
            self._execute(self._sql["insert_tag"], {"name": tag})
            self._execute(self._sql["tag_document"], {"id": document_id, "name": tag})

    def remove_tags(self, document_id: int, tags: Iterable[str]) -> None:
        for tag in tags:
            removed = self._execute(self._sql["untag_document"], {"id": document_id, "name": tag}).fetchall()
            self._drop_unused_tags(removed)

    def clear_tags(self, document_id: int) -> None:
        self._drop_unused_tags(self._execute(self._sql["clear_tags_of"], {"id": document_id}).fetchall())

    def name_tokens(self, document: Named) -> list[str]:
        return list(tokens_of_names(self._tokenizer.indexed, document.names, document.source_path))

    def insert_names(self, tokens: Sequence[tuple[int, str]]) -> None:
        self._connection.executemany(statements("names")["insert_name"], tokens)

    @cached_property
    def _tokenizer(self) -> FtsTokenizer:
        return FtsTokenizer(self._connection)

    def _drop_unused_tags(self, tags: Iterable[tuple[int]]) -> None:
        for (tag_id,) in tags:
            self._execute(self._sql["delete_unused_tag"], {"id": tag_id})
