"""What was replaced stands behind what replaced it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")


def in_succession(items: Sequence[T], documents: Sequence[int], successors: Mapping[int, Sequence[int]]) -> list[T]:
    """Return items in their order, but none before the first of a document that replaced its own: that takes its place.

    Args:
        items: what stands in an order.
        documents: the document of each.
        successors: what replaced documents, the nearest first.
    """
    first: dict[int, int] = {}
    for place, document_id in enumerate(documents):
        first.setdefault(document_id, place)
    order: dict[int, None] = {}
    for place, document_id in enumerate(documents):
        later = [first[each] for each in reversed(successors.get(document_id, ())) if each in first]
        order |= dict.fromkeys(each for each in (*later, place) if each not in order)
    return [items[place] for place in order]
