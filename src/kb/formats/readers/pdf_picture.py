"""A page of a PDF as a picture, with a passage marked."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import takewhile
from typing import Final
from unicodedata import normalize

import pypdfium2
from pypdfium2 import raw

from kb.api.errors import Unreadable
from kb.formats.readers.pdf import PDFIUM, opened
from kb.formats.readers.pdf_box import TextBox
from kb.formats.readers.pdf_page import draw_annotations

WIDTH: Final = 1100
"""The width of the picture in pixels."""

_MOST_PIXELS: Final = 6_000_000
_MOST_PIXELS_TO_READ: Final = 16_000_000
_DPI_TO_READ: Final = 300
_POINTS_AN_INCH: Final = 72
_COLOUR: Final = (255, 214, 90, 255)
_END: Final = 40
"""The number of letters at either end of a passage to search for, if the page does not contain it in one piece."""

_MARGIN: Final = 0.5
_LETTER: Final = re.compile(r"[^\W_]")
_PNG: Final = b"\x89PNG\r\n\x1a\n"


def draw_page(data: bytes, number: int, passage: str = "", place: float = 0, words: Sequence[str] = ()) -> bytes:
    """Return a page, counted from 1, as PNG.

    Args:
        data: the PDF.
        number: the page number.
        passage: the text to mark, if the page contains it.
        place: its position in the page's text, from 0 to 1, in case the page contains it several times.
        words: the words of the passage to mark in place of all of it, if it has some of them.

    Raises:
        Unreadable: the file is damaged, or the page does not exist.
    """
    with PDFIUM, opened(data) as document:
        if not 1 <= number <= len(document):
            raise Unreadable(f"the PDF has {len(document)} page{'' if len(document) == 1 else 's'}")
        try:
            with closing(document[number - 1]) as page:
                if not draw_annotations(page):
                    return _draw(page, passage, place, words)
            with closing(document[number - 1]) as page:  # its annotations are drawn only after it is opened again
                return _draw(page, passage, place, words)
        except pypdfium2.PdfiumError as error:
            raise Unreadable(f"page {number} is damaged") from error


def _draw(page: pypdfium2.PdfPage, passage: str, place: float, words: Sequence[str]) -> bytes:
    width, height = page.get_size()
    scale = min(WIDTH / max(width, 1), (_MOST_PIXELS / max(width * height, 1)) ** 0.5)
    with closing(page.get_textpage()) as text:
        boxes = passage_boxes(text, passage, place, words)
    for box in boxes:
        rectangle = raw.FPDFPageObj_CreateNewRect(box.left, box.bottom, box.right - box.left, box.top - box.bottom)
        raw.FPDFPageObj_SetFillColor(rectangle, *_COLOUR)
        raw.FPDFPath_SetDrawMode(rectangle, raw.FPDF_FILLMODE_WINDING, 0)
        raw.FPDFPageObj_SetBlendMode(rectangle, b"Multiply")
        raw.FPDFPage_InsertObject(page, rectangle)
    with closing(page.render(scale=scale, rev_byteorder=True)) as bitmap:
        return _png(bitmap)


def count_pages(data: bytes) -> int:
    """Return the number of pages of a PDF. Raises `Unreadable` if it is damaged."""
    with PDFIUM, opened(data) as document:
        return len(document)


def picture_to_read(data: bytes, number: int) -> bytes:
    """Return a page, counted from 1, as a grey PNG for OCR. Raises the same errors as `draw_page`."""
    with PDFIUM, opened(data) as document:
        try:
            with closing(document[number - 1]) as page:
                width, height = page.get_size()
                most = (_MOST_PIXELS_TO_READ / max(width * height, 1)) ** 0.5
                scale = min(_DPI_TO_READ / _POINTS_AN_INCH, most)
                with closing(page.render(scale=scale, grayscale=True)) as bitmap:
                    return _png(bitmap)
        except (pypdfium2.PdfiumError, IndexError) as error:
            raise Unreadable(f"page {number} is damaged") from error


def passage_boxes(text: pypdfium2.PdfTextPage, passage: str, place: float, words: Sequence[str] = ()) -> list[TextBox]:
    """Return the boxes of the lines with a passage, or of its words; empty if the page does not contain it."""
    characters = [chr(raw.FPDFText_GetUnicode(text, index)) for index in range(text.count_chars())]
    letters = list(_letters(characters))
    span = find_passage("".join(letter for letter, _ in letters), _plain(passage), place)
    if not span:
        return []
    first, last = letters[span.start][1], letters[span.stop - 1][1]  # the characters between letters are also marked
    first -= _signs(reversed(characters[:first]), reversed(_LETTER.split(passage)[0]))
    last += _signs(characters[last + 1 :], _LETTER.split(passage)[-1])
    runs = _runs_of(words, characters, first, last + 1) or [range(first, last + 1)]
    spans = ([_box(text, index) for index in run if not characters[index].isspace()] for run in runs)
    return [line for boxes in spans for line in _lines(filter(None, boxes))]


def _runs_of(words: Sequence[str], characters: Sequence[str], first: int, end: int) -> list[range]:
    """Return the positions of words among the characters of a passage."""
    if not words:
        return []
    shown = "".join(low if len(low := character.lower()) == 1 else character for character in characters[first:end])
    pattern = "|".join(re.escape(word.lower()) for word in sorted(words, key=len, reverse=True))
    found = re.finditer(rf"(?<![^\W_])(?:{pattern})(?![^\W_])", shown)
    return [range(first + match.start(), first + match.end()) for match in found]


def _signs(beside: Iterable[str], texts: Iterable[str]) -> int:
    """Return the number of characters next to a letter, such as quotes, that match the passage."""
    signs = takewhile(lambda pair: pair[0] == pair[1] and not pair[0].isspace(), zip(beside, texts, strict=False))
    return sum(1 for _ in signs)


def find_passage(page: str, passage: str, place: float) -> range:
    """Return the position of a passage among the letters of a page, or of the longest part of it from either end."""
    if not passage:
        return range(0)
    if (whole := _nearest(page, passage, place)) is not None:
        return range(whole, whole + len(passage))
    first, last = _nearest(page, passage[:_END], place), _nearest(page, passage[-_END:], place)
    if first is None and last is None:
        return range(0)
    start = max(0, last + _END - len(passage)) if first is None and last is not None else first or 0
    stop = start + len(passage) if last is None or last < start else last + _END
    return range(start, min(len(page), stop))


def _nearest(page: str, part: str, place: float) -> int | None:
    spots = [match.start() for match in re.finditer(f"(?={re.escape(part)})", page)]
    return min(spots, key=lambda spot: abs(spot - place * len(page)), default=None)


def _letters(characters: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield the letters and digits in plain form, each with the index of its character."""
    for index, character in enumerate(characters):
        yield from ((letter, index) for letter in _plain(character))


