"""Tables of values: a row a line, and the names of the columns above whatever is cut out of it."""

from __future__ import annotations

from itertools import chain, dropwhile
from typing import TYPE_CHECKING

from kb.formats.text.encoding import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kb.formats.text.builder import TextBuilder


def write_table(text: TextBuilder, rows: Iterable[Sequence[str]], *, level: int) -> None:
    """Add the rows that hold anything; a first row that names the columns is a heading of this `level`."""
    remaining: Iterator[Sequence[str]] = dropwhile(lambda cells: not any(cells), map(_cells, rows))
    for first in remaining:
        if _names_columns(first):
            text.headed_row(level, " | ".join(first))
        else:
            remaining = chain([first], remaining)
        break
    for cells in remaining:
        if any(cells):
            text.line(" | ".join(cells))
    text.blank()


def _cells(row: Sequence[str]) -> list[str]:
    cells = [one_line(cell) for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _names_columns(cells: Sequence[str]) -> bool:
    """Return whether a row looks like names: several, all different, none of them a number."""
    named = [cell for cell in cells if cell]
    is_distinct = len(set(named)) == len(named) > 1
    return is_distinct and all(any(map(str.isalpha, cell)) for cell in named)
