"""Documents with their tags and chunks, in SQL."""

from __future__ import annotations

import json
import sys
from dataclasses import astuple, replace
from typing import TYPE_CHECKING

from kb.store.base import Chunk, Content, Document, Filter
from kb.store.sqlite.rows import NOW, PLACE, TAGS, Execute, array, iso, next_ids, place, stored, strings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import apsw
    import numpy as np
    from numpy.typing import NDArray

    from kb.contract.models import Sort
    from kb.store.sqlite.schema import VectorTable

COLUMNS = f"id, title, source_path, doc_type, content_hash, {TAGS}, created_at, updated_at, date, own_tags"
SURROGATES = range(0xD800, 0xE000)
AFTER_SURROGATES = 0xE000
RECENT = "COALESCE(updated_at, created_at)"
TAGGED = (
    "SELECT document_id FROM document_tags WHERE tag_id IN"
    " (SELECT id FROM tags WHERE name IN (SELECT value FROM json_each(?)))"
)
PREFIXED = "SELECT id FROM documents WHERE source_path >= ? AND source_path < ?"
"""Ids come out of it in their order, so that a page need not sort what its filter admits."""

# SQLite does not look a pair up in an index on an expression.
AFTER_RECENT = f"{RECENT} <= ? AND ({RECENT}, id) < (?, ?)"

CARRIES = "SELECT 1 FROM document_tags WHERE document_id = documents.id"
MANY = 1000
"""From so many documents on, those of a tag are looked for among the recent ones, not sorted."""


class SqliteDocuments:
    """See `kb.store.base.Documents`. Remembers which vectors its transaction `added` and `removed`."""

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
        condition, parameters = condition_of(replace(where, tags=(), tag_any=(), tag_not=()))
        groups = [(tag,) for tag in where.tags] + ([where.tag_any] if where.tag_any else [])
        wanted = [self._tag_ids(group) for group in groups]
        if "" in wanted:
            return []
        source, key = self._source(wanted, sort)
        conditions = [condition, *(f"EXISTS ({CARRIES} AND tag_id IN ({ids}))" for ids in wanted)]
        if where.tag_not and (unwanted := self._tag_ids(where.tag_not)):
            conditions.append(f"NOT EXISTS ({CARRIES} AND tag_id IN ({unwanted}))")
        if cursor is not None:
            conditions.append(AFTER_RECENT if sort == "recent" else f"{key} > ?")
            document_id, recent = _decode(cursor)
            parameters += (recent, recent, document_id) if sort == "recent" else (document_id,)
        order = f"{RECENT} DESC, id DESC" if sort == "recent" else key
        return self._documents(f"{' AND '.join(conditions)} ORDER BY {order} LIMIT ?", (*parameters, limit), source)

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

    def add(self, content: Content, source_path: str | None, tags: Iterable[str]) -> int:
        """Write a new document."""
        [document_id] = next_ids(self._execute, "documents", 1)
        self._execute(
            "INSERT INTO documents (id, title, source_path, doc_type, content_hash, date, own_tags, created_at)"
            f" VALUES (?, ?, ?, ?, ?, ?, ?, {NOW})",
            (
                document_id,
                content.title,
                source_path,
                content.doc_type,
                content.content_hash,
                content.date,
                array(content.own_tags),
            ),
        )
        self._add_chunks(document_id, content)
        self._add_tags(document_id, tags)
        return document_id

    def replace(self, document_id: int, content: Content) -> None:
        """Replace what the document holds; it keeps its id, path, tags and `created_at`."""
        self._remove_chunks(document_id)
        self._add_chunks(document_id, content)
        self._execute(
            "UPDATE documents SET title = ?, doc_type = ?, content_hash = ?, date = ?, own_tags = ?,"
            f" updated_at = {NOW} WHERE id = ?",
            (content.title, content.doc_type, content.content_hash, content.date, array(content.own_tags), document_id),
        )

    def delete(self, document_id: int) -> None:
        """Delete the document with all that belongs to it; tags nobody carries any more go too."""
        self._remove_chunks(document_id)
        tags = self._execute("SELECT tag_id FROM document_tags WHERE document_id = ?", (document_id,)).fetchall()
        self._execute("DELETE FROM document_tags WHERE document_id = ?", (document_id,))
        self._execute("DELETE FROM documents WHERE id = ?", (document_id,))
        self._drop_unused_tags(tag for (tag,) in tags)

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

    def has_content(self, content_hash: str) -> bool:
        """Whether any document holds this content."""
        return self._one("content_hash = ?", (content_hash,)) is not None

    def hashes(self) -> set[str]:
        """The content hash of every document."""
        return {hash_ for (hash_,) in self._execute("SELECT content_hash FROM documents")}

    def _source(self, wanted: Sequence[str], sort: Sort) -> tuple[str, str]:
        """Where a page is looked for, and the id there: among the carriers of the rarest tag if that is less work."""
        if wanted:
            rarest = min(wanted, key=self._carriers) if len(wanted) > 1 else wanted[0]
            single = "," not in rarest
            if (single and sort == "id") or self._carriers(rarest) < MANY:
                # CROSS JOIN: SQLite shall begin on the left, where the documents of a tag stand in order.
                carriers = (
                    f"SELECT {'' if single else 'DISTINCT '}document_id FROM document_tags WHERE tag_id IN ({rarest})"
                )
                return f"({carriers}) CROSS JOIN documents ON id = document_id", "document_id"
        return "documents", "id"

    def _tag_ids(self, tags: Collection[str]) -> str:
        """The ids of those tags that are in use, with commas between them."""
        rows = self._execute("SELECT id FROM tags WHERE name IN (SELECT value FROM json_each(?))", (json.dumps(tags),))
        return ",".join(str(tag_id) for (tag_id,) in rows)

    def _carriers(self, tag_ids: str) -> int:
        """How many documents carry any of the tags, counted up to `MANY`."""
        sql = f"SELECT count(*) FROM (SELECT 1 FROM document_tags WHERE tag_id IN ({tag_ids}) LIMIT ?)"
        number: int = self._execute(sql, (MANY,)).get
        return number

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


