"""Rectangles on a page of a PDF, and those of its characters."""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import c_double
from typing import Final, NamedTuple

import pypdfium2
from pypdfium2 import raw

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
        """Return the box around both; without calls, because each word of a page needs it."""
        left, bottom, right, top = self
        other_left, other_bottom, other_right, other_top = other
        return TextBox(
            left if left < other_left else other_left,
            bottom if bottom < other_bottom else other_bottom,
            right if right > other_right else other_right,
            top if top > other_top else other_top,
        )

    def shares_line(self, other: TextBox) -> bool:
        _, bottom, _, top = self
        _, other_bottom, _, other_top = other
        height, other_height = top - bottom, other_top - other_bottom
        overlap = (top if top < other_top else other_top) - (bottom if bottom > other_bottom else other_bottom)
        return overlap >= _BESIDE * (height if height < other_height else other_height)


class Letters:
    """The boxes of the characters of a page; None for one that has none, or is rotated.

    Args:
        text: the page.
        written: its text, as PDFium returns it.
    """

    def __init__(self, text: pypdfium2.PdfTextPage, written: str) -> None:
        self._text, self._rect = text.raw, raw.FS_RECTF()
        self._has_others = len(written) != text.count_chars()

    def at(self, place: int) -> TextBox | None:
        """Return the box of the character at a place of the text."""
        return self.of(raw.FPDFText_GetCharIndexFromTextIndex(self._text, place) if self._has_others else place)

    def of(self, index: int) -> TextBox | None:
        """Return the box of a character, by its number among all that the page has."""
        rect = self._rect
        if raw.FPDFText_GetCharAngle(self._text, index) or not raw.FPDFText_GetLooseCharBox(self._text, index, rect):
            return None
        box = TextBox(rect.left, rect.bottom, rect.right, rect.top)
        return None if box.is_empty() else box


def text_boxes(text: pypdfium2.PdfTextPage) -> Iterator[TextBox]:
    """Yield the boxes of the texts of a page."""
    left, top, right, bottom = (c_double() for _ in range(4))
    for index in range(text.count_rects()):
        raw.FPDFText_GetRect(text.raw, index, left, top, right, bottom)
        yield TextBox(left.value, bottom.value, right.value, top.value)
