"""Rules for notes that replace other notes."""

from collections.abc import Collection
from dataclasses import replace

from kb.api.errors import AlreadyReplaced, NotANote, NotFound
from kb.api.fields import NOTE
from kb.documents.lookup import missing_document
from kb.store.protocol import Transaction
from kb.store.rows import Content


def check_replaceable(tx: Transaction, replaced: int) -> None:
    """Refuse to replace a document that is not a note.

    Raises:
        NotFound: the document does not exist.
        NotANote: the document is not a note.
    """
    document = tx.documents.get(replaced)
    if document is None:
        raise NotFound(f"replaces: {missing_document(tx, replaced).detail}")
    if document.doc_type != NOTE:
        raise NotANote(
            f"replaces: document {replaced} is of type {document.doc_type}, and only notes can be replaced. To replace"
            " a file, add it again under its path (kb add PATH)."
        )


def check_current(tx: Transaction, replaced: int, content_hash: str, source_path: str | None) -> None:
    """Refuse a second replacement of a note, which would split the succession.

    A note that already exists, with this content or at this path, may name a note again that it replaces, directly or
    through others.

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
            f"replaces: note {successors[-1]} already replaces note {replaced}. Replace {successors[-1]} instead."
        )


def replacement_remedy(tx: Transaction, replaced: int) -> str:
    """Return advice for the sender of a note whose target another note has replaced in the meantime."""
    current = tx.documents.successors([replaced])[replaced][-1]
    return f"Send it again with replaces={current}, or delete note {current} and retry the job."


def rival_successors(tx: Transaction, document_id: int, replaced: int) -> set[int]:
    """Return the notes that replace a note, except a given document and the notes that replace that document."""
    successors = tx.documents.successors([replaced, document_id])
    return set(successors.get(replaced, ())).difference([document_id], successors.get(document_id, ()))


def drop_taken_link(tx: Transaction, document_id: int, content: Content, together: Collection[int] = ()) -> Content:
    """Return content without its link to a replaced note if another note has replaced that note in the meantime.

    Documents in `together` are restored at the same time and do not count as other notes.
    """
    if content.replaces is None or rival_successors(tx, document_id, content.replaces).issubset(together):
        return content
    return replace(content, replaces=None)