def _plain(text: str) -> str:
    return "".join(_LETTER.findall(normalize("NFKC", text).casefold()))


def _box(text: pypdfium2.PdfTextPage, index: int) -> TextBox | None:
    box = TextBox(*text.get_charbox(index, loose=True))
    return None if box.is_empty() else box


def _lines(boxes: Iterable[TextBox]) -> Iterator[TextBox]:
    """Yield the boxes of characters, with adjacent ones merged."""
    line: TextBox | None = None
    for box in boxes:
        if line and _is_beside(line, box):
            line = line.around(box)
            continue
        if line:
            yield _wider(line)
        line = box
    if line:
        yield _wider(line)


def _is_beside(line: TextBox, box: TextBox) -> bool:
    height = min(line.top - line.bottom, box.top - box.bottom)
    overlap = min(line.top, box.top) - max(line.bottom, box.bottom)
    return overlap > height / 2 and -height < box.left - line.right < 3 * height


def _wider(box: TextBox) -> TextBox:
    return TextBox(box.left - _MARGIN, box.bottom, box.right + _MARGIN, box.top)


def _png(bitmap: pypdfium2.PdfBitmap) -> bytes:
    """Return an RGB or grey picture as PNG."""
    pixels, width, height = bytes(bitmap.buffer), bitmap.width, bitmap.height
    starts = range(0, height * bitmap.stride, bitmap.stride)
    rows = (b"\0" + pixels[start : start + width * bitmap.n_channels] for start in starts)
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if bitmap.n_channels == 1 else 2, 0, 0, 0)
    return _PNG + _part(b"IHDR", head) + _part(b"IDAT", zlib.compress(b"".join(rows), 6)) + _part(b"IEND", b"")


def _part(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
