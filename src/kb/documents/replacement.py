"""Which note a new one may replace."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from kb.api.errors import AlreadyReplaced, NotANote, NotFound
from kb.api.models import NOTE
from kb.documents.existing import missing_document
from kb.store.protocol import Transaction
from kb.store.rows import Content


def check_replaceable(tx: Transaction, replaced: int) -> None:
    """Refuse to replace what is no note.

    Raises:
        NotFound: there is no such document.
        NotANote: it is another kind of document.
    """
    document = tx.documents.get(replaced)
    if document is None:
        raise NotFound(f"replaces: {missing_document(tx, replaced).detail}")
    if document.doc_type != NOTE:
        raise NotANote(
            f"replaces: document {replaced} is of type {document.doc_type}: only notes are replaced so; a file is by"
            " adding it again under its path (kb add PATH)."
        )


def check_current(tx: Transaction, replaced: int, content_hash: str, source_path: str | None) -> None:
    """Refuse a second note in the place of one, which would part the succession.

    A note that is there already, with this content or at this path, may be said to replace again what it replaces, be
    it in turn.

    Raises:
        AlreadyReplaced: another note replaces this one.
    """
    successors = tx.documents.successors([replaced]).get(replaced)
    if not successors:
        return
    note = tx.documents.with_content(content_hash, source_path, note=True)
    if note is None and source_path is not None:
        note = tx.documents.at_path(source_path)
    if note is None or note.id not in (replaced, *successors):
        raise AlreadyReplaced(
            f"replaces: note {replaced} is replaced by note {successors[-1]} already; replace {successors[-1]} instead."
        )


def replacement_remedy(tx: Transaction, replaced: int) -> str:
    """Return what the sender of a note can do that was to replace another one, in whose place a note stands by now."""
    current = tx.documents.successors([replaced])[replaced][-1]
    return f"Send it again with replaces={current}, or try the job again once note {current} is deleted."


def rival_successors(tx: Transaction, document_id: int, replaced: int) -> set[int]:
    """Return what stands in the place of a note, but for a document that may replace it and what replaced that one."""
    successors = tx.documents.successors([replaced, document_id])
    return set(successors.get(replaced, ())).difference([document_id], successors.get(document_id, ()))


def drop_taken_link(tx: Transaction, document_id: int, content: Content, together: Collection[int] = ()) -> Content:
    """Return what a document comes back with: a link only if no other note was put in that place meanwhile.

    `together` are documents that become again what they were with it, and are in nobody's way.
    """
    if content.replaces is None or rival_successors(tx, document_id, content.replaces).issubset(together):
        return content
    return replace(content, replaces=None)
