"""A part of a document: the chunks at a place (a chunk, a page, a heading), or some lines, characters or pages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, Literal

from kb.api.errors import Invalid, NotPaged
from kb.ingest.chunk import RANGE
from kb.store.protocol import Documents
from kb.store.rows import Chunk, ChunkPlace

MAX_HEADINGS: Final = 12
"""How many headings an error lists."""

MAX_HEADING: Final = 80

Unit = Literal["lines", "characters", "pages"]


@dataclass(frozen=True, slots=True)
class ChunkTarget:
    """A chunk, a page or a heading: one of the fields is set."""

    chunk_id: int | None = None
    page: int | None = None
    heading: str | None = None


def requested_target(chunk_id: int | None, page: int | None, heading: str | None) -> ChunkTarget | None:
    """Return the requested place, if any.

    Raises:
        Invalid: more than one place is given.
    """
    given = [value for value in (chunk_id, page, heading) if value is not None]
    if len(given) > 1:
        raise Invalid("chunk_id, page, heading: send at most one of them.")
    return ChunkTarget(chunk_id, page, heading) if given else None


def window(places: Sequence[ChunkPlace], document_id: int, place: ChunkTarget, around: int) -> tuple[int, int]:
    """Return the index of the first chunk at a place, with `around` more before and after, and the number of chunks.

    Raises:
        Invalid: the place does not exist; the message or `extra` names the existing ones.
    """
    chunks = _at(places, document_id, place)
    start = max(0, chunks[0].index - around)
    return start, min(chunks[-1].index + around, len(places) - 1) + 1 - start


def _at(places: Sequence[ChunkPlace], document_id: int, place: ChunkTarget) -> list[ChunkPlace]:
    if place.chunk_id is not None:
        return [chunk for chunk in places if chunk.id == place.chunk_id] or _refuse_chunk(places, document_id, place)
    if place.page is not None:
        return [chunk for chunk in places if chunk.page == place.page] or _refuse_page(places, document_id)
    return _under(places, place.heading or "") or _refuse_heading(places, document_id)


def _under(places: Sequence[ChunkPlace], heading: str) -> list[ChunkPlace]:
    """Return the chunks of the first section with this heading, otherwise of the first whose heading contains it."""
    normalized = " ".join(heading.casefold().split())
    for fits in (str.__eq__, str.__contains__):
        for start, place in enumerate(places):
            for path in _paths(place.heading):
                if fits(" ".join(path[-1].casefold().split()), normalized):
                    return list(takewhile(lambda chunk: path in _paths(chunk.heading), places[start:]))  # noqa: B023 - at once
    return []


def _paths(headings: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the heading paths of a chunk; if it runs from one heading to another, the paths to both."""
    for depth, name in enumerate(headings):
        for part in (*name.split(RANGE), name):
            yield (*headings[:depth], part)


def _refuse_chunk(places: Sequence[ChunkPlace], document_id: int, place: ChunkTarget) -> list[ChunkPlace]:
    if not places:
        raise Invalid(f"chunk_id: document {document_id} has no chunks.")
    ids = f"{places[0].id} to {places[-1].id}"
    raise Invalid(
        f"chunk_id: document {document_id} has no chunk {place.chunk_id}; its {len(places)} chunks have the ids {ids}."
    )


def _refuse_page(places: Sequence[ChunkPlace], document_id: int) -> list[ChunkPlace]:
    pages = [place.page for place in places if place.page is not None]
    if not pages:
        raise Invalid(f"page: document {document_id} has no pages; its chunks are numbered 0 to {len(places) - 1}.")
    raise Invalid(f"page: this page has no text; document {document_id} has the pages {pages[0]} to {pages[-1]}.")


def _refuse_heading(places: Sequence[ChunkPlace], document_id: int) -> list[ChunkPlace]:
    names = list(dict.fromkeys(place.heading[-1] for place in places if place.heading))
    if not names:
        raise Invalid(f"heading: document {document_id} has no headings, only chunks 0 to {len(places) - 1}.")
    raise Invalid(
        f"heading: document {document_id} does not have this heading; it has {len(names)} headings.",
        extra={"headings": [name[:MAX_HEADING] for name in names[:MAX_HEADINGS]]},
    )


@dataclass(frozen=True, slots=True)
class Excerpt:
    """An excerpt, clipped to the document: `total` units; lines and pages count from 1, characters from 0."""

    start: int
    end: int
    total: int
    text: str


def excerpt(chunks: Sequence[Chunk], unit: Unit, start: int | None, end: int | None) -> Excerpt:
    """Return the chunks' text from `start` to `end`; by default from the beginning and to the end.

    Raises:
        NotPaged: pages are requested, but the document has none.
    """
    pieces = _pieces(chunks, unit)
    start, end = _within(start, end, 1, len(pieces))
    return Excerpt(start, end, len(pieces), "".join(pieces[start - 1 : end]))


def excerpt_of_characters(documents: Documents, document_id: int, start: int | None, end: int | None) -> Excerpt:
    """Return the text from character `start` to `end`, as `excerpt` does, without reading the rest."""
    total = documents.extent(document_id).characters
    start, end = _within(start, end, 0, total)
    chunks = documents.chunks_between(document_id, start, end)
    before = start - chunks[0].place.char_start if chunks else 0
    text = "".join(chunk.text for chunk in chunks)
    return Excerpt(start, end, total, text[before : before + end - start])


def _within(start: int | None, end: int | None, first: int, total: int) -> tuple[int, int]:
    """Clip both ends to the existing units, counted from `first`."""
    start = first if start is None else min(max(start, first), total + first)
    end = total if end is None else min(end, total)
    return start, max(end, start - first)


def _pieces(chunks: Sequence[Chunk], unit: Unit) -> Sequence[str]:
    if unit == "lines":
        lines = "".join(chunk.text for chunk in chunks).split("\n")
        return [line + "\n" for line in lines[:-1]] + lines[-1:]
    pages: dict[int, str] = {}
    for chunk in chunks:
        if chunk.place.page is None:
            raise NotPaged
        pages[chunk.place.page] = pages.get(chunk.place.page, "") + chunk.text
    return [pages.get(page, "") for page in range(1, max(pages) + 1)]
