"""Restore a document: to an earlier version, or from the bin."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from kb.api.errors import NotInBin, Occupied
from kb.documents.if_match import check_match
from kb.documents.lookup import existing_document, existing_version, missing_document
from kb.documents.originals import Originals
from kb.documents.replaced_notes import drop_taken_link
from kb.documents.vectors_by_job import await_vectors
from kb.index.words.language import guessed
from kb.ingest.draft import NO_VECTORS, body_hash_of
from kb.store.protocol import Store, Transaction
from kb.store.rows import (
    NOBODY,
    Author,
    Binned,
    Chunk,
    Content,
    Document,
    NewChunk,
    Version,
    content_fields,
)


def revert(
    store: Store,
    originals: Originals,
    document_id: int,
    number: int,
    *,
    if_match: Collection[str] | None = None,
    author: Author = NOBODY,
    checkpoint: Callable[[], None] = lambda: None,
    check: Callable[[Transaction], None] = lambda _: None,
    together: Collection[int] = (),
) -> Document:
    """Return a document to one of its versions; return it. The versions in between stay.

    The link to a replaced note is dropped if another note replaces it now. `check` may raise before the change;
    `together` are the documents restored along with this one.

    Raises:
        NotFound: the document or version does not exist.
        Changed: the `content_hash` is not in `if_match`.
        Occupied: another document has the path of that version.
    """
    author = replace(author, why=author.why or f"reverted to version {number}")
    with store.read() as tx:
        check_match(existing_document(tx, document_id), if_match)
        version = existing_version(tx, document_id, number)
        chunks = tx.history.chunks(version)
    content = stored_content(version.document, chunks)
    with store.write(checkpoint) as tx:
        document = existing_document(tx, document_id)
        check_match(document, if_match)
        check(tx)
        _write(tx, document, version, drop_taken_link(tx, document_id, content, together), author)
        await_vectors(tx, document_id, author)
        document = existing_document(tx, document_id)
    originals.sweep(store)
    return document


def restore(
    store: Store,
    document_id: int,
    author: Author = NOBODY,
    *,
    checkpoint: Callable[[], None] = lambda: None,
    check: Callable[[Transaction], None] = lambda _: None,
    together: Collection[int] = (),
) -> Document:
    """Restore a document from the bin, with the attachments deleted along with it; return it.

    The link to a replaced note is dropped if another note replaces it now. `check` may raise before the change;
    `together` are the documents restored along with this one.

    Raises:
        NotFound: the document does not exist.
        NotInBin: the document is not deleted.
        Occupied: another document has its path.
    """
    author = replace(author, why=author.why or "restored from the bin")
    with store.read() as tx:
        deleted = [(binned, _chunks(tx, binned)) for binned in _deleted_together(tx, document_id)]
    contents = [stored_content(binned.document, chunks) for binned, chunks in deleted]
    with store.write(checkpoint) as tx:
        document = _binned(tx, document_id).document
        _check_place(tx, document)
        check(tx)
        if document.source_path is not None:
            tx.folders.let_in(document.source_path)
        for (binned, _), content in zip(deleted, contents, strict=True):
            if tx.history.binned(binned.document.id) == binned and not _occupant(tx, binned.document):
                placed = drop_taken_link(tx, binned.document.id, content, together)
                tx.history.restore(binned.document.id, placed, author)
                await_vectors(tx, binned.document.id, author)
                tx.jobs.retry_parts(binned.document.id)
        return existing_document(tx, document_id)


def stored_content(document: Document, chunks: Sequence[Chunk]) -> Content:
    """Return the content that a document had with these chunks, without vectors."""
    made = {
        "chunks": [NewChunk(chunk.text, chunk.header, chunk.place) for chunk in chunks],
        "vectors": NO_VECTORS,
        "language": guessed([chunk.text for chunk in chunks]),
        "body_hash": body_hash_of(document.doc_type, chunks),
    }
    return Content(**content_fields(document) | made)


def is_same_content(one: Document, other: Document) -> bool:
    """Return whether two states of a document differ at most in their tags; the language follows from the text."""
    return _content(one) == _content(other)


def _content(document: Document) -> Document:
    return replace(document, tags=(), updated_at=None, language=None)


def _write(tx: Transaction, document: Document, version: Version, content: Content, author: Author) -> None:
    former, tags = version.document, version.document.tags
    # A part of another document keeps the path that follows from that document.
    is_moved = former.source_path != document.source_path and tx.documents.part_of(document.id) is None
    becomes = replace(former, replaces=content.replaces)
    is_same = is_same_content(replace(document, source_path=former.source_path), becomes)
    if not is_moved and is_same and set(tags) == set(document.tags):
        return
    if is_moved:
        _check_place(tx, former)
    tx.history.keep(document.id, author)
    if not is_same:
        tx.documents.replace(document.id, content)
    if is_moved:
        tx.documents.move(document.id, former.source_path)
    tx.documents.change_tags(document.id, add=tags, remove=set(document.tags).difference(tags))


def _binned(tx: Transaction, document_id: int) -> Binned:
    binned = tx.history.binned(document_id)
    if binned is None and tx.documents.get(document_id):
        raise NotInBin(f"Document {document_id} is not in the bin.")
    if binned is None:
        raise missing_document(tx, document_id)
    return binned


def _deleted_together(tx: Transaction, document_id: int) -> list[Binned]:
    """Return a document in the bin, followed by its parts that were deleted with it."""
    binned = _binned(tx, document_id)
    parts = [part for id_ in tx.history.parts_in_bin(document_id) if (part := tx.history.binned(id_))]
    together = [part for part in parts if part.deleted_at == binned.deleted_at]
    return [binned, *(binned for part in together for binned in _deleted_together(tx, part.document.id))]


def _chunks(tx: Transaction, binned: Binned) -> list[Chunk]:
    return tx.history.chunks(existing_version(tx, binned.document.id, binned.number))


def _check_place(tx: Transaction, document: Document) -> None:
    if occupant := _occupant(tx, document):
        raise Occupied(
            f"Document {occupant.id} now has the path {document.source_path}. Delete that document first.",
            extra={"document_id": occupant.id},
        )


def _occupant(tx: Transaction, document: Document) -> Document | None:
    """Return the document that now has the path of a deleted or earlier one."""
    return None if document.source_path is None else tx.documents.at_path(document.source_path)
