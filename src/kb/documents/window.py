"""Which chunks of a document stand at a place: a chunk, a page, a heading."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from kb.api.errors import Invalid
from kb.ingest.chunk import RANGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kb.store.rows import ChunkPlace

MAX_HEADINGS: Final = 12
"""How many headings an error names."""

MAX_HEADING: Final = 80


@dataclass(frozen=True, slots=True)
class Place:
    """A chunk, a page or a heading: one of the fields is set."""

    chunk_id: int | None = None
    page: int | None = None
    heading: str | None = None


def place_of(chunk_id: int | None, page: int | None, heading: str | None) -> Place | None:
    """Return the place that was asked for, if one was.

    Raises:
        Invalid: there is more than one.
    """
    given = [each for each in (chunk_id, page, heading) if each is not None]
    if len(given) > 1:
        raise Invalid("chunk_id, page, heading: give at most one of them.")
    return Place(chunk_id, page, heading) if given else None


def window(places: Sequence[ChunkPlace], document_id: int, place: Place, around: int) -> tuple[int, int]:
    """Return the index of the first chunk at a place, with `around` more before and after, and how many they are.

    Raises:
        Invalid: there is no such place; the message or `extra` names those that there are.
    """
    found = _at(places, document_id, place)
    start = max(0, found[0].index - around)
    return start, min(found[-1].index + around, len(places) - 1) + 1 - start


def _at(places: Sequence[ChunkPlace], document_id: int, place: Place) -> list[ChunkPlace]:
    if place.chunk_id is not None:
        return [each for each in places if each.id == place.chunk_id] or _refuse_chunk(places, document_id, place)
    if place.page is not None:
        return [each for each in places if each.page == place.page] or _refuse_page(places, document_id)
    return _under(places, place.heading or "") or _refuse_heading(places, document_id)


def _under(places: Sequence[ChunkPlace], heading: str) -> list[ChunkPlace]:
    """Return the chunks of the first section whose heading is this one, or else holds it."""
    wanted = " ".join(heading.casefold().split())
    for fits in (str.__eq__, str.__contains__):
        for start, place in enumerate(places):
            for path in _paths(place.heading):
                if fits(" ".join(path[-1].casefold().split()), wanted):
                    return list(takewhile(lambda each: path in _paths(each.heading), places[start:]))  # noqa: B023 - at once
    return []


def _paths(headings: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the paths to the headings of a chunk; from one that goes from a heading to another, the paths to both."""
    for depth, name in enumerate(headings):
        for part in (*name.split(RANGE), name):
            yield (*headings[:depth], part)


def _refuse_chunk(places: Sequence[ChunkPlace], document_id: int, place: Place) -> list[ChunkPlace]:
    if not places:
        raise Invalid(f"chunk_id: document {document_id} has no chunks.")
    ids = f"{places[0].id} to {places[-1].id}"
    raise Invalid(
        f"chunk_id: document {document_id} has no chunk {place.chunk_id}; its {len(places)} chunks have the ids {ids}."
    )


def _refuse_page(places: Sequence[ChunkPlace], document_id: int) -> list[ChunkPlace]:
    pages = [place.page for place in places if place.page is not None]
    if not pages:
        raise Invalid(f"page: document {document_id} has no pages; it has the chunks 0 to {len(places) - 1}.")
    raise Invalid(
        f"page: there is no text on that page; document {document_id} has the pages {pages[0]} to {pages[-1]}."
    )


def _refuse_heading(places: Sequence[ChunkPlace], document_id: int) -> list[ChunkPlace]:
    names = list(dict.fromkeys(place.heading[-1] for place in places if place.heading))
    if not names:
        raise Invalid(f"heading: document {document_id} has no headings; it has the chunks 0 to {len(places) - 1}.")
    raise Invalid(
        f"heading: there is no such section; document {document_id} has {len(names)} to be read by their heading.",
        extra={"headings": [name[:MAX_HEADING] for name in names[:MAX_HEADINGS]]},
    )
