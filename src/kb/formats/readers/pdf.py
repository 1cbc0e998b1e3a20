"""PDF: the text of each page, with words that were broken at line ends put together again."""

from __future__ import annotations

import re
import threading
from collections import Counter
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from unicodedata import normalize

import pypdfium2
from pypdfium2 import raw

from kb.api.errors import Unreadable
from kb.formats.containers.properties import first_date
from kb.formats.extracted import Extracted, Section
from kb.formats.text.builder import Heading
from kb.formats.text.encoding import clean, one_line
from kb.formats.text.titles import meaningful

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# PDFium keeps state of its own that no two threads may touch at once, not even through different documents.
_PDFIUM: Final = threading.Lock()

_REASONS: Final = {
    raw.FPDF_ERR_PASSWORD: "the PDF is encrypted: it needs a password to be read",
    raw.FPDF_ERR_SECURITY: "the PDF is protected in a way that is not supported",
}
_DAMAGED: Final = "the PDF is damaged: it cannot be opened"

_BREAK: Final = "\ufffe"  # what PDFium makes of a hyphen at the end of a line
_BROKEN_LINE: Final = re.compile(r"(?<=[^\W_])(?:[-\u2010]\n(?=[^\W_])|\xad\n?)")
_LONGEST_WORD: Final = 64
_SPACED_WORD: Final = re.compile(r"(?P<word>\S+)\s*")
_BLEED: Final = 2.0  # points that text may stand over the edge of its page
_WORD_START: Final = re.compile(rf"\w{{0,{_LONGEST_WORD}}}")
_WORD_END: Final = re.compile(rf"\w{{0,{_LONGEST_WORD}}}\Z")
_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
# Second halves that nearly always follow a hyphen, and first ones that nearly always stand before one.
_COMPOUND_ENDS: Final = frozenset(
    {
        *("aware", "based", "centric", "controlled", "dependent", "derived", "driven", "enabled", "free", "friendly"),
        *("generated", "independent", "induced", "like", "mediated", "only", "oriented", "powered", "related", "sized"),
        *("specific", "term", "wide"),
    }
)
_COMPOUND_STARTS: Final = frozenset({"self", "non"})
_PREFIXES: Final = frozenset({"inter", "over", "under"})  # longer than a syllable, and yet no words before a hyphen
_DATE: Final = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:([Z+-])(?:(\d\d)'?(\d\d)?)?)?")
_CONTROL: Final = re.compile("[\0-\x08\x0b-\x1f\x7f\uffff]")
_BLANK_LINES: Final = re.compile(r"[ \t]*\n(?:[ \t]*\n)+")
_LIGATURES: Final = {code: normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}


class _Vocabulary(NamedTuple):
    """The words that stand whole in a document, how often each, and what compounds with a hyphen end in."""

    words: Counter[str]
    ends: frozenset[str]


class _Pdf(NamedTuple):
    title: str | None
    date: str | None
    pages: list[str]
    outline: list[Heading]  # each `start` is a page's index


def read(data: bytes) -> Extracted:
    """Read a PDF's text, one section a page.

    Raises:
        Unreadable: the file is damaged or encrypted, or its pages hold no text.
    """
    with _PDFIUM, _opened(data) as document:
        pdf = _content(document)
    vocabulary = _vocabulary(pdf.pages)
    pages = [_joined(page, vocabulary) for page in pdf.pages]
    sections = list(_sections(pages, pdf.outline))
    return Extracted(pdf.title, "".join(pages), tuple(sections), date=pdf.date)


def _opened(data: bytes) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise Unreadable(_REASONS.get(error.err_code, _DAMAGED)) from error


def _content(document: pypdfium2.PdfDocument) -> _Pdf:
    texts = [_page_text(document, index) for index in range(len(document))]
    if not any(texts):
        raise Unreadable(_why_no_text(document, texts))
    pages = [
        f"[page {number} is damaged and could not be read]" if text is None else text
        for number, text in enumerate(texts, start=1)
    ]
    title, *dates = (
        _string(partial(document.get_metadata_value, name)) for name in ("Title", "CreationDate", "ModDate")
    )
    return _Pdf(meaningful(title), first_date(*map(_iso, dates)), pages, list(_outline(document)))


def _iso(date: str) -> str:
    """Return a date such as `D:20240501123000+02'00'` as ISO 8601 has it."""
    found = _DATE.match(date)
    if not found or date[4:5] == "-":
        return date
    year, month, day, hour, minute, second, zone, hours, minutes = found.groups()
    time = f"T{hour}:{minute or '00'}:{second or '00'}" if hour else ""
    offset = "Z" if zone == "Z" else f"{zone}{hours}:{minutes or '00'}" if hours else ""
    return "-".join(filter(None, (year, month, day))) + (time and time + offset)


def _string(get: Callable[[], str]) -> str:
    """Return a string of the document on one line; empty if it is not even well-formed."""
    try:
        return one_line(clean(get()))
    except UnicodeDecodeError:
        return ""


def _page_text(document: pypdfium2.PdfDocument, index: int) -> str | None:
    try:
        with closing(document[index]) as page:
            box = _Box(*page.get_bbox())
            if not _draw_annotations(page):
                return _visible_text(page, box)
        with closing(document[index]) as page:
            return _visible_text(page, box)
    except pypdfium2.PdfiumError:
        return None


def _draw_annotations(page: pypdfium2.PdfPage) -> bool:
    """Make what forms and text annotations show part of the page: PDFium extracts a page's own text only.

    It shows once the page is opened again, with boxes that may not be those the page had.
    """
    has_annotations: bool = raw.FPDFPage_GetAnnotCount(page) > 0
    if has_annotations:
        raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY)
    return has_annotations


