"""The parts of a file with many documents: their number and their names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Generic, NamedTuple, TypeVar

from kb.formats.text.encoding import clean
from kb.formats.text.extracted import Attachment, Extracted

MAX_PARTS: Final = 100
"""The maximum number of files from one; a larger file is split into files of its kind, which become documents."""

MAX_NAME_CHARS: Final = 100
NOT_IN_NAMES: Final = re.compile(r"[\\/:*?\"<>|#\0-\x1f]+")

_BATCH: Final = re.compile(r"\d{4,}-\d{4,}\.(?:mbox|enex|csv|json)")

Item = TypeVar("Item")


class Batch(NamedTuple, Generic[Item]):
    """Items in one file: the number of the first, counted from one, and the highest number that fits into the file."""

    first: int
    last: int
    items: Sequence[Item]


def batches(items: Sequence[Item]) -> Iterator[Batch[Item]]:
    """Yield at most `MAX_PARTS` batches in the items' order, so that the first ones stay the same as a file grows."""
    size = MAX_PARTS
    while size * MAX_PARTS < len(items):
        size *= MAX_PARTS
    for start in range(0, len(items), size):
        yield Batch(start + 1, start + size, items[start : start + size])


def contents(title: str, count: str, names: Iterable[str], files: Iterable[Attachment]) -> Extracted:
    """Return a document that lists the documents in a file, which are its attachments."""
    listed = Extracted.of_text(clean(f"{count}\n\n" + "".join(f"{name}\n" for name in names)), title)
    return replace(listed, attachments=tuple(files))


def front_matter_lines(fields: Mapping[str, object]) -> str:
    """Return the fields that have a value as the front matter of a Markdown file."""
    given = (f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in fields.items() if value)
    return f"---\n{''.join(given)}---\n"


def batch_name(batch: Batch[Item], suffix: str) -> str:
    return f"{batch.first:04}-{batch.first + len(batch.items) - 1:04}{suffix}"


def is_batch(filename: str) -> bool:
    return _BATCH.fullmatch(filename) is not None


def filename_from_title(title: str, unfit: re.Pattern[str] = NOT_IN_NAMES) -> str:
    """Return a title as a file name without a suffix; it may be empty."""
    return unfit.sub("-", title)[:MAX_NAME_CHARS].strip()
