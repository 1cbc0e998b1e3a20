"""Tables of values: one line per row, with the column names in the heading above each part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, groupby, islice, pairwise, zip_longest
from typing import Final, NamedTuple

from kb.formats.text.builder import LONGEST_HEADING, TextBuilder
from kb.formats.text.encoding import one_line

_HEAD: Final = 30  # rows to search for a table's column names
_LONGEST_ROW: Final = 600  # characters; a longer row does not fit a chunk
_LONGEST_LINE: Final = 250  # characters per line of a row that is split into several lines
_LONGEST_BARE: Final = 400  # the same without room for all column names
_BARE_KEY: Final = 40  # characters of the row's name in such a line
_LONGEST_LABEL: Final = 60
_BAR: Final = " | "
_KEY_CELLS: Final = 3  # the number of first cells that may contain the row's name
_MOST_GROWTH, _FREE_GROWTH = 1.5, 30_000
"""The maximum length of a table with column names: this factor times its values, plus this number of characters."""


class Row(list[str]):
    """The cells of a row, and the notes on them, which follow below it."""

    def __init__(self, cells: Iterable[str] = (), notes: Sequence[str] = ()) -> None:
        super().__init__(cells)
        self.notes = notes

    def after(self, margin: int) -> Row:
        return Row(self[margin:], self.notes) if margin else self


class _Header(NamedTuple):
    """The header of a table, from row `start` to `end`, with its column names."""

    start: int
    end: int
    names: Row


def write_table(text: TextBuilder, rows: Iterable[Sequence[str]], *, level: int) -> None:
    """Add the non-empty rows; the column names, and a title above them, become headings from `level` on.

    After an empty row, another table may begin.
    """
    writer = _TableWriter(text, level)
    for is_filled, block in groupby(map(_cells, rows), key=any):
        if is_filled:
            writer.write(block)
        else:
            writer.write_notes(block)
    writer.end()


class _TableWriter:
    def __init__(self, text: TextBuilder, level: int) -> None:
        self._text = text
        self._level = level
        self._names: Row = Row()
        self._margin = 0  # empty columns on the left
        self._is_wide = False
        self._room = float(_FREE_GROWTH)
        self._waiting: list[Row] = []  # single cells, which may be the title of the next table

    def write(self, block: Iterator[Row]) -> None:
        rows = list(islice(block, _HEAD))
        margin = min(next(index for index, cell in enumerate(row) if cell) for row in rows)
        head = [row.after(margin) for row in rows]
        header = _header(head, must_contrast=bool(self._names))
        if header:
            titles, self._waiting = self._waiting + head[: header.start], []
            self._begin(header, titles, head[header.start : header.end])
            rows = rows[header.end :]
        elif len(self._waiting) + len(head) < _HEAD and all(len(row) == 1 for row in head):
            self._waiting += head
            return
        if header or not self._names:
            self._margin = margin
        self._write_waiting()
        for row in chain(rows, block):
            self._write_row(row.after(self._margin) if self._margin and not any(row[: self._margin]) else row)

    def write_notes(self, rows: Iterable[Row]) -> None:
        for note in chain.from_iterable(row.notes for row in rows):
            self._write_waiting()
            self._text.line(note)

    def end(self) -> None:
        """Add the rows that were kept as a possible title."""
        self._write_waiting()
        self._text.blank()
        if self._names:
            self._text.close(self._level)

    def _begin(self, header: _Header, titles: list[Row], rows: list[Row]) -> None:
        level, names = self._level, header.names
        if titles and len(titles[0]) == 1:
            title = titles.pop(0)
            self._text.heading(level, title[0])
            self.write_notes([title])
            level += 1
        for row in titles:
            self._text.line(_line(row))
            self.write_notes([row])
        self._names, self._is_wide = names, len(_line(names)) > LONGEST_HEADING
        heading = f"{_line(names[:_KEY_CELLS])} | … ({len(names)} columns)" if self._is_wide else _line(names)
        self._text.headed_rows(level, heading, [_line(row) for row in rows])
        self.write_notes(rows)

    def _write_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for row in waiting:
            self._text.line(_line(row))
            self.write_notes([row])

    def _write_row(self, row: Row) -> None:
        line = _line(row)
        if self._names and (self._is_wide or len(line) > _LONGEST_ROW):
            named = [
                (name[:_LONGEST_LABEL], cell) for name, cell in zip_longest(self._names, row, fillvalue="") if cell
            ]
            pairs = [(f"{name}: {cell}" if name else cell, cell) for name, cell in named]
            more = max(0.0, sum(len(pair) + len(_BAR) for pair, _ in pairs) - _MOST_GROWTH * len(line))
            names_all = more <= self._room
            self._room -= more if names_all else 0
            for part in _labelled(row, pairs, names_all=names_all):
                self._text.line(part)
        else:
            self._text.line(line)
        self.write_notes([row])


def _labelled(row: Row, pairs: Sequence[tuple[str, str]], *, names_all: bool) -> Iterator[str]:
    """Yield a long row on several lines, each with the row's name and the column names.

    Unless `names_all`, only the first value of each line has its column name.
    """
    line, key, longest = "", _key(row), _LONGEST_LINE if names_all else _LONGEST_BARE
    key = key if names_all else key[:_BARE_KEY]
    for pair, cell in pairs:
        if line and len(line) + len(pair if names_all else cell) > longest:
            yield line
            line = f"{key}{_BAR}{pair}"
        elif line:
            line += f"{_BAR}{pair if names_all else cell}"
        else:
            line = pair
    yield line


def _key(row: Row) -> str:
    """Return a row's name: its first cells up to one with a word in it, or the first one."""
    first = row[:_KEY_CELLS]
    words = next((index for index, cell in enumerate(first) if _has_word(cell)), 0)
    return _line([cell[:_LONGEST_LABEL] for cell in first[: words + 1] if cell])


