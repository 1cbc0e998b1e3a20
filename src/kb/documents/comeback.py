"""A file that was deleted, and is there again, takes its document out of the bin."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from kb.api.models import NOTE
from kb.store.rows import NOBODY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kb.store.protocol import Transaction
    from kb.store.rows import Author, Binned, Content


def find_in_bin(tx: Transaction, content: Content, source_path: str | None, part_of: int | None) -> Binned | None:
    """Return the document in the bin that a file is again: the one at its path, or else one that held the same.

    Of several that held the same, one of the same file name goes first, then the last deleted. What came inside
    another file comes back inside that one only.
    """
    if source_path is None or content.doc_type == NOTE:
        return None
    found = tx.history.in_bin(source_path, content.content_hash)
    at_path = [each for each in found if each.document.source_path == source_path]
    if at_path:
        return at_path[0]
    same = [each for each in found if each.part_of == part_of and each.document.content_hash == content.content_hash]
    name = PurePosixPath(source_path).name
    return max(same, key=lambda each: PurePosixPath(each.document.source_path or "").name == name, default=None)


def bring_back(
    tx: Transaction,
    binned: Binned,
    content: Content,
    source_path: str | None,
    tags: Sequence[str],
    author: Author = NOBODY,
) -> int:
    """Take a document out of the bin, with the content that its file has now; return its id.

    It keeps its id, its history and its tags, without those that only its former content asked for.
    """
    before = binned.document
    tx.history.restore(before.id, content, author)
    is_same = content.content_hash == before.content_hash
    if not is_same or (content.title != before.title and (content.title_given or not before.title_given)):
        tx.documents.replace(before.id, content)
    if source_path != before.source_path:
        tx.documents.move(before.id, source_path)
    tx.documents.change_tags(before.id, add=[*tags, *content.own_tags], remove=() if is_same else before.own_tags)
    tx.jobs.retry_parts(before.id)
    return before.id
