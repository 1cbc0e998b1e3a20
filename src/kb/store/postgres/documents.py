"""Documents with their tags and chunks, in SQL."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from kb.api.errors import ModelChanged
from kb.api.own_day import own_day
from kb.store.postgres.document_query import admitted, page_of
from kb.store.postgres.former_content import FormerContents
from kb.store.postgres.names import named, write_names
from kb.store.postgres.replacements import has_successors, pass_on, successors
from kb.store.postgres.statements import statements
from kb.store.row_mapping import (
    Execute,
    chunk_of,
    chunk_place_of,
    counts,
    document_of,
    field_values,
    mapped,
    raw,
)
from kb.store.rows import NOBODY, Extent, Filter
from kb.store.sql.operations import note_operation

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from kb.api.access import Limit
    from kb.api.models import Sort
    from kb.store.postgres.connection import Connection
    from kb.store.postgres.vectors import VectorTable
    from kb.store.postgres.words import FullText, NewText
    from kb.store.rows import Author, Chunk, ChunkPlace, Content, Document, Named


NO_SECTION: tuple[str, tuple[str, ...]] = "", ()
"""The header and the headings of a chunk that stands under nothing."""


class PostgresDocuments:
    """See `kb.store.protocol.Documents`. Remembers whether its transaction `changed` chunks.

    Args:
        connection: the transaction's.
        words: its full text.
        vectors: its vectors.
        checkpoint: called between chunks that are written.
    """

    def __init__(
        self,
        connection: Connection,
        words: FullText,
        vectors: VectorTable,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        self._connection = connection
        self._execute: Execute = connection.execute
        self._words = words
        self._checkpoint = checkpoint
        self._vectors = vectors
        self._sql = statements("documents")
        self.former = FormerContents(self._execute)
        self.changed = False

    @cached_property
    def now(self) -> str:
        """The moment of all that the transaction changes."""
        stamp: str = self._execute(self._sql["select_now"]).get
        return stamp

    def get(self, document_id: int) -> Document | None:
        """Return the document, if there is one."""
        return next(iter(self._documents("id = %s", (document_id,))), None)

    def chunks(self, document_id: int, start: int = 0, limit: int | None = None) -> list[Chunk]:
        """Return a document's chunks in order, from the one with the index `start` on."""
        return mapped(chunk_of, self._execute(self._sql["select_chunks"], (document_id, start, limit)))

    def chunks_between(self, document_id: int, start: int, end: int) -> list[Chunk]:
        """Return the chunks that hold some of the characters from `start` to before `end`, in order."""
        return mapped(chunk_of, self._execute(self._sql["select_chunks_between"], (document_id, start, end)))

    def chunk_places(self, document_id: int) -> list[ChunkPlace]:
        """Return where a document's chunks stand, in order."""
        return mapped(chunk_place_of, self._execute(self._sql["select_chunk_places"], (document_id,)))

    def chunk_ids(self, document_ids: Sequence[int], most: int) -> list[tuple[int, int]]:
        """Return at most so many chunks of each of these documents, the first ones, with the document before each."""
        found: list[tuple[int, int]] = self._execute(
            self._sql["select_first_chunks"], (list(document_ids), most)
        ).fetchall()
        return found

    def extent(self, document_id: int) -> Extent:
        """Return how much there is of a document."""
        return Extent(*self._execute(self._sql["select_extent"], (document_id,)).get)

    def page(self, where: Filter, *, sort: Sort, limit: int, cursor: str | None) -> list[Document]:
        """Documents after `cursor`: by ascending id, or the most recently changed first."""
        rest, parameters = page_of(self._words, where, sort, cursor)
        return self._documents(f"{rest} LIMIT %s", (*parameters, limit))

    def count(self, where: Filter) -> int:
        """Return how many documents there are on all pages."""
        condition, parameters = admitted(self._words, where)
        count: int = self._execute(self._sql["count_documents"].format(condition=condition), parameters).get
        return count

    def beginning_with(self, doc_type: str, beginning: str) -> list[int]:
        """Return the documents of a type whose first chunk begins so."""
        wanted = {"doc_type": doc_type, "beginning": beginning}
        return [document_id for (document_id,) in self._execute(self._sql["select_beginning_with"], wanted)]

    def with_content(
        self, content_hash: str, source_path: str | None, *, note: bool, limit: Limit | None = None
    ) -> Document | None:
        """Return the oldest note, or else file, that holds this content under this path."""
        wanted = {"content_hash": content_hash, "source_path": source_path, "note": note}
        ids = self._execute(self._sql["find_by_content"], wanted).fetchall()
        documents = filter(None, (self.get(document_id) for (document_id,) in ids))
        return next((each for each in documents if limit is None or limit.admits(each.tags, each.source_path)), None)

    def at_path(self, source_path: str) -> Document | None:
        """Return the oldest document with this path."""
        return self._found(self._execute(self._sql["find_by_path"], (source_path,)).get)

    def named(self, tokens: Collection[str], most: int, limit: int, within: Limit | None = None) -> list[Named]:
        """Return at most `limit` documents with some of these words in their names, those of the rarest first.

        Words that more than `most` documents have in theirs are left out.
        """
        condition = None if within is None else admitted(self._words, Filter(limit=within))
        return named(self._execute, tokens, most, limit, condition)

    def write_names(self, limit: int) -> bool:
        """Write the names of at most so many documents that changed; return whether there are more."""
        return write_names(self._execute, self._words.tokenizer, limit)

    def has_successors(self) -> bool:
        """Return whether any document replaces another one, or ever did."""
        return has_successors(self._execute)

    def successors(self, document_ids: Iterable[int]) -> dict[int, list[int]]:
        """Return what replaced each of these documents, directly or in turn, and is there; the nearest first."""
        return successors(self._execute, document_ids)

    def add(
        self,
        content: Content,
        source_path: str | None,
        tags: Iterable[str],
        part_of: int | None = None,
        author: Author = NOBODY,
    ) -> int:
        """Write a new document."""
        note_operation(self._execute, statements("operations"), author, self.now)
        columns = _columns(content) | field_values(author) | {"now": self.now}
        columns |= {"source_path": source_path, "part_of": part_of}
        document_id: int = self._execute(self._sql["insert_document"], columns).get
        self.add_chunks(document_id, content)
        self.add_tags(document_id, tags)
        return document_id

    def replace(self, document_id: int, content: Content) -> None:
        """Replace what the document holds; it keeps its id, path, tags and `created_at`."""
        before = self._execute(self._sql["select_kept"], (document_id,)).get
        self._remove_chunks(document_id)
        self.add_chunks(document_id, content)
        self._execute(self._sql["update_document"], _columns(content) | {"id": document_id, "now": self.now})
        self.drop_file(*before)

    def rename(self, document_id: int, filename: str) -> None:
        """The same file came in under another name."""
        self._execute(self._sql["update_filename"], (filename, document_id))

    def stamp(self, document_id: int, updated_at: str | None) -> None:
        """Set when the document was changed last."""
        stamp = raw(updated_at) if updated_at else None
        self._execute(self._sql["stamp_document"], (stamp, document_id))

    def move(self, document_id: int, source_path: str | None) -> None:
        """Set where the document comes from; the paths of what came in its file begin with that one."""
        before = self._execute(self._sql["select_source_path"], (document_id,)).get or ""
        self._execute(self._sql["update_source_path"], (source_path, document_id))
        for part, path in self._execute(self._sql["select_parts"], (document_id,)).fetchall():
            if path and path.startswith(before):
                self.move(part, (source_path or "") + path[len(before) :])

    def delete(self, document_id: int) -> None:
        """Delete a document, wherever it is, with its former versions and what came inside it, such as attachments.

        What came inside a document in the bin, and is not there with it, was restored by itself: it stays.
        """
        if self.get(document_id) is None:
            self._execute(self._sql["release_parts"], (document_id,))
        for part, _ in self.parts(document_id):
            self.delete(part)
        for (part,) in self._execute(statements("history")["select_binned_parts"], (document_id,)).fetchall():
            self.delete(part)
        pass_on(self._execute, document_id, for_good=True)
        self._forget(document_id)
        self._execute(statements("jobs")["delete_parts"], (document_id,))
        self._execute(statements("jobs")["forget_document"], {"id": document_id, "for_good": True})
        if self.get(document_id):
            self.remove(document_id)

    def remove(self, document_id: int) -> None:
        """Remove the document itself, and tags nobody carries any more; its former versions stay."""
        self._remove_chunks(document_id)
        self.drop_file(*self._execute(self._sql["delete_document"], (document_id,)).get)
        self._execute(statements("jobs")["forget_document"], {"id": document_id, "for_good": False})

    def parts(self, document_id: int) -> list[tuple[int, str | None]]:
        """Return the ids and paths of the documents that came inside this one."""
        found: list[tuple[int, str | None]] = self._execute(self._sql["select_parts"], (document_id,)).fetchall()
        return found

    def part_of(self, document_id: int) -> int | None:
        """Return the document that this one came inside."""
        found: int | None = self._execute(self._sql["select_whole"], (document_id,)).get
        return found

    def change_tags(self, document_id: int, *, add: Iterable[str], remove: Iterable[str]) -> bool:
        """Remove, then add: a tag in both lists stays. Return whether the tags change."""
        before = self._tags_of(document_id)
        self._execute(self._sql["untag_document"], (document_id, list(set(remove) - set(add))))
        self.add_tags(document_id, add)
        is_changed = self._tags_of(document_id) != before
        if is_changed:
            self._execute(self._sql["touch_document"], (self.now, document_id))
        return is_changed

    def tags(self, limit: Limit | None = None) -> list[tuple[str, int]]:
        """Return every tag in use with the number of its documents, in alphabetical order."""
        condition, parameters = admitted(self._words, Filter(limit=limit))
        sql = self._sql["select_tags"].format(condition=condition)
        rows: list[tuple[str, int]] = self._execute(sql, parameters).fetchall()
        return rows

    def take_unneeded_files(self) -> list[str]:
        """Return the hashes of the files that lost their last document; they are not noted any more after this."""
        noted = self._execute(self._sql["take_unneeded_files"]).fetchall()
        return [hash_ for (hash_,) in noted if not self._is_file_needed(hash_)]

    def file_hashes(self) -> set[str]:
        """Return the hashes of the files that documents came from."""
        return {hash_ for (hash_,) in self._execute(self._sql["select_file_hashes"])}

    def _is_file_needed(self, content_hash: str) -> bool:
        return bool(self._execute(self._sql["is_file_needed"], {"hash": content_hash}).get)

    def drop_file(self, content_hash: str, doc_type: str) -> None:
        """Note that a file lost its last document and former version, if it did."""
        if doc_type != "note" and not self._is_file_needed(content_hash):
            self._execute(self._sql["note_unneeded_file"], (content_hash,))

    def _forget(self, document_id: int) -> None:
        """Delete the former versions of a document, in the bin or not."""
        sql = statements("history")
        for name in ("delete_binned", "delete_contents"):
            self._execute(sql[name], (document_id,))
        for file in self._execute(sql["delete_versions"], (document_id,)).fetchall():
            self.drop_file(*file)

    def _documents(self, condition: str, parameters: tuple[object, ...]) -> list[Document]:
        sql = self._sql["select_documents"].format(condition=condition)
        return mapped(document_of, self._execute(sql, parameters))

    def _found(self, document_id: int | None) -> Document | None:
        return None if document_id is None else self.get(document_id)

    def add_chunks(self, document_id: int, content: Content, ids: Sequence[int] | None = None) -> None:
        """Write the chunks of a document that has none, under new ids if none are given.

        Raises:
            ModelChanged: their vectors are of what was in use before.
        """
        if content.space not in (None, self._vectors.space):
            raise ModelChanged
        self.changed = True
        if ids is None:
            ids = [chunk_id for (chunk_id,) in self._execute(self._sql["take_chunk_ids"], (len(content.chunks),))]
        sections: dict[tuple[str, tuple[str, ...]], int | None] = {NO_SECTION: None}
        rows: list[dict[str, Any]] = []
        vectors: list[tuple[int, int, Any]] = []
        texts: list[NewText] = []
        for index, (chunk_id, chunk, vector) in enumerate(zip(ids, content.chunks, content.vectors, strict=True)):
            self._checkpoint()
            text = self._words.new_text(chunk_id, document_id, chunk.text, chunk.header, content.language)
            columns = field_values(chunk.place) | {"id": chunk_id, "document_id": document_id, "index": index}
            section = chunk.header, chunk.place.heading
            if section not in sections:
                parameters = document_id, chunk.header, list(chunk.place.heading)
                sections[section] = self._execute(self._sql["insert_section"], parameters).get
            columns |= {"text": chunk.text, "section_id": sections[section], "length": text.length}
            rows.append(columns)
            vectors.append((chunk_id, document_id, vector))
            texts.append(text)
        with self._connection.cursor() as cursor:
            cursor.executemany(self._sql["insert_chunk"], rows)
            cursor.executemany(self._sql["insert_vector"].format(vectors=self._vectors.name), vectors)
        self._words.add(texts)
        precision = (content.space or self._vectors.space).precision
        self._execute(statements("vectors")["count_precision"], (precision, len(ids)))

    def _remove_chunks(self, document_id: int) -> None:
        if self.former.is_missing(document_id):
            self.former.keep(document_id, self.chunks(document_id))
        self.changed = True
        self._words.remove(document_id)
        self._execute(self._sql["delete_chunks"], {"id": document_id})

    def _tags_of(self, document_id: int) -> set[str]:
        return {name for (name,) in self._execute(self._sql["select_tags_of"], (document_id,))}

    def add_tags(self, document_id: int, tags: Iterable[str]) -> None:
        """Add tags to a document."""
        self._execute(self._sql["tag_document"], (document_id, list(tags)))


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
        "source": content.source,
        "replaces": content.replaces,
        "omitted": counts(content.omitted),
        "language": content.language,
    }