def _header(head: list[Row], *, must_contrast: bool) -> _Header | None:
    """Return the header of a table: the first row as wide as the table, if it looks like names."""
    *_, second, _ = [1, 1, *sorted(map(len, head))]  # a single row may be wider
    width = second if len(head) > 2 else len(head[-1])
    for index, (cells, below) in enumerate(zip(head, [*head[1:], Row()], strict=True)):
        after = head[index + 2] if index + 2 < len(head) else Row()
        if width > 1 and (names := _grouped_names(cells, below, after)):
            return _Header(index, index + 2, names)
        if len(cells) > 1 and len(cells) * 4 >= width * 3 and len([*filter(None, cells)]) * 3 >= width * 2:
            is_header = _names_columns(cells) and (_contrasts(cells, below) or not must_contrast)
            return _Header(index, index + 1, cells) if is_header else None
    return None


def _names_columns(cells: Row) -> bool:
    """Return whether a row looks like names: several different words, or consecutive years."""
    named = [cell for cell in cells if cell]
    years = [int(cell) for cell in named if _is_year(cell)]
    is_series = len(years) != 1 and all(abs(later - earlier) == 1 for earlier, later in pairwise(years))
    return (
        len(named) > 1 and _are_distinct(named) and is_series and all(map(_is_name, named)) and len(years) < len(named)
    )


def _grouped_names(upper: Row, lower: Row, below: Row) -> Row | None:
    """Return column names that span two rows: an upper name applies until the next one."""
    pairs = list(zip_longest(upper, lower, fillvalue=""))
    above, under = [cell for cell in upper if cell], [cell for cell in lower if cell]
    if not (len(above) > 1 and len(under) > 1 and all(map(_is_name, above + under)) and _contrasts(lower, below)):
        return None
    has_gap = not all(upper) or not all(lower) or not _are_distinct(under)
    counts_further = len(under) > len(above) or not _are_distinct(above)
    groups: Iterator[str] = accumulate((group for group, _ in pairs), lambda last, group: group or last)
    names = Row(
        " ".join(dict.fromkeys(filter(None, (group if name else own, name))))
        for (own, name), group in zip(pairs, groups, strict=True)
    )
    return names if has_gap and counts_further and _are_distinct([*filter(None, names)]) else None


def _contrasts(names: Row, values: Row) -> bool:
    """Return whether there is a number below a name."""
    return any(value and not _has_word(value) for name, value in zip(names, values, strict=False) if name)


def _is_name(cell: str) -> bool:
    return _has_word(cell) or _is_year(cell)


def _is_year(cell: str) -> bool:
    return len(cell) == 4 and cell.isascii() and cell.isdigit() and cell[:2] in {"18", "19", "20"}


def _has_word(cell: str) -> bool:
    """Return whether a cell has letters and is not a formula."""
    return any(map(str.isalpha, cell)) and not cell.startswith("=")


def _are_distinct(cells: Sequence[str]) -> bool:
    return len(set(cells)) == len(cells)


def _cells(row: Sequence[str]) -> Row:
    cells = Row(map(one_line, row), row.notes if isinstance(row, Row) else ())
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _line(cells: Sequence[str]) -> str:
    return _BAR.join(cells)
