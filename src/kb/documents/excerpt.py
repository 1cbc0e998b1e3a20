"""A part of a document's text, by lines, characters or pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kb.api.errors import NotPaged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kb.store.rows import Chunk

Unit = Literal["lines", "characters", "pages"]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What was asked for, brought within what there is: `total` units, lines and pages from 1, characters from 0."""

    start: int
    end: int
    total: int
    text: str


def excerpt(chunks: Sequence[Chunk], unit: Unit, start: int | None, end: int | None) -> Excerpt:
    """Return the chunks' text from `start` to `end`: from its beginning, to its end where one is not given.

    Raises:
        NotPaged: pages were asked of a document that has none.
    """
    pieces = _pieces(chunks, unit)
    first = 0 if unit == "characters" else 1
    last = len(pieces) - 1 + first if first else len(pieces)
    start = first if start is None else min(max(start, first), last + first)
    end = last if end is None else min(end, last)
    end = max(end, start - first)
    return Excerpt(start, end, len(pieces), "".join(pieces[start - first : end]))


def _pieces(chunks: Sequence[Chunk], unit: Unit) -> Sequence[str]:
    text = "".join(chunk.text for chunk in chunks)
    if unit == "characters":
        return text
    if unit == "lines":
        lines = text.split("\n")
        return [line + "\n" for line in lines[:-1]] + lines[-1:]
    pages: dict[int, str] = {}
    for chunk in chunks:
        if chunk.place.page is None:
            raise NotPaged
        pages[chunk.place.page] = pages.get(chunk.place.page, "") + chunk.text
    return [pages.get(page, "") for page in range(1, max(pages) + 1)]
