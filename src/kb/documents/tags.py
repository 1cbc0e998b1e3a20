"""A document's tags change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.api.errors import TooManyTags
from kb.documents.lookup import existing_document
from kb.store.rows import NOBODY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kb.store.protocol import Store
    from kb.store.rows import Author, Document


def change_tags(
    store: Store,
    document_id: int,
    *,
    add: Sequence[str],
    remove: Sequence[str],
    max_tags: int,
    author: Author = NOBODY,
) -> Document:
    """Add tags to a document and remove others, in one step; return the document.

    Raises:
        NotFound: there is no such document.
        TooManyTags: it would have more than `max_tags`.
    """
    with store.write() as tx:
        before = set(existing_document(tx, document_id).tags)
        if before.difference(remove).union(add) != before:
            tx.history.keep(document_id, author)
            tx.documents.change_tags(document_id, add=add, remove=remove)
        document = existing_document(tx, document_id)
        if len(document.tags) > max_tags:
            raise TooManyTags(f"tags: a document has at most {max_tags}.")
    return document
