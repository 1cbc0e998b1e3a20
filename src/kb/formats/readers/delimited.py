"""Comma-separated values (.csv, .tsv) with any separator: one line per row, under the column names."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from kb.formats.delimiter import detect_delimiter, parsed
from kb.formats.readers.csv_exports import read_references
from kb.formats.text.builder import TextBuilder
from kb.formats.text.encoding import decode
from kb.formats.text.extracted import Extracted
from kb.formats.text.tables import write_table


def read(data: bytes) -> Extracted:
    """Read a table of values; one that breaks the rules of CSV is read as plain text."""
    content = decode(data)
    try:
        if references := read_references(content):
            return references
        comments, table = _parts(content)
        try:
            return _table(comments, _whole(_rows(table), table))
        except _Unclosed:
            return _table(comments, _rows(table, has_quotes=False))
    except csv.Error:
        return Extracted.of_text(content)


class _Unclosed(Exception):
    """A quotation mark opens a value that never ends, so it is an ordinary character, such as the sign for inches."""


def _table(comments: Iterable[str], rows: Iterable[list[str]]) -> Extracted:
    text = TextBuilder()
    for comment in comments:
        text.line(comment)
    text.blank()
    write_table(text, rows, level=1)
    return text.build()


def _whole(rows: Iterable[list[str]], table: str) -> Iterator[list[str]]:
    """Yield rows; the last raises `_Unclosed` if its last value contains further rows."""
    last: list[str] = []
    for row in rows:
        yield last
        last = row
    if last and "\n" in last[-1].rstrip() and not table.rstrip().endswith('"'):
        raise _Unclosed
    yield last


def _parts(content: str) -> tuple[list[str], str]:
    """Return the comment lines above a table, and the table."""
    comments: list[str] = []
    rest = content
    while rest.startswith("#"):
        line, _, rest = rest.partition("\n")
        comments.append(line)
    if comments and _names_columns(comments[-1], rest):
        rest = f"{comments.pop()}\n{rest}"
    return comments, rest


def _names_columns(comment: str, table: str) -> bool:
    """Return whether a line that begins with `#` is a table's header and not a comment."""
    delimiter = detect_delimiter(table)
    names, values = (next(parsed(line, delimiter), []) for line in (comment, table.partition("\n")[0]))
    is_prose = comment.startswith("# ") and any(map(str.isalpha, "".join(values)))
    return len(names) == len(values) > 1 and not is_prose


def _rows(content: str, *, has_quotes: bool = True) -> Iterator[list[str]]:
    first, _, rest = content.partition("\n")
    if first.lower().startswith("sep=") and len(first) == len("sep=;"):  # a line that Excel writes and hides
        return parsed(rest, first[-1], has_quotes=has_quotes)
    return parsed(content, detect_delimiter(content), has_quotes=has_quotes)
