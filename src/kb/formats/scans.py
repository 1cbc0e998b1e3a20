"""Pages of a document that are pictures, amid others that are text: what is put in the place of the text they lack."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from kb.api.job_errors import NO_OCR
from kb.api.omitted import together
from kb.formats.extracted import Extracted, Scan, Section

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BEGINNING: Final = "[Page"
_LACKS_OCR: Final = re.compile(rf"\[Pages? [\d, to…]+ (?:is a picture|are pictures): {NO_OCR}\.\]\n")
_MOST_RUNS: Final = 20


class _Piece(NamedTuple):
    page: int
    heading: tuple[str, ...]
    text: str


def with_pages(extracted: Extracted, found: Mapping[Scan, str]) -> Extracted:
    """Return a document with the texts that were found on its scanned pages, each in its place."""
    pieces = _pieces(extracted)
    for scan, words in found.items():
        if not words.strip():
            continue
        place = next((index for index, piece in enumerate(pieces) if piece.page > scan.page), len(pieces))
        pieces.insert(place, _Piece(scan.page, scan.heading, f"{words.strip()}\n"))
    return _joined(extracted, pieces)


def with_remark(extracted: Extracted, scans: Iterable[Scan], reason: str) -> Extracted:
    """Return a document that begins by saying which of its pages were not read, and why."""
    pages = [scan.page for scan in scans]
    if not pages:
        return extracted
    are = f"Page {pages[0]} is a picture" if len(pages) == 1 else f"Pages {_runs(pages)} are pictures"
    remark = f"[{are}: {reason}.]\n"
    first, *others = _pieces(extracted)
    omitted = together(extracted.omitted, {"pages": len(pages)})
    return replace(_joined(extracted, [first._replace(text=remark + first.text), *others]), omitted=omitted)


def lacks_ocr(text: str) -> bool:
    """Return whether a document begins by saying that OCR would read more of it."""
    return _LACKS_OCR.match(text) is not None


def _pieces(extracted: Extracted) -> list[_Piece]:
    text = extracted.text
    return [_Piece(each.page or 0, each.heading, text[each.start : each.end]) for each in extracted.sections]


def _joined(extracted: Extracted, pieces: Iterable[_Piece]) -> Extracted:
    text, sections = "", list[Section]()
    for piece in pieces:
        start = len(text)
        text += piece.text
        sections.append(Section(start, len(text), piece.heading, piece.page or None))
    return replace(extracted, text=text, sections=tuple(sections))


def _runs(pages: Iterable[int]) -> str:
    """Return numbers, given in order, as people list them: 2, 5 to 7."""
    runs = [
        [number for _, number in run] for _, run in groupby(enumerate(pages), lambda counted: counted[1] - counted[0])
    ]
    named = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return ", ".join(named[:_MOST_RUNS]) + (", …" if len(named) > _MOST_RUNS else "")
