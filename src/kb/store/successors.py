"""What stands in the place of documents, from which replaces which."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def nearest_successors(ids: Sequence[int], links: Sequence[tuple[int, int, int]]) -> dict[int, list[int]]:
    """Return what is there in the place of each of these documents, directly or in turn; the nearest first.

    Args:
        ids: the documents.
        links: one that is replaced, the one that replaces it, and whether that is there.
    """
    there = {later for _, later, is_there in links if is_there}
    direct: dict[int, list[int]] = {}
    for later, replaced in {later: replaced for replaced, later, _ in links}.items():
        direct.setdefault(replaced, []).append(later)
    present = {each: [later for later in _after(each, direct) if later in there] for each in ids}
    return {each: later for each, later in present.items() if later}


def _after(document_id: int, direct: Mapping[int, Sequence[int]]) -> list[int]:
    """Return the direct and indirect successors of a document, the nearest first; none if it is one of its own.

    As each document replaces one at most, no other circle can be come to.
    """
    found = [*direct.get(document_id, ())]
    for each in found:
        if each == document_id:
            return []
        found += direct.get(each, ())
    return found
