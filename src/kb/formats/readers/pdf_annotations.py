"""Additions to the text of a PDF: files, for the whole document or pinned to a page, and comments."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pypdfium2
from pypdfium2 import raw

from kb.formats.text.batches import MAX_PARTS
from kb.formats.text.encoding import clean, one_line
from kb.formats.text.extracted import Attachment

_MOST_ANNOTATIONS: Final = 10_000
"""The maximum number of annotations read per page."""

_COMMENTS: Final = frozenset(
    {
        *(raw.FPDF_ANNOT_TEXT, raw.FPDF_ANNOT_HIGHLIGHT, raw.FPDF_ANNOT_UNDERLINE, raw.FPDF_ANNOT_SQUIGGLY),
        *(raw.FPDF_ANNOT_STRIKEOUT, raw.FPDF_ANNOT_SQUARE, raw.FPDF_ANNOT_CIRCLE, raw.FPDF_ANNOT_POLYGON),
        *(raw.FPDF_ANNOT_POLYLINE, raw.FPDF_ANNOT_LINE, raw.FPDF_ANNOT_INK, raw.FPDF_ANNOT_CARET),
    }
)
_CONTENTS: Final = b"Contents"


@dataclass(slots=True)
class Files:
    """The files of a PDF within the limits on their number and size; the others are counted."""

    room: int
    found: list[Attachment] = field(default_factory=list)
    left_out: int = 0

    def add(self, file: pypdfium2.PdfAttachment) -> None:
        """Add a file, unless an equal one was added before."""
        try:
            name, data = one_line(clean(file.get_name())), self._data(file)
        except (pypdfium2.PdfiumError, UnicodeDecodeError):
            self.left_out += 1
            return
        if data is None:
            self.left_out += 1
        elif data and (same := Attachment(name or "attachment", data)) not in self.found:
            self.room -= len(data)
            self.found.append(same)

    def omitted(self) -> dict[str, int]:
        """Return the number of files that are left out, if any."""
        return {"files": self.left_out} if self.left_out else {}

    def _data(self, file: pypdfium2.PdfAttachment) -> bytes | None:
        if len(self.found) >= MAX_PARTS:
            return None
        size = ctypes.c_ulong()
        raw.FPDFAttachment_GetFile(file, None, 0, size)
        if size.value > self.room:
            return None
        return bytes(file.get_data()) if size.value else b""


def add_attached(document: pypdfium2.PdfDocument, files: Files) -> None:
    count = max(0, document.count_attachments())
    for index in range(min(count, MAX_PARTS)):
        try:
            file = document.get_attachment(index)
        except pypdfium2.PdfiumError:  # its entry is damaged
            files.left_out += 1
        else:
            files.add(file)
    files.left_out += max(0, count - MAX_PARTS)


def add_pinned(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage, files: Files) -> list[str]:
    """Add the files that are pinned to a page, and return the comments on it."""
    comments = list[str]()
    for annotation in _annotations(page):
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if kind == raw.FPDF_ANNOT_FILEATTACHMENT:
            if file := raw.FPDFAnnot_GetFileAttachment(annotation):
                files.add(pypdfium2.PdfAttachment(file, document))
            else:
                files.left_out += 1
        elif kind in _COMMENTS and (words := _contents(annotation)):
            comments.append(words)
    return list(dict.fromkeys(comments))


def _annotations(page: pypdfium2.PdfPage) -> Iterator[raw.FPDF_ANNOTATION]:
    for index in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_ANNOTATIONS)):
        if annotation := raw.FPDFPage_GetAnnot(page, index):
            yield annotation
            raw.FPDFPage_CloseAnnot(annotation)


def _contents(annotation: raw.FPDF_ANNOTATION) -> str:
    size = raw.FPDFAnnot_GetStringValue(annotation, _CONTENTS, None, 0)
    if size <= 2:  # even an empty string has a terminator
        return ""
    buffer = (raw.FPDF_WCHAR * (size // 2))()
    raw.FPDFAnnot_GetStringValue(annotation, _CONTENTS, buffer, size)
    return one_line(clean(bytes(buffer)[:-2].decode("utf-16-le", "replace")))
