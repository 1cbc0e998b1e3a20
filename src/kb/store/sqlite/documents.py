"""Documents with their tags and chunks, in SQL."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING

from kb.store.rows import Chunk, Content, Document, Filter
from kb.store.sqlite.document_query import RECENT, page_of
from kb.store.sqlite.values import NOW, PLACE, TAGS, Execute, array, iso, next_ids, place, strings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import apsw
    import numpy as np
    from numpy.typing import NDArray

    from kb.api.models import Sort
    from kb.store.sqlite.schema import VectorTable

COLUMNS = f"id, title, source_path, doc_type, content_hash, {TAGS}, created_at, updated_at, date, own_tags"


class SqliteDocuments:
    """See `kb.store.protocol.Documents`. Remembers which vectors its transaction `added` and `removed`."""

    def __init__(self, connection: apsw.Connection, table: VectorTable) -> None:
        self._execute: Execute = connection.execute
        self._connection = connection
        self._table = table
        self.added: list[tuple[int, NDArray[np.float32]]] = []
        self.removed: list[int] = []

    def get(self, document_id: int) -> Document | None:
        """The document, if there is one."""
        return self._one("id = ?", (document_id,))

    def chunks(self, document_id: int) -> list[Chunk]:
        """A document's chunks in order."""
        rows = self._execute(
            f"SELECT id, chunk_index, header, text, {PLACE} FROM chunks WHERE document_id = ? ORDER BY chunk_index",
            (document_id,),
        )
        return [Chunk(*[*row[:4], place(*row[4:])]) for row in rows]

    def page(self, where: Filter, *, sort: Sort, limit: int, cursor: str | None) -> list[Document]:
        """Documents after `cursor`: by ascending id, or the most recently changed first."""
        wanted = page_of(self._execute, where, sort, cursor)
        return self._documents(f"{wanted.rest} LIMIT ?", (*wanted.parameters, limit), wanted.source) if wanted else []

    def cursor_after(self, document_id: int) -> str:
        """A text from which `page` goes on after the document, in either order."""
        recent: str = self._execute(f"SELECT {RECENT} FROM documents WHERE id = ?", (document_id,)).get
        return f"{document_id}.{recent.encode().hex()}"

    def with_content(self, content_hash: str, source_path: str | None, *, note: bool) -> Document | None:
        """The oldest note, or else file, that holds this content under this path."""
        return self._one(
            "content_hash = ? AND +source_path IS ? AND (+doc_type = 'note') = ? ORDER BY id",
            (content_hash, source_path, note),
        )

    def at_path(self, source_path: str) -> Document | None:
        """The oldest document with this path."""
        return self._one("source_path = ? ORDER BY id", (source_path,))

    def add(self, content: Content, source_path: str | None, tags: Iterable[str], part_of: int | None = None) -> int:
        """Write a new document."""
        [document_id] = next_ids(self._execute, "documents", 1)
        self._execute(
            "INSERT INTO documents (id, title, source_path, doc_type, content_hash, date, own_tags, part_of,"
            f" created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, {NOW})",
            (
                document_id,
                content.title,
                source_path,
                content.doc_type,
                content.content_hash,
                content.date,
                array(content.own_tags),
                part_of,
            ),
        )
        self._add_chunks(document_id, content)
        self._add_tags(document_id, tags)
        return document_id

    def replace(self, document_id: int, content: Content) -> None:
        """Replace what the document holds; it keeps its id, path, tags and `created_at`."""
        before = self._execute("SELECT content_hash, doc_type FROM documents WHERE id = ?", (document_id,)).get
        self._remove_chunks(document_id)
        self._add_chunks(document_id, content)
        self._execute(
            "UPDATE documents SET title = ?, doc_type = ?, content_hash = ?, date = ?, own_tags = ?,"
            f" updated_at = {NOW} WHERE id = ?",
            (content.title, content.doc_type, content.content_hash, content.date, array(content.own_tags), document_id),
        )
        self._drop_file(*before)

    def delete(self, document_id: int) -> None:
        """Delete the document with all that belongs to it, such as attachments; tags nobody carries any more go too."""
        self.delete_parts(document_id, keep=())
        self._remove_chunks(document_id)
        tags = self._execute("SELECT tag_id FROM document_tags WHERE document_id = ?", (document_id,)).fetchall()
        self._execute("DELETE FROM document_tags WHERE document_id = ?", (document_id,))
        deleted = "DELETE FROM documents WHERE id = ? RETURNING content_hash, doc_type"
        self._drop_file(*self._execute(deleted, (document_id,)).get)
        self._drop_unused_tags(tag for (tag,) in tags)

    def delete_parts(self, document_id: int, *, keep: Collection[str | None]) -> None:
        """Delete the documents that came inside this one, but those at the paths to `keep`."""
        parts = self._execute("SELECT id, source_path FROM documents WHERE part_of = ?", (document_id,)).fetchall()
        for part, path in parts:
            if path not in keep:
                self.delete(part)

    def change_tags(self, document_id: int, *, add: Iterable[str], remove: Iterable[str]) -> None:
        """Remove, then add: a tag in both lists stays."""
        before = self._tags_of(document_id)
        self._remove_tags(document_id, set(remove) - set(add))
        self._add_tags(document_id, add)
        if self._tags_of(document_id) != before:
            self._execute(f"UPDATE documents SET updated_at = {NOW} WHERE id = ?", (document_id,))

    def tags(self) -> list[tuple[str, int]]:
        """Every tag in use with the number of its documents, in alphabetical order."""
        rows: list[tuple[str, int]] = self._execute(
            "SELECT name, count(*) FROM tags JOIN document_tags ON tag_id = tags.id GROUP BY name ORDER BY name"
        ).fetchall()
        return rows

    def filename(self, document_id: int) -> str | None:
        """What the file was called that the document came from, as far as its jobs tell."""
        sql = "SELECT filename FROM jobs WHERE document_id = ? AND filename <> '' ORDER BY id DESC LIMIT 1"
        name: str | None = self._execute(sql, (document_id,)).get
        return name

    def take_unneeded_files(self) -> list[str]:
        """The hashes of the files that lost their last document; they are not noted any more after this."""
        noted = self._execute("DELETE FROM unneeded_files RETURNING content_hash").fetchall()
        return [hash_ for (hash_,) in noted if not self._is_file_needed(hash_)]

    def _is_file_needed(self, content_hash: str) -> bool:
        return self._one("content_hash = ? AND +doc_type <> 'note'", (content_hash,)) is not None

    def _drop_file(self, content_hash: str, doc_type: str) -> None:
        """Note that a file lost its last document, if it did."""
        if doc_type != "note" and not self._is_file_needed(content_hash):
            self._execute("INSERT INTO unneeded_files VALUES (?) ON CONFLICT DO NOTHING", (content_hash,))

    def _documents(self, rest: str, parameters: tuple[object, ...], source: str = "documents") -> list[Document]:
        rows = self._execute(f"SELECT {COLUMNS} FROM {source} WHERE {rest}", parameters)
        return [
            Document(id_, title, path, doc_type, hash_, strings(tags), iso(created), iso(updated), date, strings(own))
            for id_, title, path, doc_type, hash_, tags, created, updated, date, own in rows
        ]

    def _one(self, rest: str, parameters: tuple[object, ...]) -> Document | None:
        return next(iter(self._documents(f"{rest} LIMIT 1", parameters)), None)

    def _add_chunks(self, document_id: int, content: Content) -> None:
        ids = next_ids(self._execute, "chunks", len(content.chunks))
        for index, (chunk_id, chunk, vector) in enumerate(zip(ids, content.chunks, content.vectors, strict=True)):
            lines_and_characters = astuple(chunk.place)[:4]
            self._execute(
                f"INSERT INTO chunks (id, document_id, chunk_index, header, text, {PLACE})"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (chunk_id, document_id, index, chunk.header, chunk.text, *lines_and_characters,
                 array(chunk.place.heading), chunk.place.page),
            )  # fmt: skip
            self._execute(self._table.insert, (chunk_id, vector.tobytes()))
            self.added.append((chunk_id, vector))

    def _remove_chunks(self, document_id: int) -> None:
        ids = [row[0] for row in self._execute("SELECT id FROM chunks WHERE document_id = ?", (document_id,))]
        self._connection.executemany(self._table.delete, [(id_,) for id_ in ids])
        self._execute("DELETE FROM chunks WHERE document_id = ?", (document_id,))
        self.removed += ids

    def _tags_of(self, document_id: int) -> str:
        tags: str = self._execute(f"SELECT {TAGS} FROM documents WHERE id = ?", (document_id,)).get
        return tags

    def _add_tags(self, document_id: int, tags: Iterable[str]) -> None:
        for tag in tags:
            self._execute("INSERT INTO tags (name) VALUES (?) ON CONFLICT DO NOTHING", (tag,))
            self._execute(
                "INSERT INTO document_tags SELECT ?, id FROM tags WHERE name = ? ON CONFLICT DO NOTHING",
                (document_id, tag),
            )

    def _remove_tags(self, document_id: int, tags: Iterable[str]) -> None:
        for tag in tags:
            removed = self._execute(
                "DELETE FROM document_tags WHERE document_id = ?"
                " AND tag_id = (SELECT id FROM tags WHERE name = ?) RETURNING tag_id",
                (document_id, tag),
            ).fetchall()
            self._drop_unused_tags(tag_id for (tag_id,) in removed)

    def _drop_unused_tags(self, tag_ids: Iterable[int]) -> None:
        for tag_id in tag_ids:
            self._execute(
                "DELETE FROM tags WHERE id = ? AND NOT EXISTS (SELECT 1 FROM document_tags WHERE tag_id = tags.id)",
                (tag_id,),
            )
