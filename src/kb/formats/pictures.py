"""Pictures inside documents: what is found in them is put in their places."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kb.formats.extracted import Extracted, Section

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kb.formats.extracted import Picture

_WORD: Final = re.compile(r"\w{3,}|[^\W\d_a-zA-Z\u00c0-\u024f]{2,}")
_FEWEST_WORDS: Final = 2
_SIGNATURE: Final = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|BM|II[*+]\0|MM\0[*+]|RIFF....WEBP|\0\0..ftyp", re.DOTALL
)


@dataclass
class _Piece:
    section: Section
    text: str


def is_picture(data: bytes) -> bool:
    """Return whether a file begins as a picture does, whatever it is called.

    Tesseract takes anything else for a list of files that it shall read.
    """
    return _SIGNATURE.match(data) is not None


def has_words(found: str) -> bool:
    """Return whether what OCR found is words: of a photo it makes a few stray signs."""
    tokens = found.split()
    words = [token for token in tokens if _WORD.search(token)]
    return len(words) >= _FEWEST_WORDS and 2 * len(words) >= len(tokens)


def with_pictures(extracted: Extracted, found: Iterable[tuple[Picture, str]]) -> Extracted:
    """Return a document with the texts that were found in its pictures, given in order, each in its place."""
    pieces = [_Piece(each, extracted.text[each.start : each.end]) for each in extracted.sections]
    for picture, words in reversed(list(found)):
        name = f"[{picture.name}] " if picture.name else ""
        _insert(pieces, picture, f"\n{name}{words.strip()}\n")
    text, sections = "", list[Section]()
    for piece in pieces:
        sections.append(replace(piece.section, start=len(text), end=len(text) + len(piece.text)))
        text += piece.text
    return replace(extracted, text=text, sections=tuple(sections), pictures=())


def _insert(pieces: list[_Piece], picture: Picture, words: str) -> None:
    """Put words into the section that a picture stands in, or into one of its own if its page has no text."""
    for piece in pieces:
        section = piece.section
        if section.start <= picture.place <= section.end and picture.page in (None, section.page):
            cut = picture.place - section.start
            piece.text = piece.text[:cut] + words + piece.text[cut:]
            return
    behind = (index for index, piece in enumerate(pieces) if piece.section.start >= picture.place)
    own = Section(picture.place, picture.place, page=picture.page)
    pieces.insert(next(behind, len(pieces)), _Piece(own, words.lstrip()))
