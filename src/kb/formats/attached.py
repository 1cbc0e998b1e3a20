"""How many files come out of one file, and how large they are together: those beyond are counted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kb.api.omitted import together

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kb.formats.extracted import Attachment, Extracted

MOST_FILES: Final = 1000
"""How many files inside another are looked at; of these, the first become documents."""


def attached_room(size: int) -> int:
    """Return how many bytes of files a file of `size` may give: they are packed in it, not compressed."""
    return 2 * size + (1 << 20)


def limited(extracted: Extracted, size: int) -> Extracted:
    """Return a document with those of its files for which a file of `size` bytes has room."""
    files = tuple(_fitting(extracted.attachments[:MOST_FILES], attached_room(size)))
    left_out = len(extracted.attachments) - len(files)
    return replace(extracted, attachments=files, omitted=together(extracted.omitted, {"files": left_out}))


def _fitting(files: Iterable[Attachment], room: int) -> Iterator[Attachment]:
    for file in files:
        if len(file.data) <= room:
            room -= len(file.data)
            yield file
