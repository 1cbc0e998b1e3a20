"""Documents with their tags and chunks, in SQL."""

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kb.api.document_day import own_day
from kb.api.errors import ModelChanged
from kb.api.fields import Sort
from kb.api.rights import Limit
from kb.api.tag_tree import tags_above
from kb.store.chunk_compression import compressed, decompressed
from kb.store.row_mapping import (
    Execute,
    counts,
    field_values,
    listed_ids,
    map_chunk,
    map_chunk_place,
    map_document,
    mapped,
    raw,
)
from kb.store.rows import (
    NOBODY,
    Author,
    Chunk,
    ChunkPlace,
    ChunkPosition,
    Content,
    Document,
    Extent,
    Filter,
    Named,
    Repeated,
    VectorSpace,
    unchanged,
)
from kb.store.sql.conditions import EVERY_DOCUMENT, Conditions
from kb.store.sql.links import Links
from kb.store.sql.operations import note_operation
from kb.store.sql.replacements import present_successors
from kb.store.statements import Statements

ALL: Final = 1 << 62
"""More chunks than any document has."""

WITHIN: Final = "AND EXISTS (SELECT 1 FROM documents WHERE documents.id = names.document_id AND {condition})"
"""Keeps the names to documents that a key may see."""

WEIGHT: Final = 1_000_000_000_000
"""The weight of a word in one name; a word in more of them weighs less."""

AMONG: Final = "WHERE +document_id IN (SELECT id FROM documents WHERE {condition})"
"""Keeps the tags to such documents; with a plus, SQLite does not look up each of these for each of the tags."""


