"""A page of a PDF: its visible text, and the heading at its beginning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import dropwhile, takewhile
from statistics import median
from typing import Final, NamedTuple
from unicodedata import normalize

import pypdfium2
from pypdfium2 import raw

from kb.formats.readers.pdf_annotations import Files, add_pinned
from kb.formats.readers.pdf_box import Letters, TextBox, text_boxes
from kb.formats.readers.pdf_columns import in_columns, may_have_columns
from kb.formats.text.encoding import clean, one_line
from kb.formats.text.hyphens import BREAK
from kb.formats.text.running_lines import MOST_LINES
from kb.formats.text.titles import names_chapter

_BROKEN_LINE: Final = re.compile(r"(?<=[^\W_])(?:[-\u2010]\n(?=[^\W_])|\xad\n?)")
_SPACED_WORD: Final = re.compile(r"(?P<word>\S+)\s*")
_BEGINNING: Final = 300  # characters
_SAMPLE: Final = 60  # characters of the page that are measured
_SMALLEST: Final = 0.1
_LARGER: Final = 1.2
_SAME: Final = 0.95
_FEWEST_LETTERS: Final = 8
_LONGEST_TITLE: Final = 200
_LONGEST_STAMP: Final = 100  # characters that an archive or a court prints on each page of a scan
_MUCH_OF_PAGE, _MOST_OF_PAGE = 0.4, 0.8
_MARGIN: Final = 0.09  # of a page's height, above and below its text
_SAMPLE_LINES: Final = 20
_NEWLINE: Final = "\r\n"
_TEXT_LINE: Final = re.compile(rf"[^\r\n{BREAK}]+")
_LINE_END: Final = re.compile(r"(?<=\S)( ?)\r\n( ?)(?=\S)")
_ASTRAL: Final = re.compile("[\U00010000-\U0010ffff]")  # PDFium counts these twice
_STEP: Final = 0.87  # superscripts and subscripts have at most this fraction of the larger letters' height
_OVERLAP, _IN_LINE = 0.25, 0.8
_TOUCHING, _NEAR = 0.3, 1.3
_BLANK: Final = 0.2
_CONTROL: Final = re.compile("[\0-\x08\x0b-\x1f\x7f\uffff]")
_BLANK_LINES: Final = re.compile(r"[ \t]*\n(?:[ \t]*\n)+")
_LIGATURES: Final = {code: normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}


class Page(NamedTuple):
    """A page: its text, the comments on it, and the lines near its upper and lower edge, which may be in the text."""

    text: str
    heading: str | None = None
    is_scan: bool = False
    comments: Sequence[str] = ()
    margins: frozenset[str] = frozenset()


def read_page(document: pypdfium2.PdfDocument, index: int, files: Files, *, with_heading: bool = False) -> Page | None:
    """Return a page, with its heading if requested; None if the page is damaged.

    The files that are pinned to it are added to `files`.
    """
    try:
        with closing(document[index]) as page:
            box = TextBox(*page.get_bbox())
            comments = add_pinned(document, page, files)
            if not draw_annotations(page):
                return _page(page, box, comments, with_heading=with_heading)
        with closing(document[index]) as page:
            return _page(page, box, comments, with_heading=with_heading)
    except pypdfium2.PdfiumError:
        return None


def _page(page: pypdfium2.PdfPage, box: TextBox, comments: list[str], *, with_heading: bool) -> Page:
    with closing(page.get_textpage()) as text:
        # Two pages that were cut from one spread share a content stream.
        is_whole = box.is_empty() or all(map(box.holds, text_boxes(text)))
        written = text.get_text_range() if is_whole else ""
        letters = Letters(text, written)
        shown = tidy(_in_lines(letters, written) if is_whole else _cropped(text, box))
        heading = _heading(text, letters, box) if with_heading else None
        margins = frozenset(_in_margins(letters, written, box))
        return Page(shown, heading, _is_scan(page, len(shown)), comments, margins)


def _is_scan(page: pypdfium2.PdfPage, characters: int) -> bool:
    """Return whether pictures cover a page that has no text, or only a stamp."""
    if characters > _LONGEST_STAMP:
        return False
    width, height = page.get_size()
    pictures = (item for item in page.get_objects(max_depth=1) if _holds_picture(page, item))
    try:
        covered = sum(_area(*item.get_bounds()) for item in pictures)
    except pypdfium2.PdfiumError:  # one of its objects is damaged, but perhaps not the rest of the page
        return False
    return bool(covered > (_MOST_OF_PAGE if characters else _MUCH_OF_PAGE) * width * height)


def _holds_picture(page: pypdfium2.PdfPage, item: pypdfium2.PdfObject) -> bool:
    if item.type == raw.FPDF_PAGEOBJ_FORM:
        return next(page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], form=item, level=1), None) is not None
    return isinstance(item, pypdfium2.PdfImage)


def _area(left: float, bottom: float, right: float, top: float) -> float:
    return max(0.0, right - left) * max(0.0, top - bottom)


def draw_annotations(page: pypdfium2.PdfPage) -> bool:
    """Make the text of forms and annotations part of the page: PDFium extracts only a page's own text.

    It appears when the page is opened again, possibly with different boxes.
    """
    has_annotations: bool = raw.FPDFPage_GetAnnotCount(page) > 0
    if has_annotations:
        raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY)
    return has_annotations


def _in_lines(letters: Letters, written: str) -> str:
    """Return the text of a page in reading order, without the line ends that PDFium sees around superscripts."""
    if _ASTRAL.search(written):
        return written
    has_columns = may_have_columns(written, letters.at)
    parts = in_columns(written, letters.at) if has_columns else [range(len(written))]
    return "".join(_after(_joined(letters, written, part)) for part in parts).removesuffix(_NEWLINE)


def _joined(letters: Letters, written: str, part: range) -> str:
    pieces, at = list[str](), part.start
    for end in _LINE_END.finditer(written, part.start, part.stop):
        pieces += [written[at : end.start()], _between(letters, end)]
        at = end.end()
    return "".join([*pieces, written[at : part.stop]])


def _in_margins(letters: Letters, written: str, box: TextBox) -> Iterator[str]:
    """Yield the lines in the margins among the first and the last lines of a page, unless they are larger than most."""
    lines = [line for line in _TEXT_LINE.finditer(written) if line[0].strip()]
    low, high = box.bottom + _MARGIN * box.height, box.top - _MARGIN * box.height
    sample = (letters.at(line.start()) for line in lines[:: max(1, len(lines) // _SAMPLE_LINES)])
    usual = median([place.height for place in sample if place] or [0.0])
    for line in lines if len(lines) <= 2 * MOST_LINES else (*lines[:MOST_LINES], *lines[-MOST_LINES:]):
        place = letters.at(line.start())
        if place and place.height <= _LARGER * usual and not low < place.centre().top < high:
            yield tidy(line[0])


def _after(part: str) -> str:
    return part if part.endswith(BREAK) else part + _NEWLINE


def _between(letters: Letters, end: re.Match[str]) -> str:
    """Return the separator of two lines: an empty string or a space if one continues the other."""
    before, after = letters.at(end.start() - 1), letters.at(end.end())
    if before is None or after is None:
        return end[0]
    heights = before.top - before.bottom, after.top - after.bottom
    gap, overlap = after.left - before.right, min(before.top, after.top) - max(before.bottom, after.bottom)
    is_step = min(heights) <= _STEP * max(heights)
    is_beside = overlap >= (_OVERLAP if is_step else _IN_LINE) * min(heights)
    if not is_beside or not -_TOUCHING <= gap / max(heights) <= _NEAR:
        return end[0]
    return " " if end[1] or end[2] or gap > _BLANK * max(heights) else ""


def _heading(text: pypdfium2.PdfTextPage, letters: Letters, box: TextBox) -> str | None:
    """Return the text in the largest letters at the beginning, if they are larger than most and form some words."""
    count = text.count_chars()
    beginning = "".join(chr(raw.FPDFText_GetUnicode(text, index)) for index in range(min(count, _BEGINNING)))
    words = list(_SPACED_WORD.finditer(beginning))
    heights = [_height(letters, word.start(), box) for word in words]
    sample = [_height(letters, index, box) for index in range(0, count, max(1, count // _SAMPLE))]
    largest = max(heights, default=0.0)
    if largest < _LARGER * median([*filter(None, heights + sample), _SMALLEST]):
        return None
    below = dropwhile(lambda word: word[1] < _SAME * largest, zip(words, heights, strict=True))
    run = takewhile(lambda word: word[1] >= _SAME * largest, below)
    title = one_line(tidy(" ".join(word["word"] for word, _ in run)).replace(BREAK, "-"))
    is_named = " " in title and sum(map(str.isalpha, title)) >= _FEWEST_LETTERS
    return title if is_named and len(title) <= _LONGEST_TITLE and not names_chapter(title) else None


def _height(letters: Letters, index: int, box: TextBox) -> float:
    """Return the height of a character; 0 if it is rotated or not on the page."""
    place = letters.of(index)
    return place.top - place.bottom if place and (box.is_empty() or box.holds(place.centre())) else 0.0


def _cropped(text: pypdfium2.PdfTextPage, box: TextBox) -> str:
    """Return the words with at least one character in `box`."""
    runs: list[range] = []
    codes = (raw.FPDFText_GetUnicode(text, index) for index in range(text.count_chars()))
    for word in _SPACED_WORD.finditer("".join(map(chr, codes))):
        if any(box.holds(TextBox(*text.get_charbox(index)).centre()) for index in range(*word.span("word"))):
            joins = runs and runs[-1].stop == word.start()
            start = runs.pop().start if joins else word.start()
            runs.append(range(start, word.end()))
    return "\n".join(text.get_text_range(run.start, len(run)).strip() for run in runs)


def tidy(text: str) -> str:
    text = _CONTROL.sub("", clean(text).translate(_LIGATURES))
    return _BLANK_LINES.sub("\n\n", _BROKEN_LINE.sub(BREAK, text)).strip()