def condition_of(where: Filter) -> tuple[str, tuple[object, ...]]:
    """`where` as an SQL condition on `documents`, and its parameters."""
    # The plus keeps SQLite from looking a type up, which most documents have, where it can look a path up.
    doc_type = "doc_type" if where.source_path is None else "+doc_type"
    conditions: list[tuple[str, list[object]]] = [("TRUE", [])]
    conditions += [
        (f"{comparison} ?", [value])
        for comparison, value in (
            (f"{doc_type} =", where.doc_type),
            ("source_path =", where.source_path),
            ("created_at >=", stored(where.created_after)),
            ("created_at <", stored(where.created_before)),
        )
        if value is not None
    ]
    conditions += [(f"id IN ({TAGGED})", [json.dumps([tag])]) for tag in where.tags]
    if where.source_prefix is not None:
        conditions.append((f"id IN ({PREFIXED})", [where.source_prefix, after_prefix(where.source_prefix)]))
    if where.tag_any:
        conditions.append((f"id IN ({TAGGED})", [json.dumps(where.tag_any)]))
    if where.tag_not:
        conditions.append((f"id NOT IN ({TAGGED})", [json.dumps(where.tag_not)]))
    return (
        " AND ".join(condition for condition, _ in conditions),
        tuple(parameter for _, parameters in conditions for parameter in parameters),
    )


def after_prefix(prefix: str) -> str | bytes:
    """What comes after all texts with this prefix, and before any other; SQLite puts bytes after all texts."""
    stem = prefix.rstrip(chr(sys.maxunicode))
    if not stem:
        return b""
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(AFTER_SURROGATES if following in SURROGATES else following)


def _decode(cursor: str) -> tuple[int, str]:
    document_id, _, recent = cursor.partition(".")
    return int(document_id), bytes.fromhex(recent).decode(errors="replace")