class Documents(ABC):
    """See `kb.store.protocol.Documents`.

    Args:
        execute: the transaction's.
        statements: the store's.
        conditions: the store's conditions on documents.
    """

    def __init__(self, execute: Execute, statements: Statements, conditions: Conditions) -> None:
        self._execute = execute
        self._statements = statements
        self.conditions = conditions
        self._sql = self._statements("documents")
        self.links = Links(execute, statements("links"), conditions)

    @cached_property
    def now(self) -> str:
        """The time of all changes in the transaction."""
        stamp: str = self._execute(self._sql["select_now"]).get
        return stamp

    def get(self, document_id: int) -> Document | None:
        sql = self._sql["select_documents"].format(source="documents", condition=self._sql["where_id"])
        return next(iter(mapped(map_document, self._execute(sql, {"id": document_id}))), None)

    def chunks(self, document_id: int, start: int = 0, limit: int | None = None) -> list[Chunk]:
        """Return a document's chunks in order, from the one with the index `start` on."""
        parameters = {"id": document_id, "start": start, "limit": ALL if limit is None else limit}
        return mapped(map_chunk, self._execute(self._sql["select_chunks"], parameters))

    def chunks_between(self, document_id: int, start: int, end: int) -> list[Chunk]:
        parameters = {"id": document_id, "start": start, "end": end}
        return mapped(map_chunk, self._execute(self._sql["select_chunks_between"], parameters))

    def chunk_places(self, document_id: int) -> list[ChunkPlace]:
        return mapped(map_chunk_place, self._execute(self._sql["select_chunk_places"], {"id": document_id}))

    def chunk_ids(self, document_ids: Sequence[int], most: int) -> list[tuple[int, int]]:
        ids = {"ids": list(document_ids), "most": most}
        pairs: list[tuple[int, int]] = self._execute(self._sql["select_first_chunks"], ids).fetchall()
        return pairs

    def extent(self, document_id: int) -> Extent:
        return Extent(*self._execute(self._sql["select_extent"], {"id": document_id}).get)

    def page(self, where: Filter, *, sort: Sort, limit: int, cursor: str | None) -> list[Document]:
        source, (condition, parameters) = self.conditions.page(where, sort, cursor)
        sql = self._sql["select_documents"].format(source=source, condition=condition)
        return mapped(map_document, self._execute(f"{sql} LIMIT {self.conditions.mark}", (*parameters, limit)))

    def count(self, where: Filter) -> int:
        condition, parameters = self.conditions.admitted(where)
        count: int = self._execute(self._sql["count_documents"].format(condition=condition), parameters).get
        return count

    def repeated(self, *, limit: int, before: int | None, within: Limit | None = None) -> list[Repeated]:
        condition, parameters = self.conditions.admitted(Filter(limit=within))
        sql = self._sql["select_repeated"].format(condition=condition, mark=self.conditions.mark)
        return [Repeated(*row) for row in self._execute(sql, (*parameters, ALL if before is None else before, limit))]

    def having(self, content_hash: str, *, limit: int, within: Limit | None = None) -> list[Document]:
        condition, parameters = self.conditions.admitted(Filter(limit=within))
        mark = self.conditions.mark
        condition = self._sql["where_hash"].format(condition=condition, mark=mark)
        sql = self._sql["select_documents"].format(source="documents", condition=f"{condition} LIMIT {mark}")
        return mapped(map_document, self._execute(sql, (content_hash, *parameters, limit)))

    def beginning_with(self, doc_type: str, beginning: str) -> list[int]:
        parameters = {"doc_type": doc_type, "beginning": beginning}
        return [document_id for (document_id,) in self._execute(self._sql["select_beginning_with"], parameters)]

    def with_content(
        self, content_hash: str, source_path: str | None, *, note: bool, limit: Limit | None = None
    ) -> Document | None:
        documents = self.all_with_content(content_hash, source_path, note=note)
        return next(
            (document for document in documents if limit is None or limit.admits(document.tags, document.source_path)),
            None,
        )

    def all_with_content(self, content_hash: str, source_path: str | None, *, note: bool) -> Iterator[Document]:
        """Yield the notes, or the files, that have this content at this path, the oldest first."""
        parameters = {"content_hash": content_hash, "source_path": source_path, "note": note}
        ids = self._execute(self._sql["find_by_content"], parameters).fetchall()
        return filter(None, (self.get(document_id) for (document_id,) in ids))

    def with_body(self, body_hash: str, most: int, limit: Limit | None = None) -> Iterator[Document]:
        ids = self._execute(self._sql["find_by_body"], {"body_hash": body_hash}).fetchall()
        notes = filter(None, (self.get(document_id) for (document_id,) in ids))
        return islice((note for note in notes if limit is None or limit.admits(note.tags, note.source_path)), most)

    def at_path(self, source_path: str) -> Document | None:
        """Return the oldest document with this path."""
        document_id: int | None = self._execute(self._sql["find_by_path"], {"source_path": source_path}).get
        return None if document_id is None else self.get(document_id)

    def named(self, tokens: Collection[str], most: int, limit: int, within: Limit | None = None) -> list[Named]:
        condition, parameters = EVERY_DOCUMENT if within is None else self.conditions.admitted(Filter(limit=within))
        admitted_only = WITHIN.format(condition=condition) if within else ""
        sql = self._statements("names")
        postings = sql["select_name_postings"].format(admitted_only=admitted_only)
        listed = self._execute(postings, (sorted({*tokens}), *parameters, most + 1)).fetchall()
        few = [ids for (text,) in listed if (ids := listed_ids(text)).size <= most]
        has = _with_rarest(few, limit)
        rows = self._execute(sql["select_named"], {"ids": [*has]}).fetchall() if has else ()
        names = {row[0]: row for row in rows}
        return [Named(*names[each])._replace(lacks=len(few) - has[each]) for each in has if each in names]

    def write_names(self, limit: int) -> bool:
        """Write the names of at most `limit` changed documents; return whether more are left."""
        sql = self._statements("names")
        documents = [Named(*row) for row in self._execute(sql["select_unnamed"], {"limit": limit})]
        if not documents:
            return False
        ids = [document.document_id for document in documents]
        self._execute(sql["delete_names"], {"ids": ids})
        self.insert_names(
            [(document.document_id, token) for document in documents for token in self.name_tokens(document)]
        )
        self.links.write(documents)
        self._execute(sql["forget_unnamed"], {"ids": ids})
        return len(documents) == limit

    def link_older(self, limit: int) -> bool:
        before = self.links.before
        if before is None:
            return False
        sql = self._statements("names")["select_named_before"]
        documents = [Named(*row) for row in self._execute(sql, {"before": before, "limit": limit})]
        self.links.write(documents)
        self.links.note_before(documents[-1].document_id if documents else None)
        return bool(documents)

    def has_successors(self) -> bool:
        return bool(self._execute(self._statements("replacements")["has_links"]).get)

    def successors(self, document_ids: Iterable[int]) -> dict[int, list[int]]:
        ids = sorted(document_ids)
        return present_successors(
            ids, self._execute(self._statements("replacements")["select_links"], {"ids": ids}).fetchall()
        )

    def pass_on(self, document_id: int, *, for_good: bool) -> None:
        """Make the successors of a document replace its predecessor; `for_good` also in earlier versions."""
        sql = self._statements("replacements")
        other: int | None = self._execute(sql["select_replaced"], {"id": document_id}).get
        for name in ("pass_on", "pass_on_former" if for_good else "pass_on_in_bin"):
            self._execute(sql[name], {"id": document_id, "other": other})

    def add(
        self,
        content: Content,
        source_path: str | None,
        tags: Iterable[str],
        part_of: int | None = None,
        author: Author = NOBODY,
    ) -> int:
        note_operation(self._execute, self._statements("operations"), author, self.now)
        columns = _columns(content) | field_values(author) | {"now": self.now}
        document_id = self.insert_document(columns | {"source_path": source_path, "part_of": part_of})
        self.add_chunks(document_id, content)
        self.add_tags(document_id, tags)
        return document_id

    def replace(self, document_id: int, content: Content) -> None:
        *file, language = self._execute(self._sql["select_kept"], {"id": document_id}).get
        before = self.chunks(document_id)
        self._keep_former(document_id, before)
        # The words of a chunk are indexed by the language of its document.
        self._change_chunks(document_id, before, content, may_keep=language == content.language)
        self.update(document_id, content)
        self.drop_file(*file)

    def rename(self, document_id: int, filename: str) -> None:
        """Set the name of the file, when the same file is added under another name."""
        self._execute(self._sql["update_filename"], {"id": document_id, "filename": filename})

    def stamp(self, document_id: int, updated_at: str | None) -> None:
        stamp = raw(updated_at) if updated_at else None
        self._execute(self._sql["stamp_document"], {"id": document_id, "at": stamp})

    def move(self, document_id: int, source_path: str | None) -> None:
        before = self._execute(self._sql["select_source_path"], {"id": document_id}).get or ""
        self._execute(self._sql["update_source_path"], {"id": document_id, "source_path": source_path})
        for part, path in self.parts(document_id):
            if path and path.startswith(before):
                self.move(part, (source_path or "") + path[len(before) :])

    def delete(self, document_id: int) -> None:
        """Purge a document, even from the bin, with its earlier versions and its parts, such as attachments.

        If the document is in the bin, parts outside the bin stay: someone restored them separately.
        """
        if self.get(document_id) is None:
            self._execute(self._sql["release_parts"], {"id": document_id})
        for part, _ in self.parts(document_id):
            self.delete(part)
        for (part,) in self._execute(
            self._statements("history")["select_binned_parts"], {"id": document_id}
        ).fetchall():
            self.delete(part)
        self.pass_on(document_id, for_good=True)
        self._forget(document_id)
        self._execute(self._statements("jobs")["delete_parts"], {"id": document_id})
        self._execute(self._statements("jobs")["forget_document"], {"id": document_id, "for_good": True})
        if self.get(document_id):
            self.remove(document_id)

    def remove(self, document_id: int) -> None:
        """Remove the document itself, and tags of no other document; its earlier versions stay."""
        self._keep_former(document_id)
        self._delete_chunks(document_id)
        self.clear_tags(document_id)
        self.drop_file(*self._execute(self._sql["delete_document"], {"id": document_id}).get)
        self._execute(self._statements("jobs")["forget_document"], {"id": document_id, "for_good": False})

    def parts(self, document_id: int) -> list[tuple[int, str | None]]:
        rows: list[tuple[int, str | None]] = self._execute(self._sql["select_parts"], {"id": document_id}).fetchall()
        return rows

    def part_of(self, document_id: int) -> int | None:
        whole_id: int | None = self._execute(self._sql["select_whole"], {"id": document_id}).get
        return whole_id

    def tags(self, limit: Limit | None = None) -> list[tuple[str, int]]:
        condition, parameters = self.conditions.admitted(Filter(limit=limit))
        sql = self._sql["select_tags" if limit is None else "select_tags_among"].format(condition=condition)
        rows: list[tuple[str, int]] = self._execute(sql, parameters).fetchall()
        return rows

    def folders(self, prefix: str, most: int, limit: Limit | None = None) -> list[tuple[str, int]]:
        condition, parameters = self.conditions.admitted(Filter(source_prefix=prefix or None, limit=limit))
        sql = self._sql["select_folders"].format(condition=condition, start=len(prefix) + 1, most=most)
        rows: list[tuple[str, int]] = self._execute(sql, parameters).fetchall()
        return rows

    def branches(self, limit: Limit | None = None) -> dict[str, int]:
        tags = [tag for tag, _ in self.tags(limit)]
        above = {tag: list(tags_above(tag)) for tag in tags}
        parents = {parent for parents in above.values() for parent in parents}
        pairs = [(branch, tag) for tag in tags for branch in {*above[tag], *({tag} & parents)}]
        condition, parameters = EVERY_DOCUMENT if limit is None else self.conditions.admitted(Filter(limit=limit))
        sql = self._sql["count_branches"].format(admitted_only=AMONG.format(condition=condition) if limit else "")
        return dict(self._execute(sql, (json.dumps(pairs), *parameters)).fetchall()) if pairs else {}

    def change_tags(self, document_id: int, *, add: Iterable[str], remove: Iterable[str]) -> bool:
        """Remove and add tags; a tag in both lists stays."""
        before = self._tags_of(document_id)
        self.remove_tags(document_id, set(remove) - set(add))
        self.add_tags(document_id, add)
        is_changed = self._tags_of(document_id) != before
        if is_changed:
            self._execute(self._sql["touch_document"], {"id": document_id, "now": self.now})
        return is_changed

    def take_unneeded_files(self) -> list[str]:
        noted = self._execute(self._sql["take_unneeded_files"]).fetchall()
        return [hash_ for (hash_,) in noted if not self._is_file_needed(hash_)]

    def file_hashes(self) -> set[str]:
        return {hash_ for (hash_,) in self._execute(self._sql["select_file_hashes"])}

    def add_chunks(self, document_id: int, content: Content, ids: Sequence[int] | None = None) -> None:
        """Write the chunks of a document without chunks, with new ids unless `ids` are given.

        Raises:
            ModelChanged: their vectors are of the model that was in use before.
        """
        self._check_space(content.space)
        self._write_chunks(document_id, content, ids or self.new_chunk_ids(len(content.chunks)))
        if ids:
            self.note_order(document_id, ids)

    def _change_chunks(self, document_id: int, before: Sequence[Chunk], content: Content, *, may_keep: bool) -> None:
        """Replace the chunks of a document; those whose text and header stay keep their rows and get new places.

        Raises:
            ModelChanged: the vectors are of the model that was in use before.
        """
        self._check_space(content.space)
        kept = unchanged(before, content.chunks) if may_keep else {}
        stay = {chunk.id for chunk in kept.values()}
        self._delete_chunks(document_id, [chunk.id for chunk in before if chunk.id not in stay])
        after = ((chunk, index, content.chunks[index].place) for index, chunk in kept.items())
        moved = [
            (chunk.id, index, place) for chunk, index, place in after if (index, place) != (chunk.index, chunk.place)
        ]
        if moved:
            self.place_chunks(document_id, moved)
        new_ids = iter(self.new_chunk_ids(len(content.chunks) - len(kept)))
        ids = [kept[index].id if index in kept else next(new_ids) for index in range(len(content.chunks))]
        self._write_chunks(document_id, content, ids, written=stay)
        self.note_order(document_id, ids)

    def _write_chunks(
        self, document_id: int, content: Content, ids: Sequence[int], written: Collection[int] = ()
    ) -> None:
        """Write the chunks of a document and the other parts of its content; some chunks are `written` already."""
        if not len(content.vectors):
            zeros = np.zeros((len(content.chunks), self.space.dimensions), np.float32)
            content = replace(content, vectors=zeros)
        new = [(index, chunk_id) for index, chunk_id in enumerate(ids) if chunk_id not in written]
        self.write_chunks(document_id, content, new)
        if content.body_hash not in (None, content.content_hash):
            self._execute(self._sql["insert_body"], {"id": document_id, "body_hash": content.body_hash})
        if content.message_ids:
            self.links.keep_message_ids(content.content_hash, content.message_ids)
        # Zeros are of a passage that waits for its vector.
        self._count_vectors(content.space, sum(bool(content.vectors[index].any()) for index, _ in new))

    def _count_vectors(self, space: VectorSpace | None, made: int) -> None:
        precision = (space or self.space).precision
        self._execute(self._statements("vectors")["count_precision"], (precision, made))

    def _check_space(self, space: VectorSpace | None) -> None:
        if space not in (None, self.space):
            raise ModelChanged

    def _keep_former(self, document_id: int, chunks: Sequence[Chunk] | None = None) -> None:
        """Keep a copy of a document's chunks for an earlier version that needs them."""
        if self._execute(self._statements("history")["is_content_missing"], {"id": document_id}).get:
            self.keep_content(document_id, self.chunks(document_id) if chunks is None else chunks)

    def update(self, document_id: int, content: Content) -> None:
        self._execute(self._sql["update_document"], _columns(content) | {"id": document_id, "now": self.now})

    def without_vectors(self, document_id: int) -> list[Chunk]:
        waiting = self.ids_without_vectors(document_id)
        return [chunk for chunk in self.chunks(document_id) if chunk.id in waiting] if waiting else []

    def has_vectors(self, document_id: int) -> bool:
        return not self.ids_without_vectors(document_id)

    def set_vectors(self, document_id: int, vectors: Mapping[int, NDArray[np.float32]], space: VectorSpace) -> None:
        self._check_space(space)
        self.write_vectors(document_id, vectors)
        self._count_vectors(space, len(vectors))

    def _delete_chunks(self, document_id: int, ids: Sequence[int] | None = None) -> None:
        """Delete some chunks of a document, by default all."""
        self.delete_chunks(document_id, ids)
        self._execute(self._sql["delete_body"], {"id": document_id})

    def keep_content(self, document_id: int, chunks: Sequence[Chunk]) -> None:
        """Keep the chunks for the earlier versions that have this content; see docs/adr/0019-history.md."""
        sql = self._statements("history")
        content_id: int = self._execute(sql["insert_content"], {"id": document_id, "chunks": compressed(chunks)}).get
        self._execute(sql["fill_content"], {"id": document_id, "content_id": content_id})

    def former_chunks(self, content_id: int) -> list[Chunk]:
        """Return the chunks of an earlier version."""
        return decompressed(self._execute(self._statements("history")["select_content"], {"id": content_id}).get)

    def _is_file_needed(self, content_hash: str) -> bool:
        return bool(self._execute(self._sql["is_file_needed"], {"hash": content_hash}).get)

    def drop_file(self, content_hash: str, doc_type: str) -> None:
        """Note the file if no document or earlier version needs it any more."""
        if doc_type != "note" and not self._is_file_needed(content_hash):
            self._execute(self._sql["note_unneeded_file"], {"hash": content_hash})
            self.links.forget_message_ids(content_hash)

    def _forget(self, document_id: int) -> None:
        """Delete the earlier versions of a document, in the bin or not."""
        sql = self._statements("history")
        for name in ("delete_binned", "delete_contents"):
            self._execute(sql[name], {"id": document_id})
        for file in self._execute(sql["delete_versions"], {"id": document_id}).fetchall():
            self.drop_file(*file)

    def _tags_of(self, document_id: int) -> set[str]:
        return {tag for (tag,) in self._execute(self._sql["select_tags_of"], {"id": document_id})}

    @property
    @abstractmethod
    def space(self) -> VectorSpace:
        """The space of the vectors."""

    @abstractmethod
    def insert_document(self, columns: dict[str, object]) -> int:
        """Write a document without tags and chunks; return its id."""

    @abstractmethod
    def new_chunk_ids(self, count: int) -> Sequence[int]:
        """Return `count` chunk ids that were never used before."""

    @abstractmethod
    def write_chunks(self, document_id: int, content: Content, new: Sequence[tuple[int, int]]) -> None:
        """Write some chunks of a document and their vectors, given as pairs of index and new id."""

    @abstractmethod
    def place_chunks(self, document_id: int, places: Sequence[tuple[int, int, ChunkPosition]]) -> None:
        """Give chunks another index and another place, by their ids; headings and pages stay."""

    @abstractmethod
    def note_order(self, document_id: int, ids: Sequence[int]) -> None:
        """Note the ids of a document's chunks, in order, which may not be ascending."""

    @abstractmethod
    def ids_without_vectors(self, document_id: int) -> set[int]:
        """Return the chunks of a document whose vector is zeros, because it is not made yet."""

    @abstractmethod
    def write_vectors(self, document_id: int, vectors: Mapping[int, NDArray[np.float32]]) -> None:
        """Write the vectors of chunks that have zeros."""

    @abstractmethod
    def delete_chunks(self, document_id: int, ids: Sequence[int] | None) -> None:
        """Delete some chunks of a document, or all, with their vectors."""

    @abstractmethod
    def add_tags(self, document_id: int, tags: Iterable[str]) -> None:
        """Add tags to a document."""

    @abstractmethod
    def remove_tags(self, document_id: int, tags: Iterable[str]) -> None:
        """Remove tags from a document."""

    @abstractmethod
    def clear_tags(self, document_id: int) -> None:
        """Remove all tags from a document before it is deleted."""

    @abstractmethod
    def name_tokens(self, document: Named) -> list[str]:
        """Return the words of the document's names, by which searches find it."""

    @abstractmethod
    def insert_names(self, tokens: Sequence[tuple[int, str]]) -> None:
        """Write words of document names, as pairs of document id and word."""


def _columns(content: Content) -> dict[str, object]:
    return field_values(content) | {
        "own_day": own_day(content.date),
        "own_tags": list(content.own_tags),
        "filename": content.filename or None,
        "omitted": counts(content.omitted),
    }


def _with_rarest(postings: Sequence[NDArray[np.int64]], limit: int) -> dict[int, int]:
    """Return at most `limit` documents, with the number of lists that each is in; short lists weigh most."""
    if not any(ids.size for ids in postings):
        return {}
    sizes = np.array([ids.size for ids in postings])
    documents, places = np.unique(np.concatenate(postings), return_inverse=True)
    weights = np.bincount(places, np.repeat(WEIGHT // np.maximum(sizes, 1), sizes))
    best = np.lexsort((documents, -weights))[:limit]
    return dict(zip(documents[best].tolist(), np.bincount(places)[best].tolist(), strict=True))
