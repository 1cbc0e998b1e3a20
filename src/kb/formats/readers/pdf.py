"""PDF: the text of each page, with words that were broken at line ends joined again."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import pypdfium2
from pypdfium2 import raw

from kb.api.errors import Unreadable
from kb.api.job_error_phrases import NO_OCR
from kb.formats.readers.pdf_annotations import Files, add_attached
from kb.formats.readers.pdf_page import Page, read_page, tidy
from kb.formats.text.builder import Heading, TextBuilder
from kb.formats.text.dates import first_date
from kb.formats.text.encoding import clean, one_line
from kb.formats.text.external_types import Opaque
from kb.formats.text.extracted import Extracted, Scan, Section, attached_room
from kb.formats.text.headers_footers import write_margins
from kb.formats.text.hyphens import collect_words, join_words
from kb.formats.text.running_lines import Sheet, with_whole_sentences, without_running_lines
from kb.formats.text.titles import meaningful

# PDFium has global state, so only one thread at a time may use it, even for different documents.
PDFIUM: Final = threading.Lock()

_REASONS: Final = {
    raw.FPDF_ERR_PASSWORD: "the PDF is encrypted and needs a password",
    raw.FPDF_ERR_SECURITY: "the PDF is protected in a way that kb does not support",
}
_DAMAGED: Final = "the PDF is damaged: kb cannot open it"

_DATE: Final = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:([Z+-])(?:(\d\d)'?(\d\d)?)?)?")


class _Pdf(NamedTuple):
    title: str | None
    date: str | None
    pages: list[str]
    margins: list[str]  # the lines of headers and footers
    outline: list[Heading]  # each `start` is a page's index
    scans: list[int]  # also page indexes
    files: Files


def read(data: bytes) -> Extracted:
    """Read a PDF's text, one section per page.

    Raises:
        Unreadable: the file is damaged or encrypted, or its pages contain no text.
    """
    with PDFIUM, opened(data) as document:
        pdf = _content(document, Files(attached_room(len(data))))
    vocabulary = collect_words(pdf.pages)
    pages = [join_words(page, vocabulary) for page in pdf.pages]
    paths = list(_paths(pdf.outline, len(pages)))
    scans = tuple(Scan(index + 1, paths[index]) for index in pdf.scans)
    text, sections = "".join(pages), list(_sections(pages, paths))
    margins = TextBuilder()
    write_margins(margins, (join_words(line, vocabulary) for line in pdf.margins))
    below = margins.build()
    sections += [
        replace(section, start=len(text) + section.start, end=len(text) + section.end) for section in below.sections
    ]
    return Extracted(
        pdf.title,
        text + below.text,
        tuple(sections),
        tuple(pdf.files.found),
        date=pdf.date,
        scans=scans,
        omitted=pdf.files.omitted(),
    )


def opened(data: bytes) -> pypdfium2.PdfDocument:
    """Return the document with its filled-in forms; the caller must hold `PDFIUM`.

    Raises:
        Unreadable: it is damaged or encrypted.
    """
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise Unreadable(_REASONS.get(error.err_code, _DAMAGED)) from error
    with suppress(pypdfium2.PdfiumError):  # PDFium draws the fields that the program that filled them did not draw
        document.init_forms()
    return document


def _content(document: pypdfium2.PdfDocument, files: Files) -> _Pdf:
    name, *dates = (_string(partial(document.get_metadata_value, key)) for key in ("Title", "CreationDate", "ModDate"))
    title = meaningful(name)
    add_attached(document, files)
    pages = [
        read_page(document, index, files, with_heading=index == 0 and title is None) for index in range(len(document))
    ]
    if not (files.found or any(page and (page.text or page.comments) for page in pages)):
        raise _no_text(document, pages)
    title = title or (pages[0].heading if pages[0] else None)
    texts, margins = _texts(pages, title or "")
    if files.found and texts:
        names = ", ".join(file.filename for file in files.found)
        texts[-1] = f"{texts[-1]}\nAttachments: {names}".lstrip()
    scans = [index for index, page in enumerate(pages) if page and page.is_scan]
    return _Pdf(title, first_date(*map(_iso, dates)), texts, margins, list(_outline(document)), scans, files)


def _texts(pages: list[Page | None], title: str) -> tuple[list[str], list[str]]:
    """Return the text of each page, with comments and without headers and footers, and the lines of the latter."""
    sheets = [
        Sheet(page.text, frozenset(line for line in page.margins if number > 1 or line not in title))
        if page
        else Sheet(f"[page {number} is damaged and could not be read]")
        for number, page in enumerate(pages, start=1)
    ]
    texts, margins = without_running_lines(sheets)
    comments = [[f"Comment: {comment}" for comment in page.comments] if page else [] for page in pages]
    whole = with_whole_sentences(texts)
    shown = ["\n".join(filter(None, (text, *said))) for text, said in zip(whole, comments, strict=True)]
    return shown, [line for line in margins if line not in title]


def _iso(date: str) -> str:
    """Return a date such as `D:20240501123000+02'00'` in ISO 8601."""
    match = _DATE.match(date)
    if not match or date[4:5] == "-":
        return date
    year, month, day, hour, minute, second, zone, hours, minutes = match.groups()
    time = f"T{hour}:{minute or '00'}:{second or '00'}" if hour else ""
    offset = "Z" if zone == "Z" else f"{zone}{hours}:{minutes or '00'}" if hours else ""
    return "-".join(filter(None, (year, month, day))) + (time and time + offset)


def _string(get: Callable[[], str]) -> str:
    try:
        return one_line(clean(get()))
    except UnicodeDecodeError:
        return ""


def _no_text(document: pypdfium2.PdfDocument, read: list[Page | None]) -> Unreadable:
    whole = [index for index, page in enumerate(read) if page]
    if not whole:
        return Unreadable("the PDF is damaged: kb cannot read any of its pages")
    kinds = {kind for index in whole for kind in _object_kinds(document, index)}
    pages = "its only page has" if len(read) == 1 else f"its {len(read)} pages have"
    if raw.FPDF_PAGEOBJ_TEXT in kinds:
        if any(_holds_characters(document, index) for index in whole):
            return Unreadable("no text: all text is outside its pages")
        reason = f"no text: its fonts do not map glyphs to characters; {NO_OCR}"
        return Opaque(reason, "scan", len(read))
    if raw.FPDF_PAGEOBJ_IMAGE in kinds:
        return Opaque(f"no text: {pages} only images (a scan); {NO_OCR}", "scan", len(read))
    return Unreadable(f"no text: {pages} only drawings" if kinds else f"no text: {pages} nothing")


def _holds_characters(document: pypdfium2.PdfDocument, index: int) -> bool:
    with closing(document[index]) as page, closing(page.get_textpage()) as text:
        return bool(tidy(text.get_text_range()))


def _object_kinds(document: pypdfium2.PdfDocument, index: int) -> set[int]:
    with closing(document[index]) as page:
        return {item.type for item in page.get_objects()} - {raw.FPDF_PAGEOBJ_FORM}


def _outline(document: pypdfium2.PdfDocument) -> Iterator[Heading]:
    for bookmark in document.get_toc():
        target = bookmark.get_dest()
        page, title = target.get_index() if target else None, _string(bookmark.get_title)
        if page is not None and title:
            yield Heading(page, bookmark.level, title)


def _sections(pages: list[str], paths: list[tuple[str, ...]]) -> Iterator[Section]:
    start = 0
    for number, (page, path) in enumerate(zip(pages, paths, strict=True), start=1):
        if page:
            yield Section(start, start + len(page), path, number)
        start += len(page)


def _paths(outline: list[Heading], count: int) -> Iterator[tuple[str, ...]]:
    """Yield the heading path of each page, from its first bookmark, or failing that, from the last one before it."""
    first: dict[int, tuple[str, ...]] = {}
    last: dict[int, tuple[str, ...]] = {}
    above: list[Heading] = []
    for bookmark in outline:
        above = [higher for higher in above if higher.level < bookmark.level] + [bookmark]
        last[bookmark.start] = tuple(heading.title for heading in above)
        first.setdefault(bookmark.start, last[bookmark.start])
    path: tuple[str, ...] = ()
    for index in range(count):
        yield first.get(index, path)
        path = last.get(index, path)
