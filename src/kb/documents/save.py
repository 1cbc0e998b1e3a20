"""What happens when content meets what is there already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.api.errors import Changed, NotANote, NotFound
from kb.ingest.draft import NOTE, draft_note, with_vectors

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from kb.embed.protocol import Embedder
    from kb.store.protocol import Store, Transaction
    from kb.store.rows import Chunk, Content, Document


def save(
    tx: Transaction,
    content: Content,
    source_path: str | None,
    tags: Sequence[str],
    *,
    part_of: int | None = None,
) -> int:
    """Write content that came in; answers the document's id (requirement E-11).

    The same content under the same path is the same document, whose tags grow; new content under a known path, or a
    new title, replaces what the document there holds, and the tags that only the old content asked for go; everything
    else is a new document. `part_of` is the document whose file the content came in.
    """
    outdated: set[str] = set()
    tags = [*tags, *content.own_tags]
    known = tx.documents.with_content(content.content_hash, source_path, note=content.doc_type == NOTE)
    is_new = known is None or (content.title_given and known.title != content.title)
    if known is None and source_path is not None:
        known = tx.documents.at_path(source_path)
    if known is None:
        return tx.documents.add(content, source_path, tags, part_of)
    if is_new:
        tx.documents.replace(known.id, content)
        outdated = set(known.own_tags)
    elif content.filename and content.filename != known.filename:
        tx.documents.rename(known.id, content.filename)
    tx.documents.change_tags(known.id, add=tags, remove=outdated)
    return known.id


def update_note(
    store: Store, embedder: Embedder, document_id: int, text: str, if_match: Collection[str] | None
) -> tuple[Document, list[Chunk]]:
    """Replace a note's text in place (requirements N-1 to N-6); answers what was written.

    The slow part, embedding, comes before the transaction; what it was based on is checked again inside.

    Raises:
        NotFound: there is no such document.
        NotANote: it is another kind of document.
        Changed: its content_hash is none of `if_match`.
    """
    with store.read() as tx:
        note = _note(tx, document_id, if_match)
    title = note.title if note.title_given else None
    [content] = with_vectors([draft_note(text, title, embedder)], embedder)
    with store.write() as tx:
        _note(tx, document_id, if_match)
        tx.documents.replace(document_id, content)
        return _note(tx, document_id, None), tx.documents.chunks(document_id)


def _note(tx: Transaction, document_id: int, if_match: Collection[str] | None) -> Document:
    document = tx.documents.get(document_id)
    if document is None:
        raise NotFound(f"There is no document {document_id}.")
    if document.doc_type != NOTE:
        raise NotANote(f"Document {document_id} is of type {document.doc_type}: only notes can be updated.")
    if if_match is not None and document.content_hash not in if_match:
        raise Changed(
            f"Note {document_id} was changed: its content_hash is {document.content_hash} now.",
            extra={"content_hash": document.content_hash},
        )
    return document
