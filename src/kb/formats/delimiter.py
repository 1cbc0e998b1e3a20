"""The character that separates the values of a table, and whether a text is a table."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final

_DELIMITERS: Final = ",;\t|"
_SAMPLE: Final = 50  # rows
_SAMPLE_CHARS: Final = 100_000
_LONGEST_FIELD: Final = 2**31 - 1

csv.field_size_limit(_LONGEST_FIELD)  # otherwise one long remark makes a table unreadable


def looks_delimited(content: str) -> bool:
    """Whether a text is a table, regardless of its name: several rows with the same number of values, three or more."""
    delimiter = detect_delimiter(content)
    try:
        widths = [len(row) for row in islice(parsed(content[:_SAMPLE_CHARS], delimiter), _SAMPLE) if row]
    except csv.Error:
        return False
    return len(widths) > 2 and len(set(widths)) == 1 and widths[0] > 2


def parsed(content: str, delimiter: str, *, has_quotes: bool = True) -> Iterator[list[str]]:
    """Yield the rows of a table; reading them raises `csv.Error` if the text is not a table."""
    lines = io.StringIO(content, newline="")
    if not has_quotes:
        return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, quoting=csv.QUOTE_NONE)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True)


def detect_delimiter(content: str) -> str:
    """Return the delimiter that gives most of the first rows the same number of values, and the most values."""
    return max(_DELIMITERS, key=lambda delimiter: _agreement(content[:_SAMPLE_CHARS], delimiter))


def _agreement(sample: str, delimiter: str) -> tuple[float, int]:
    try:
        widths = Counter(len(row) for row in islice(parsed(sample, delimiter), _SAMPLE) if row)
    except csv.Error:
        return 0, 0
    (width, count), *_ = widths.most_common(1) or [(1, 0)]
    return (count / widths.total() if width > 1 else 0), width
