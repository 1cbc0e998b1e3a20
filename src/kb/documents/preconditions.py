"""If-Match: a change is refused if the document was changed since it was read."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from kb.api.errors import Changed
from kb.api.models import NOTE
from kb.store.rows import Document

MAX_SHOWN: Final = 20_000
"""How much of a note's text is shown to whoever changed another one."""


def check_match(document: Document, if_match: Collection[str] | None, shown: Callable[[], str] | None = None) -> None:
    """Refuse to change what was changed since it was read; `shown` is the text that stands there now.

    Raises:
        Changed: the content_hash is none of `if_match`.
    """
    if if_match is not None and document.content_hash not in if_match:
        kind = "Note" if document.doc_type == NOTE else "Document"
        raise Changed(
            f"{kind} {document.id} was changed: its content_hash is {document.content_hash} now.",
            extra={
                "content_hash": document.content_hash,
                "updated_at": document.updated_at,
                **({"text": shown()[:MAX_SHOWN]} if shown else {}),
            },
        )
