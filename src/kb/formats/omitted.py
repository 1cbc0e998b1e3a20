"""The last line of a document, which says what of its file was not read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kb.api.omitted import phrase

if TYPE_CHECKING:
    from kb.formats.extracted import Extracted

BEGINNING: Final = "Not read: "


def with_line(extracted: Extracted) -> Extracted:
    """Return a document whose last line says what was not read, if anything; the line ends its last section."""
    if not extracted.omitted or not extracted.sections:
        return extracted
    *others, last = extracted.sections
    text = f"{extracted.text.rstrip()}\n\n{BEGINNING}{phrase(extracted.omitted)}\n"
    if last.start > len(text):
        return extracted
    return replace(extracted, text=text, sections=(*others, replace(last, end=len(text))))
