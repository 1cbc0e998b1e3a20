"""A part of a document's text, by lines, characters or pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kb.api.errors import NotPaged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kb.store.protocol import Documents
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
    start, end = _within(start, end, 0 if unit == "characters" else 1, len(pieces))
    return Excerpt(start, end, len(pieces), "".join(pieces[start - (unit != "characters") : end]))


def excerpt_of_characters(documents: Documents, document_id: int, start: int | None, end: int | None) -> Excerpt:
    """Return the text from character `start` to `end`, as `excerpt` does, without reading the others."""
    total = documents.extent(document_id).characters
    start, end = _within(start, end, 0, total)
    chunks = documents.chunks_between(document_id, start, end)
    before = start - chunks[0].place.char_start if chunks else 0
    text = "".join(chunk.text for chunk in chunks)
    return Excerpt(start, end, total, text[before : before + end - start])


def _within(start: int | None, end: int | None, first: int, total: int) -> tuple[int, int]:
    """Bring both ends within what there is, counted from `first`."""
    start = first if start is None else min(max(start, first), total + first)
    end = total if end is None else min(end, total)
    return start, max(end, start - first)


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
