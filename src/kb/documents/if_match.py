"""If-Match: refuse a change if the document was changed since it was read."""

from collections.abc import Callable, Collection
from typing import Final

from kb.api.errors import Changed
from kb.api.fields import NOTE
from kb.store.rows import Document

MAX_SHOWN: Final = 20_000
"""How many characters of a note's current text an error shows after a conflict."""


def check_match(document: Document, if_match: Collection[str] | None, shown: Callable[[], str] | None = None) -> None:
    """Refuse a change of a document that was changed since it was read; `shown` returns its current text.

    Raises:
        Changed: the `content_hash` is not in `if_match`.
    """
    if if_match is not None and document.content_hash not in if_match:
        kind = "Note" if document.doc_type == NOTE else "Document"
        raise Changed(
            f"{kind} {document.id} has changed since you read it: its content_hash is now {document.content_hash}.",
            extra={
                "content_hash": document.content_hash,
                "updated_at": document.updated_at,
                **({"text": shown()[:MAX_SHOWN]} if shown else {}),
            },
        )