class _Box(NamedTuple):
    left: float
    bottom: float
    right: float
    top: float

    def holds(self, other: _Box) -> bool:
        """Return whether `other` lies within, but for `_BLEED`."""
        return (
            self.left - _BLEED <= other.left
            and other.right <= self.right + _BLEED
            and self.bottom - _BLEED <= other.bottom
            and other.top <= self.top + _BLEED
        )

    def is_empty(self) -> bool:
        """Return whether it has no area."""
        return self.left >= self.right or self.bottom >= self.top

    def centre(self) -> _Box:
        """Return the point in the middle."""
        x, y = (self.left + self.right) / 2, (self.bottom + self.top) / 2
        return _Box(x, y, x, y)


def _visible_text(page: pypdfium2.PdfPage, box: _Box) -> str:
    """Return the text within the page's box: two pages that were cut from one spread share a content stream."""
    with closing(page.get_textpage()) as text:
        rects = (_Box(*text.get_rect(index)) for index in range(text.count_rects()))
        is_whole = box.is_empty() or all(map(box.holds, rects))
        return _tidy(text.get_text_range() if is_whole else _cropped(text, box))


def _cropped(text: pypdfium2.PdfTextPage, box: _Box) -> str:
    """Return the words that lie in `box` with any of their characters."""
    runs: list[range] = []
    codes = (raw.FPDFText_GetUnicode(text, index) for index in range(text.count_chars()))
    for word in _SPACED_WORD.finditer("".join(map(chr, codes))):
        if any(box.holds(_Box(*text.get_charbox(index)).centre()) for index in range(*word.span("word"))):
            joins = runs and runs[-1].stop == word.start()
            start = runs.pop().start if joins else word.start()
            runs.append(range(start, word.end()))
    return "\n".join(text.get_text_range(run.start, len(run)).strip() for run in runs)


def _why_no_text(document: pypdfium2.PdfDocument, texts: list[str | None]) -> str:
    whole = [index for index, text in enumerate(texts) if text is not None]
    if not whole:
        return "the PDF is damaged: it has no page that can be read"
    kinds = {kind for index in whole for kind in _object_kinds(document, index)}
    pages = "its only page holds" if len(texts) == 1 else f"its {len(texts)} pages hold"
    if raw.FPDF_PAGEOBJ_TEXT in kinds:
        if any(_holds_characters(document, index) for index in whole):
            return "no text: what there is lies outside its pages"
        return "no text: the fonts of the PDF do not say which characters they show"
    if raw.FPDF_PAGEOBJ_IMAGE in kinds:
        return f"no text: {pages} only images (a scan); OCR is not done"
    return f"no text: {pages} only drawings" if kinds else f"no text: {pages} nothing"


