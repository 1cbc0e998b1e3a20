"""Puts the text of pictures and scanned pages in its place in the document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from kb.api.job_error_phrases import NO_OCR
from kb.api.omissions import together
from kb.formats.text.extracted import Extracted, Picture, Scan, Section

BEGINNING: Final = "[Page"
_LACKS_OCR: Final = re.compile(rf"\[Pages? [\d, to…]+ (?:is a picture|are pictures): {NO_OCR}\.\]\n")
_MOST_RUNS: Final = 20
_WORD: Final = re.compile(r"\w{3,}|[^\W\d_a-zA-Z\u00c0-\u024f]{2,}")
_FEWEST_WORDS: Final = 2


@dataclass
class _Piece:
    section: Section
    text: str


def has_words(text: str) -> bool:
    """Return whether OCR found words; in a photo it finds a few stray characters."""
    tokens = text.split()
    words = [token for token in tokens if _WORD.search(token)]
    return len(words) >= _FEWEST_WORDS and 2 * len(words) >= len(tokens)


def with_pictures(extracted: Extracted, recognized: Iterable[tuple[Picture, str]]) -> Extracted:
    """Return a document with the texts of its pictures, given in order, each in its place."""
    pieces = _pieces(extracted)
    for picture, words in reversed(list(recognized)):
        name = f"[{picture.name}] " if picture.name else ""
        _insert(pieces, picture, f"\n{name}{words.strip()}\n")
    return replace(_joined(extracted, pieces), pictures=())


def with_pages(extracted: Extracted, recognized: Mapping[Scan, str]) -> Extracted:
    pieces = _pieces(extracted)
    for scan, words in recognized.items():
        if not words.strip():
            continue
        behind = (index for index, piece in enumerate(pieces) if (piece.section.page or 0) > scan.page)
        page = Section(0, 0, scan.heading, scan.page)
        pieces.insert(next(behind, len(pieces)), _Piece(page, f"{words.strip()}\n"))
    return _joined(extracted, pieces)


def with_remark(extracted: Extracted, scans: Iterable[Scan], reason: str) -> Extracted:
    """Return a document that begins with a remark that names its unread pages and the reason."""
    pages = [scan.page for scan in scans]
    if not pages:
        return extracted
    are = f"Page {pages[0]} is a picture" if len(pages) == 1 else f"Pages {_runs(pages)} are pictures"
    pieces = _pieces(extracted)
    pieces[0].text = f"[{are}: {reason}.]\n{pieces[0].text}"
    return replace(_joined(extracted, pieces), omitted=together(extracted.omitted, {"pages": len(pages)}))


def lacks_ocr(text: str) -> bool:
    """Return whether a document begins with the remark that OCR would read more of it."""
    return _LACKS_OCR.match(text) is not None


def _pieces(extracted: Extracted) -> list[_Piece]:
    return [_Piece(section, extracted.text[section.start : section.end]) for section in extracted.sections]


def _joined(extracted: Extracted, pieces: Iterable[_Piece]) -> Extracted:
    text, sections = "", list[Section]()
    for piece in pieces:
        sections.append(replace(piece.section, start=len(text), end=len(text) + len(piece.text)))
        text += piece.text
    return replace(extracted, text=text, sections=tuple(sections))


def _insert(pieces: list[_Piece], picture: Picture, words: str) -> None:
    """Put words into the section of a picture, or into a new section if its page has no text."""
    for piece in pieces:
        section = piece.section
        if section.start <= picture.place <= section.end and picture.page in (None, section.page):
            cut = picture.place - section.start
            piece.text = piece.text[:cut] + words + piece.text[cut:]
            return
    behind = (index for index, piece in enumerate(pieces) if piece.section.start >= picture.place)
    own = Section(picture.place, picture.place, page=picture.page)
    pieces.insert(next(behind, len(pieces)), _Piece(own, words.lstrip()))


def _runs(pages: Iterable[int]) -> str:
    """Return numbers, given in order, as people list them: 2, 5 to 7."""
    runs = [
        [number for _, number in run] for _, run in groupby(enumerate(pages), lambda counted: counted[1] - counted[0])
    ]
    named = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return ", ".join(named[:_MOST_RUNS]) + (", …" if len(named) > _MOST_RUNS else "")
