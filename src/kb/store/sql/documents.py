"""Documents with their tags and chunks, in SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Final

from kb.api.date_parsing import own_day
from kb.api.models import Sort
from kb.api.rights import Limit
from kb.store.row_mapping import (
    Execute,
    counts,
    field_values,
    map_chunk,
    map_chunk_place,
    map_document,
    mapped,
    raw,
)
from kb.store.rows import NOBODY, Author, Chunk, ChunkPlace, Content, Document, Extent, Filter, Named, said
from kb.store.sql.conditions import Conditions
from kb.store.sql.document_names import named, write_names
from kb.store.sql.former_content import FormerContents
from kb.store.sql.operations import note_operation
from kb.store.sql.replacements import has_successors, pass_on, successors
from kb.store.statements import Statements

ALL: Final = 1 << 62
"""More chunks than a document has."""


class Documents(ABC):
    """See `kb.store.protocol.Documents`.

    Args:
        execute: the transaction's.
        statements: the store's.
        conditions: what it asks of documents.
    """

    def __init__(self, execute: Execute, statements: Statements, conditions: Conditions) -> None:
        self._execute = execute
        self._statements = statements
        self.conditions = conditions
        self._sql = self._statements("documents")
        self.former = FormerContents(execute, statements("history"))

    @cached_property
    def now(self) -> str:
        """The moment of all that the transaction changes."""
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

    def beginning_with(self, doc_type: str, beginning: str) -> list[int]:
        parameters = {"doc_type": doc_type, "beginning": beginning}
        return [document_id for (document_id,) in self._execute(self._sql["select_beginning_with"], parameters)]

    def with_content(
        self, content_hash: str, source_path: str | None, *, note: bool, limit: Limit | None = None
    ) -> Document | None:
        parameters = {"content_hash": content_hash, "source_path": source_path, "note": note}
        ids = self._execute(self._sql["find_by_content"], parameters).fetchall()
        documents = filter(None, (self.get(document_id) for (document_id,) in ids))
        return next(
            (document for document in documents if limit is None or limit.admits(document.tags, document.source_path)),
            None,
        )

    def at_path(self, source_path: str) -> Document | None:
        """Return the oldest document with this path."""
        document_id: int | None = self._execute(self._sql["find_by_path"], {"source_path": source_path}).get
        return None if document_id is None else self.get(document_id)

    def named(self, tokens: Collection[str], most: int, limit: int, within: Limit | None = None) -> list[Named]:
        """Return at most `limit` documents with some of these words in their names, those of the rarest first.

        Words that more than `most` documents have in theirs are left out.
        """
        admitted = None if within is None else self.conditions.admitted(Filter(limit=within))
        return named(self._execute, self._statements("names"), tokens, most, limit, admitted)

    def write_names(self, limit: int) -> bool:
        return write_names(self._execute, self._statements("names"), self, limit)

    def has_successors(self) -> bool:
        return has_successors(self._execute, self._statements("replacements"))

    def successors(self, document_ids: Iterable[int]) -> dict[int, list[int]]:
        return successors(self._execute, self._statements("replacements"), document_ids)

    def add(
        self,
        content: Content,
        source_path: str | None,
        tags: Iterable[str],
        part_of: int | None = None,
        author: Author = NOBODY,
    ) -> int:
        """Write a new document."""
        note_operation(self._execute, self._statements("operations"), author, self.now)
        columns = _columns(content) | field_values(author) | {"now": self.now}
        document_id = self.insert_document(columns | {"source_path": source_path, "part_of": part_of})
        self.add_chunks(document_id, content)
        self.add_tags(document_id, tags)
        return document_id

    def replace(self, document_id: int, content: Content) -> None:
        before = self._execute(self._sql["select_kept"], {"id": document_id}).get
        self.remove_chunks(document_id)
        self.add_chunks(document_id, content)
        self._execute(self._sql["update_document"], _columns(content) | {"id": document_id, "now": self.now})
        self.drop_file(*before)

    def rename(self, document_id: int, filename: str) -> None:
        """The same file came in under another name."""
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
        """Delete a document, wherever it is, with its former versions and what came inside it, such as attachments.

        What came inside a document in the bin, and is not there with it, was restored by itself: it stays.
        """
        if self.get(document_id) is None:
            self._execute(self._sql["release_parts"], {"id": document_id})
        for part, _ in self.parts(document_id):
            self.delete(part)
        for (part,) in self._execute(
            self._statements("history")["select_binned_parts"], {"id": document_id}
        ).fetchall():
            self.delete(part)
        pass_on(self._execute, self._statements("replacements"), document_id, for_good=True)
        self._forget(document_id)
        self._execute(self._statements("jobs")["delete_parts"], {"id": document_id})
        self._execute(self._statements("jobs")["forget_document"], {"id": document_id, "for_good": True})
        if self.get(document_id):
            self.remove(document_id)

    def remove(self, document_id: int) -> None:
        """Remove the document itself, and tags nobody carries any more; its former versions stay."""
        self.remove_chunks(document_id)
        self.clear_tags(document_id)
        self.drop_file(*self._execute(self._sql["delete_document"], {"id": document_id}).get)
        self._execute(self._statements("jobs")["forget_document"], {"id": document_id, "for_good": False})

    def parts(self, document_id: int) -> list[tuple[int, str | None]]:
        rows: list[tuple[int, str | None]] = self._execute(self._sql["select_parts"], {"id": document_id}).fetchall()
        return rows

    def part_of(self, document_id: int) -> int | None:
        whole_id: int | None = self._execute(self._sql["select_whole"], {"id": document_id}).get
        return whole_id

    def change_tags(self, document_id: int, *, add: Iterable[str], remove: Iterable[str]) -> bool:
        """Remove, then add: a tag in both lists stays. Return whether the tags change."""
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

    def _is_file_needed(self, content_hash: str) -> bool:
        return bool(self._execute(self._sql["is_file_needed"], {"hash": content_hash}).get)

    def drop_file(self, content_hash: str, doc_type: str) -> None:
        """Note that a file lost its last document and former version, if it did."""
        if doc_type != "note" and not self._is_file_needed(content_hash):
            self._execute(self._sql["note_unneeded_file"], {"hash": content_hash})

    def _forget(self, document_id: int) -> None:
        """Delete the former versions of a document, in the bin or not."""
        sql = self._statements("history")
        for name in ("delete_binned", "delete_contents"):
            self._execute(sql[name], {"id": document_id})
        for file in self._execute(sql["delete_versions"], {"id": document_id}).fetchall():
            self.drop_file(*file)

    def _tags_of(self, document_id: int) -> set[str]:
        return {tag for (tag,) in self._execute(self._sql["select_tags_of"], {"id": document_id})}

    @abstractmethod
    def tags(self, limit: Limit | None = None) -> list[tuple[str, int]]: ...

    @abstractmethod
    def insert_document(self, columns: dict[str, object]) -> int:
        """Write a document without tags and chunks; return its id."""

    @abstractmethod
    def add_chunks(self, document_id: int, content: Content, ids: Sequence[int] | None = None) -> None:
        """Write the chunks of a document that has none, under new ids if none are given.

        Raises:
            ModelChanged: their vectors are of what was in use before.
        """

    @abstractmethod
    def remove_chunks(self, document_id: int) -> None:
        """Delete the chunks of a document, and keep them for a former version that held them."""

    @abstractmethod
    def add_tags(self, document_id: int, tags: Iterable[str]) -> None:
        """Add tags to a document."""

    @abstractmethod
    def remove_tags(self, document_id: int, tags: Iterable[str]) -> None:
        """Take tags from a document."""

    @abstractmethod
    def clear_tags(self, document_id: int) -> None:
        """Take all tags from a document that is about to be deleted."""

    @abstractmethod
    def name_tokens(self, document: Named) -> list[str]:
        """Return by which words a document is found."""

    @abstractmethod
    def insert_names(self, tokens: Sequence[tuple[int, str]]) -> None:
        """Write words of documents' names."""


def _columns(content: Content) -> dict[str, object]:
    return {
        "title": content.title,
        "doc_type": content.doc_type,
        "content_hash": content.content_hash,
        "date": content.date,
        "own_day": own_day(content.date),
        "own_tags": list(content.own_tags),
        "filename": content.filename or None,
        "title_given": content.title_given,
        "replaces": content.replaces,
        "omitted": counts(content.omitted),
        "language": content.language,
        **said(content),
    }
