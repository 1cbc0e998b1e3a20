"""A rectangle on a page of a PDF."""

from __future__ import annotations

from typing import Final, NamedTuple

_BLEED: Final = 2.0  # points by which text may extend over the edge of its page
_BESIDE: Final = 0.3
"""The least part of the height of a line that another text on the same line shares."""


class TextBox(NamedTuple):
    """A rectangle in points, from the lower left of the page."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        return self.top - self.bottom

    def holds(self, other: TextBox) -> bool:
        """Return whether `other` lies within the box, with a tolerance of `_BLEED`."""
        return (
            self.left - _BLEED <= other.left
            and other.right <= self.right + _BLEED
            and self.bottom - _BLEED <= other.bottom
            and other.top <= self.top + _BLEED
        )

    def is_empty(self) -> bool:
        return self.left >= self.right or self.bottom >= self.top

    def centre(self) -> TextBox:
        x, y = (self.left + self.right) / 2, (self.bottom + self.top) / 2
        return TextBox(x, y, x, y)

    def around(self, other: TextBox) -> TextBox:
        """Return the box around both."""
        left, bottom = min(self.left, other.left), min(self.bottom, other.bottom)
        return TextBox(left, bottom, max(self.right, other.right), max(self.top, other.top))

    def shares_line(self, other: TextBox) -> bool:
        overlap = min(self.top, other.top) - max(self.bottom, other.bottom)
        return overlap >= _BESIDE * min(self.height, other.height)
