"""Documents with their tags and chunks, in SQL."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import apsw
import numpy as np

from kb import clock
from kb.api.errors import ModelChanged
from kb.lexical.segment import segmented, varied
from kb.store.row_mapping import (
    Execute,
    array,
    chunk_of,
    chunk_place_of,
    counts,
    document_of,
    field_values,
    mapped,
    moment,
    next_ids,
    raw,
)
from kb.store.rows import NOBODY, Extent, Filter
from kb.store.sql.operations import note_operation
from kb.store.sqlite.document_query import admitted, count, page_of
from kb.store.sqlite.former_content import FormerContents
from kb.store.sqlite.names import named, write_names
from kb.store.sqlite.replacements import has_successors, pass_on, successors
from kb.store.sqlite.statements import statements

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from numpy.typing import NDArray

    from kb.api.access import Limit
    from kb.api.models import Sort
    from kb.store.rows import Author, Chunk, ChunkPlace, Content, Document, Named, NewChunk, VectorSpace
    from kb.store.sqlite.schema import VectorTable


NO_SECTION = "", "[]"
"""The header and the headings of a chunk that stands under nothing."""


class SqliteDocuments:
    """See `kb.store.protocol.Documents`. Remembers which vectors its transaction `added` and `removed`."""

    def __init__(
        self,
        connection: apsw.Connection,
        table: VectorTable,
        checkpoint: Callable[[], None] = lambda: None,
        space: VectorSpace | None = None,
    ) -> None:
        self._execute: Execute = connection.execute
        self._connection = connection
        self._table = table
        self._checkpoint = checkpoint
        self._space = space
        self._sql = statements("documents")
        self.former = FormerContents(connection.execute)
        self.added: list[tuple[int, NDArray[np.float32]]] = []
        self.removed: list[int] = []

    @cached_property
    def now(self) -> str:
        """The moment of all that the transaction changes."""
        return moment(clock.own.now())

    def get(self, document_id: int) -> Document | None:
        """Return the document, if there is one."""
        return next(iter(self._documents("documents", "id = ?", (document_id,))), None)

    def chunks(self, document_id: int, start: int = 0, limit: int | None = None) -> list[Chunk]:
        """Return a document's chunks in order, from the one with the index `start` on."""
        count = -1 if limit is None else limit
        return mapped(chunk_of, self._execute(self._sql["select_chunks"], (document_id, start, count)))

    def chunks_between(self, document_id: int, start: int, end: int) -> list[Chunk]:
        """Return the chunks that hold some of the characters from `start` to before `end`, in order."""
        return mapped(chunk_of, self._execute(self._sql["select_chunks_between"], (document_id, start, end)))

    def chunk_places(self, document_id: int) -> list[ChunkPlace]:
        """Return where a document's chunks stand, in order."""
        return mapped(chunk_place_of, self._execute(self._sql["select_chunk_places"], (document_id,)))

    def chunk_ids(self, document_ids: Sequence[int], most: int) -> list[tuple[int, int]]:
        """Return at most so many chunks of each of these documents, the first ones, with the document before each."""
        if not document_ids:  # which carray refuses
            return []
        wanted = np.array(document_ids, np.int64)
        pairs: list[tuple[int, int]] = self._execute(
            self._sql["select_first_chunks"], (apsw.carray(wanted), most)
        ).fetchall()
        return pairs

    def extent(self, document_id: int) -> Extent:
        """Return how much there is of a document."""
        return Extent(*self._execute(self._sql["select_extent"], (document_id,)).get)

    def page(self, where: Filter, *, sort: Sort, limit: int, cursor: str | None) -> list[Document]:
        """Documents after `cursor`: by ascending id, or the most recently changed first."""
        wanted = page_of(self._execute, where, sort, cursor)
        if wanted is None:
            return []
        return self._documents(wanted.source, f"{wanted.rest} LIMIT ?", (*wanted.parameters, limit))

    def count(self, where: Filter) -> int:
        """Return how many documents there are on all pages."""
        return count(self._execute, where)

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
        return named(self._execute, tokens, most, limit, within)

    def write_names(self, limit: int) -> bool:
        """Write the names of at most so many documents that changed; return whether there are more."""
        return write_names(self._connection, limit)

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
        [document_id] = next_ids(self._execute, self._sql["take_document_ids"], 1)
        columns = _columns(content) | field_values(author) | {"id": document_id, "now": self.now}
        self._execute(self._sql["insert_document"], columns | {"source_path": source_path, "part_of": part_of})
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
        self._execute("UPDATE documents SET updated_at = ? WHERE id = ?", (stamp, document_id))

    def move(self, document_id: int, source_path: str | None) -> None:
        """Set where the document comes from; the paths of what came in its file begin with that one."""
        before = self._execute("SELECT source_path FROM documents WHERE id = ?", (document_id,)).get or ""
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
        tags = self._execute(self._sql["clear_tags_of"], (document_id,)).fetchall()
        self.drop_file(*self._execute(self._sql["delete_document"], (document_id,)).get)
        self._execute(statements("jobs")["forget_document"], {"id": document_id, "for_good": False})
        self._drop_unused_tags(tag_id for (tag_id,) in tags)

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
        self._remove_tags(document_id, set(remove) - set(add))
        self.add_tags(document_id, add)
        is_changed = self._tags_of(document_id) != before
        if is_changed:
            self._execute(self._sql["touch_document"], (self.now, document_id))
        return is_changed

    def tags(self, limit: Limit | None = None) -> list[tuple[str, int]]:
        """Return every tag in use with the number of its documents, in alphabetical order."""
        condition, parameters = admitted(self._execute, Filter(limit=limit))
        sql = self._sql["select_tags"] if limit is None else self._sql["select_tags_among"].format(condition=condition)
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

    def _documents(self, source: str, condition: str, parameters: tuple[object, ...]) -> list[Document]:
        sql = self._sql["select_documents"].format(source=source, condition=condition)
        return mapped(document_of, self._execute(sql, parameters))

    def _found(self, document_id: int | None) -> Document | None:
        return None if document_id is None else self.get(document_id)

    def add_chunks(self, document_id: int, content: Content, ids: Sequence[int] | None = None) -> None:
        """Write the chunks of a document that has none, under new ids if none are given.

        Raises:
            ModelChanged: their vectors are of what was in use before.
        """
        if content.space not in (None, self._space):
            raise ModelChanged
        if ids is None:
            ids = next_ids(self._execute, self._sql["take_chunk_ids"], len(content.chunks))
        self.insert_chunks(document_id, zip(ids, content.chunks, strict=True), content.language)
        for chunk_id, vector in zip(ids, content.vectors, strict=True):
            self._execute(self._table.insert, (chunk_id, vector.tobytes()))
            self.added.append((chunk_id, vector))
        if space := content.space or self._space:
            self._execute(statements("vectors")["count_precision"], (space.precision, len(ids)))

    def insert_chunks(
        self, document_id: int, chunks: Iterable[tuple[int, NewChunk | Chunk]], language: str | None
    ) -> None:
        """Write the chunks of a document in a language that has none, under these ids, without their vectors."""
        sections: dict[tuple[str, str], int | None] = {NO_SECTION: None}
        for index, (chunk_id, chunk) in enumerate(chunks):
            self._checkpoint()
            columns = field_values(chunk.place) | {"id": chunk_id, "document_id": document_id, "index": index}
            section = chunk.header, array(chunk.place.heading)
            if section not in sections:
                indexed = segmented(chunk.header), varied(chunk.header, language)
                sections[section] = self._execute(self._sql["insert_section"], (document_id, *section, *indexed)).get
            columns |= {"text": chunk.text, "segmented": segmented(chunk.text)}
            columns |= {"variants": varied(chunk.text, language)}
            columns |= {"section_id": sections[section]}
            self._execute(self._sql["insert_chunk"], columns)

    def _remove_chunks(self, document_id: int) -> None:
        if self.former.is_missing(document_id):
            self.former.keep(document_id, self.chunks(document_id))
        ids = [row[0] for row in self._execute(self._sql["select_chunk_ids"], (document_id,))]
        self._connection.executemany(self._table.delete, [(id_,) for id_ in ids])
        self._execute(self._sql["delete_chunks"], (document_id,))
        self._execute(self._sql["delete_sections"], (document_id,))
        self.removed += ids

    def _tags_of(self, document_id: int) -> set[str]:
        return {name for (name,) in self._execute(self._sql["select_tags_of"], (document_id,))}

    def add_tags(self, document_id: int, tags: Iterable[str]) -> None:
        """Add tags to a document."""
        for tag in tags:
            self._execute(self._sql["insert_tag"], (tag,))
            self._execute(self._sql["tag_document"], (document_id, tag))

    def _remove_tags(self, document_id: int, tags: Iterable[str]) -> None:
        for tag in tags:
            removed = self._execute(self._sql["untag_document"], (document_id, tag)).fetchall()
            self._drop_unused_tags(tag_id for (tag_id,) in removed)

    def _drop_unused_tags(self, tag_ids: Iterable[int]) -> None:
        for tag_id in tag_ids:
            self._execute(self._sql["delete_unused_tag"], (tag_id,))


def _columns(content: Content) -> dict[str, object]:
    return {
        "title": content.title,
        "doc_type": content.doc_type,
        "content_hash": content.content_hash,
        "date": content.date,
        "own_tags": array(content.own_tags),
        "filename": content.filename or None,
        "title_given": content.title_given,
        "source": content.source,
        "replaces": content.replaces,
        "omitted": counts(content.omitted),
        "language": content.language,
    }
