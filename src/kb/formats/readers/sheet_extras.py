"""The contents of a sheet that calamine does not return: formulas without a value, errors, notes, text boxes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kb.formats.text.encoding import one_line

if TYPE_CHECKING:
    from kb.formats.containers.zip import Archive
    from kb.formats.text.extracted import Attachment

_REFERENCE: Final = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")
_LETTERS: Final = 26
_ERRORS: Final = {
    0: "#NULL!",
    7: "#DIV/0!",
    15: "#VALUE!",
    23: "#REF!",
    29: "#NAME?",
    36: "#NUM!",
    42: "#N/A",
    43: "#GETTING_DATA",
}
_MOST_ERRORS: Final = 100_000
LONGEST_FORMULA: Final = 8192
"""The maximum number of characters in an Excel formula."""


@dataclass
class FormulaBudget:
    """The number of characters that formulas may still add to a workbook's text, and of numbers that may get a unit."""

    left: int = 1 << 20
    numbers: int = 500_000

    @classmethod
    def of(cls, archive: Archive) -> FormulaBudget:
        return cls(min(cls.left, 2 * archive.length + (1 << 16)))


@dataclass(slots=True)
class SheetExtras:
    """The contents of a sheet other than its values; rows and columns are counted from 0.

    Args:
        cells: by row and column, the text that cells show with or instead of a value: a formula, an error, a unit.
        formulas: the number of formulas without a computed value.
        notes: by row, the notes on cells, each with its cell.
        boxes: the lines of text boxes and of other drawings.
        margins: the lines of its printed headers and footers.
        files: the embedded files.
        left_out: the number of objects and files left out, by kind.
        room: the limit on the text of formulas.
    """

    cells: dict[int, dict[int, str]] = field(default_factory=dict)
    formulas: int = 0
    notes: dict[int, list[str]] = field(default_factory=dict)
    boxes: list[str] = field(default_factory=list)
    margins: list[str] = field(default_factory=list)
    files: list[Attachment] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    room: FormulaBudget = field(default_factory=FormulaBudget)

    def add_formula(self, row: int, column: int, formula: str) -> None:
        """Add a formula without a value, and show it if the budget allows."""
        self.formulas += 1
        if self.room.left > 0:
            shown = f"={one_line(formula[:LONGEST_FORMULA])}"
            self.room.left -= len(shown)
            self.cells.setdefault(row, {})[column] = shown

    def add_error(self, row: int, column: int, error: str) -> None:
        """Add the text of a cell whose formula has no result, such as #DIV/0!."""
        if words := one_line(error):
            self.cells.setdefault(row, {})[column] = words

    def add_error_code(self, row: int, column: int, code: int) -> None:
        if code in _ERRORS and len(self.cells) < _MOST_ERRORS:
            self.add_error(row, column, _ERRORS[code])

    def add_number(self, row: int, column: int, shown: str) -> None:
        """Add a number in the form that its cell shows, if the budget allows."""
        if self.room.numbers > 0:
            self.room.numbers -= 1
            self.cells.setdefault(row, {})[column] = shown

    def add_note(self, row: int, column: int, note: str) -> None:
        if words := one_line(note):
            self.notes.setdefault(row, []).append(f"Note on {cell_name(row, column)}: {words}")

    def rows(self) -> list[int]:
        return sorted({*self.cells, *self.notes})

    def omitted(self) -> Iterator[tuple[str, int]]:
        """Yield the kinds of omissions, as in `kb.api.omissions`, each with its count."""
        counts = {"formulas": self.formulas, **self.left_out}
        yield from ((kind, count) for kind, count in counts.items() if count)


_MARGIN_CODE: Final = re.compile(
    r"&(?:(?P<part>[LCR])|(?P<sign>&)|\"[^\"]*\"|K(?:[0-9A-Fa-f]{6}|\d\d[+-]\d{3})|\d+|.)", re.DOTALL
)


def margin_lines(written: str) -> list[str]:
    """Return the words of a header or footer in Excel's notation: `&L&"Arial,Bold"Draft&RPage &P`."""
    return _MARGIN_CODE.sub(lambda code: "\n" if code["part"] else code["sign"] or "", written).splitlines()


def cell_name(row: int, column: int) -> str:
    """Return the name of a cell, such as B2."""
    name, column = "", column + 1
    while column > 0:
        column, letter = divmod(column - 1, _LETTERS)
        name = chr(ord("A") + letter) + name
    return f"{name}{row + 1}"


def cell_place(name: str) -> tuple[int, int] | None:
    """Return the row and the column of a cell; None if the name is not a cell's."""
    match = _REFERENCE.fullmatch(name)
    return (int(match[2]) - 1, _column(match[1])) if match and int(match[2]) else None


def moved(formula: str, rows: int, columns: int) -> str:
    """Return a formula moved by a number of rows and columns; the parts fixed with `$` stay."""
    return "".join(_moved_pieces(formula, rows, columns))


_PIECE: Final = re.compile(
    r"""(?P<kept>"[^"]*"|'[^']*'!?|[A-Za-z_\\][\w.]*\()|(?<![\w.$])(?P<c>\$?)(?P<column>[A-Z]{1,3})(?P<r>\$?)(?P<row>\d{1,7})(?![\w(.!])"""
)


def _moved_pieces(formula: str, rows: int, columns: int) -> Iterator[str]:
    place = 0
    for match in _PIECE.finditer(formula):
        yield formula[place : match.start()]
        place = match.end()
        if match["kept"]:
            yield match["kept"]
            continue
        column = _column(match["column"]) + (0 if match["c"] else columns)
        row = int(match["row"]) - 1 + (0 if match["r"] else rows)
        name = cell_name(max(row, 0), max(column, 0))
        letters = name.rstrip("0123456789")
        yield f"{match['c']}{letters}{match['r']}{name[len(letters) :]}"
    yield formula[place:]


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * _LETTERS + ord(letter) - ord("A") + 1
    return number - 1
