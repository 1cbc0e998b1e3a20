"""The order in which people read the shapes on a slide: from top to bottom, and there from left to right."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

Shape = TypeVar("Shape")


class Box(NamedTuple):
    """The position of a shape: its upper left corner and its size."""

    left: float
    top: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.top + self.height / 2


def around(boxes: Iterable[Box]) -> Box | None:
    known = list(boxes)
    if not known:
        return None
    left, top = min(box.left for box in known), min(box.top for box in known)
    right, bottom = max(box.left + box.width for box in known), max(box.top + box.height for box in known)
    return Box(left, top, right - left, bottom - top)


def in_reading_order(shapes: Sequence[Shape], place: Callable[[Shape], Box | None]) -> list[Shape]:
    """Return shapes row by row; one without a position stays after the one drawn before it."""
    placed, last = list[tuple[Box, int, Shape]](), Box(0.0, float("-inf"), 0.0, 0.0)
    for index, shape in enumerate(shapes):
        last = place(shape) or last
        placed.append((last, index, shape))
    row, ordered = _ShapeRow[Shape](), list[Shape]()
    for box, index, shape in sorted(placed, key=lambda one: (one[0].top, one[1])):
        if not row.add(box, index, shape):
            ordered += row.shapes
            row = _ShapeRow[Shape]()
            row.add(box, index, shape)
    return ordered + row.shapes


class _ShapeRow(Generic[Shape]):
    """Shapes side by side: each begins above the middle of every other, and no two overlap."""

    def __init__(self) -> None:
        self._spans: list[tuple[float, float, int, Shape]] = []
        self._lowest_top, self._highest_middle = float("-inf"), float("inf")

    @property
    def shapes(self) -> list[Shape]:
        return [shape for *_, shape in self._spans]

    def add(self, box: Box, index: int, shape: Shape) -> bool:
        """Add a shape if it is side by side with all others; return whether it is."""
        span = (box.left, box.left + box.width, index, shape)
        place = bisect_left(self._spans, span[:3])
        left, right = self._spans[place - 1 : place] if place else [], self._spans[place : place + 1]
        is_free = all(end <= box.left for _, end, *_ in left) and all(span[1] <= start for start, *_ in right)
        if not is_free or box.top > self._highest_middle or self._lowest_top > box.middle:
            return False
        self._spans.insert(place, span)
        self._lowest_top = max(self._lowest_top, box.top)
        self._highest_middle = min(self._highest_middle, box.middle)
        return True
