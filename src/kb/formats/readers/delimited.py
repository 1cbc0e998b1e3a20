"""Comma-separated values (.csv, .tsv), whatever separates them: a row a line, under the names of the columns."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from kb.formats.extracted import Extracted
from kb.formats.sniff import delimiter_of, parsed
from kb.formats.text.builder import TextBuilder
from kb.formats.text.encoding import decode
from kb.formats.text.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Iterator


def read(data: bytes) -> Extracted:
    """Read a table of values; one that breaks the rules of CSV is read as the text it is."""
    content = decode(data)
    text = TextBuilder()
    try:
        write_table(text, _rows(content), level=1)
    except csv.Error:
        return Extracted.of_text(content)
    return text.build()


def _rows(content: str) -> Iterator[list[str]]:
    first, _, rest = content.partition("\n")
    if first.lower().startswith("sep=") and len(first) == len("sep=;"):  # a line that Excel writes and hides
        return parsed(rest, first[-1])
    return parsed(content, delimiter_of(content))