def _holds_characters(document: pypdfium2.PdfDocument, index: int) -> bool:
    with closing(document[index]) as page, closing(page.get_textpage()) as text:
        return bool(_tidy(text.get_text_range()))


def _object_kinds(document: pypdfium2.PdfDocument, index: int) -> set[int]:
    with closing(document[index]) as page:
        return {item.type for item in page.get_objects()} - {raw.FPDF_PAGEOBJ_FORM}


def _outline(document: pypdfium2.PdfDocument) -> Iterator[Heading]:
    for bookmark in document.get_toc():
        target = bookmark.get_dest()
        page, title = target.get_index() if target else None, _string(bookmark.get_title)
        if page is not None and title:
            yield Heading(page, bookmark.level, title)


def _sections(pages: list[str], outline: list[Heading]) -> Iterator[Section]:
    start = 0
    for number, (page, path) in enumerate(zip(pages, _paths(outline, len(pages)), strict=True), start=1):
        if page:
            yield Section(start, start + len(page), path, number)
        start += len(page)


def _paths(outline: list[Heading], count: int) -> Iterator[tuple[str, ...]]:
    """Yield the heading path of each page: that of the first bookmark to it, else of the last one to a page before."""
    first: dict[int, tuple[str, ...]] = {}
    last: dict[int, tuple[str, ...]] = {}
    above: list[Heading] = []
    for bookmark in outline:
        above = [higher for higher in above if higher.level < bookmark.level] + [bookmark]
        last[bookmark.start] = tuple(each.title for each in above)
        first.setdefault(bookmark.start, last[bookmark.start])
    path: tuple[str, ...] = ()
    for index in range(count):
        yield first.get(index, path)
        path = last.get(index, path)


def _tidy(text: str) -> str:
    text = _CONTROL.sub("", clean(text).translate(_LIGATURES))
    return _BLANK_LINES.sub("\n\n", _BROKEN_LINE.sub(_BREAK, text)).strip()


def _vocabulary(pages: list[str]) -> _Vocabulary:
    words = Counter(word for page in pages for word in _WORD.findall(_without_broken_words(page.lower())))
    ends = {word.rpartition("-")[2] for word in words if "-" in word}
    return _Vocabulary(words, _COMPOUND_ENDS.union(end for end in ends if len(end) > 3))


def _without_broken_words(page: str) -> str:
    first, *rest = page.split(_BREAK)
    kept = [first]
    for part in rest:
        kept[-1] = kept[-1].removesuffix(_last_word(kept[-1]))
        kept.append(part.removeprefix(_first_word(part)))
    return " ".join(kept)


def _joined(page: str, vocabulary: _Vocabulary) -> str:
    first, *rest = page.split(_BREAK)
    joined = [first]
    for part in rest:
        is_hyphenated = _keeps_hyphen(_last_word(joined[-1]), _first_word(part), vocabulary)
        joined.append(f"-{part}" if is_hyphenated else part)
    return f"{''.join(joined)}\n\n" if page else ""


def _first_word(text: str) -> str:
    found = _WORD_START.match(text)
    return found[0] if found else ""


def _last_word(text: str) -> str:
    found = _WORD_END.search(text[-_LONGEST_WORD:])
    return found[0] if found else ""


def _keeps_hyphen(left: str, right: str, vocabulary: _Vocabulary) -> bool:
    """Return whether the hyphen of a word broken at a line end belongs to it, as far as the document shows."""
    words, whole, compound = vocabulary.words, (left + right).lower(), f"{left}-{right}".lower()
    if words[whole] or words[compound]:
        return words[compound] > words[whole]
    is_capital = left.isupper() and right.isupper()
    if not is_capital and not (left.isalpha() and left[1:].islower() and right.islower() and len(right) > 1):
        return True
    return _is_compound(left.lower(), right.lower(), vocabulary)


def _is_compound(left: str, right: str, vocabulary: _Vocabulary) -> bool:
    """Return whether two halves look like words in their own right rather than like syllables of one."""
    is_left, is_right = left in vocabulary.words, right in vocabulary.words
    if left in _COMPOUND_STARTS and len(right) > 3:
        return True
    if right in vocabulary.ends and (is_left or len(left) > 3) and left not in _PREFIXES:
        return True
    return is_left and ((is_right and len(left) > 2 and len(right) > 3) or (len(left) > 3 and len(right) > 4))
