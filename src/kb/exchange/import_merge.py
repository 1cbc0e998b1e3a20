"""Import an export into a database that already has documents."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kb.api.fields import NOTE
from kb.documents.originals import Originals
from kb.documents.replaced_notes import rival_successors
from kb.documents.write_document import merge
from kb.embed.protocol import Embedder
from kb.exchange.export_folder import ExportedDocument, ExportFolder, Imported, slices
from kb.ingest.chunk import Chunker
from kb.store.rows import Content, Document
from kb.store.sqlite.import_rows import (
    add_binned,
    add_exact,
    add_former_content,
    add_version,
    find_binned,
    set_replaced,
    skip_ids,
)
from kb.store.sqlite.store import SqliteStore, SqliteTransaction

NOT_THERE: Final = 0
"""An id that no document has."""


def merge_export(
    store: SqliteStore,
    export: ExportFolder,
    embedder: Embedder,
    originals: Originals,
    on_documents: Callable[[int], None],
) -> Imported:
    """Add new documents of an export, and merge the others with existing ones.

    A document with the same content and path as an existing one is merged with it, and gets the tags of both. A
    document with other content at the same path replaces the existing content, as if it were added. Two documents of
    the export never become one. All others are added with their times, and keep their ids if neither the id nor a
    higher one was ever assigned.

    Raises:
        StoreError: a file is damaged, or the database refuses a document.
    """
    chunker, merging = Chunker(embedder), _Merge()
    for part in slices(export):
        inputs = [chunker.passage(chunk.header, chunk.text) for document in part for chunk in document.chunks]
        vectors = embedder.embed_passages(inputs)
        export.keep_files(originals, (state for document in part for state in document.states))
        with store.write() as tx, tx.transfer.translated_errors("a document"):
            merging.write(tx, part, vectors)
        on_documents(merging.imported.added + merging.imported.there)
    with store.write() as tx, tx.transfer.translated_errors("a document"):
        merging.link(tx)
        skip_ids(tx, export.about.last_document_id)
    return merging.imported


class _Merge:
    """Writes documents, and maps exported ids to ids in the database."""

    def __init__(self) -> None:
        self.imported = Imported()
        self._ids: dict[int, int] = {}
        self._met: set[int] = set()
        self._in_bin: set[int] = set()
        self._unlinked: dict[int, int] = {}
        self._linked: set[int] = set()

    def write(self, tx: SqliteTransaction, part: Sequence[ExportedDocument], vectors: NDArray[np.float32]) -> None:
        """Write new documents, or merge them with existing ones."""
        ends = np.cumsum([len(document.chunks) for document in part])[:-1]
        for document, own in zip(part, np.split(vectors, ends), strict=True):
            content = replace(document.content(own), replaces=self._became(document.document.replaces))
            document_id = self._discarded(tx, document) if document.binned else self._save(tx, document, content)
            if document_id is not None:
                self._add_versions(tx, document, document_id)

    def link(self, tx: SqliteTransaction) -> None:
        """Add links to replaced notes that came later in the export."""
        for document_id, exported in self._unlinked.items():
            replaces = self._became(exported)
            if replaces and self._may_link(tx, document_id, replaces):
                set_replaced(tx, document_id, replaces)
                self._linked.add(document_id)

    def _may_link(self, tx: SqliteTransaction, document_id: int, replaces: int) -> bool:
        """Return whether a document may replace another; only links of this import may conflict or form a cycle."""
        behind = tx.documents.successors([document_id]).get(document_id, [])
        in_the_way = rival_successors(tx, document_id, replaces).union({replaces}.intersection(behind))
        return in_the_way.issubset(self._linked)

    def _discarded(self, tx: SqliteTransaction, document: ExportedDocument) -> int | None:
        """Add a document in the bin, unless it exists; return its id if it is new."""
        assert document.binned  # noqa: S101 - checked by the caller
        assert document.binned.binned  # noqa: S101 - checked by the caller
        known_id = next((id_ for id_ in find_binned(tx, document.binned) if id_ not in self._in_bin), None)
        if known_id is None:
            self.imported.added += 1
            became = add_binned(tx, document.binned, self._became(document.binned.binned.part_of))
        else:
            self.imported.there += 1
            became = known_id
        self._ids[document.document.id] = became
        self._in_bin.add(became)
        return became if known_id is None else None

    def _add_versions(self, tx: SqliteTransaction, document: ExportedDocument, document_id: int) -> None:
        contents = dict[int, int]()
        for former in document.former:
            number = former.version.number
            if former.chunks is not None:
                contents[number] = add_former_content(tx, document_id, former.chunks)
            content_id = contents.get(number if former.chunks_of is None else former.chunks_of)
            replaces = self._became(former.version.document.replaces)
            add_version(tx, document_id, former, self._became(former.part_of), content_id, replaces)

    def _became(self, exported: int | None) -> int | None:
        """Return the id that an exported document has in the database."""
        return self._ids.get(exported) if exported else None

    def _save(self, tx: SqliteTransaction, exported: ExportedDocument, content: Content) -> int | None:
        """Write a document, or merge it with an existing one; return its id if it is new."""
        document, part_of = exported.document, self._ids.get(exported.part_of or 0)
        is_note = document.doc_type == NOTE
        alike = tx.documents.all_with_content(document.content_hash, document.source_path, note=is_note)
        if same := [candidate for candidate in alike if candidate.id not in self._met]:
            twin = min(same, key=partial(_unlikeness, document))
            self._merge(tx, document, content, twin, [*document.tags, *twin.tags], is_same=True)
            return None
        at_path = tx.documents.at_path(document.source_path) if document.source_path else None
        if at_path is None or at_path.id in self._met:
            self.imported.added += 1
            placed = self._placed(tx, NOT_THERE, content)
            added = add_exact(tx, document, placed, part_of, exported.number, exported.author)
            self._met.add(added)
            self._ids[document.id] = added
            self._link_later(added, document, placed)
            return added
        self.imported.replaced += 1
        self._merge(tx, document, content, at_path, document.tags, is_same=False)
        return None

    def _placed(self, tx: SqliteTransaction, document_id: int, content: Content) -> Content:
        """Return the content, without its link to a replaced note if existing links forbid it."""
        if content.replaces is None or self._may_link(tx, document_id, content.replaces):
            return content
        return replace(content, replaces=None)

    def _link_later(self, document_id: int, document: Document, content: Content) -> None:
        """Remember a link to a document that comes later, or that this link is from the export."""
        if content.replaces is not None:
            self._linked.add(document_id)
        elif document.replaces:
            self._unlinked[document_id] = document.replaces

    def _merge(
        self,
        tx: SqliteTransaction,
        document: Document,
        content: Content,
        twin: Document,
        tags: Sequence[str],
        *,
        is_same: bool,
    ) -> None:
        self.imported.there += 1
        self.imported.tagged += not set(document.tags).issubset(twin.tags)
        self._met.add(twin.id)
        self._ids[document.id] = twin.id
        placed = self._placed(tx, twin.id, content)
        merge(tx, twin, placed, tags, is_same=is_same)
        if twin.replaces is None or placed.replaces is not None:
            self._link_later(twin.id, document, placed)


def _unlikeness(document: Document, twin: Document) -> tuple[bool, bool, int]:
    """Return a sort key for documents with the same content: the lowest is the most likely match."""
    return twin.created_at != document.created_at, not set(document.tags).issubset(twin.tags), twin.id
