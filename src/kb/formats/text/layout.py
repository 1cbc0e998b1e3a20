"""The order in which people read the shapes on a slide: from top to bottom, and there from left to right."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Shape = TypeVar("Shape")


class Box(NamedTuple):
    """Where something stands: its upper left corner and its size."""

    left: float
    top: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """How far down its middle is."""
        return self.top + self.height / 2


def around(boxes: Iterable[Box]) -> Box | None:
    """Return the box that holds several."""
    known = list(boxes)
    if not known:
        return None
    left, top = min(box.left for box in known), min(box.top for box in known)
    right, bottom = max(box.left + box.width for box in known), max(box.top + box.height for box in known)
    return Box(left, top, right - left, bottom - top)


def in_reading_order(shapes: Sequence[Shape], place: Callable[[Shape], Box | None]) -> list[Shape]:
    """Return shapes row by row; one whose place is not known stays behind the one that it was drawn after."""
    placed, last = list[tuple[Box, int, Shape]](), Box(0.0, float("-inf"), 0.0, 0.0)
    for index, shape in enumerate(shapes):
        last = place(shape) or last
        placed.append((last, index, shape))
    rows: list[list[tuple[Box, int, Shape]]] = []
    for each in sorted(placed, key=lambda one: (one[0].top, one[1])):
        if rows and all(_is_beside(other, each[0]) for other, _, _ in rows[-1]):
            rows[-1].append(each)
        else:
            rows.append([each])
    return [shape for row in rows for _, _, shape in sorted(row, key=lambda one: (one[0].left, one[1]))]


def _is_beside(first: Box, other: Box) -> bool:
    """Return whether two stand in one row: each begins above the middle of the other, and they do not overlap."""
    if other.top > first.middle or first.top > other.middle:
        return False
    return first.left + first.width <= other.left or other.left + other.width <= first.left
