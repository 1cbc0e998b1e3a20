"""What stands in a sheet beside the values that calamine gives: formulas nobody computed, errors, notes, text boxes."""

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
"""How many characters Excel takes in a formula."""


@dataclass
class FormulaBudget:
    """How many characters the formulas of a workbook may still take in its text, and how many numbers have units."""

    left: int = 1 << 20
    numbers: int = 500_000

    @classmethod
    def of(cls, archive: Archive) -> FormulaBudget:
        """Return what there is in the text of a file of this size."""
        return cls(min(cls.left, 2 * archive.length + (1 << 16)))


@dataclass(slots=True)
class SheetExtras:
    """What a sheet has beside its values; rows and columns are counted from 0.

    Args:
        cells: by row and column, what cells show beside or instead of a value: a formula, an error, a unit.
        formulas: how many formulas no program computed.
        notes: by row, what was noted on cells, each with its cell.
        boxes: the lines of text boxes and of other drawings.
        margins: the lines of its headers and footers on paper.
        files: the files in it.
        left_out: how many objects and files in it are not read.
        room: how much the formulas may take.
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
        """Add a formula without a value, which is shown as long as there is room."""
        self.formulas += 1
        if self.room.left > 0:
            shown = f"={one_line(formula[:LONGEST_FORMULA])}"
            self.room.left -= len(shown)
            self.cells.setdefault(row, {})[column] = shown

    def add_error(self, row: int, column: int, error: str) -> None:
        """Add what stands in a cell whose formula has no result, such as #DIV/0!."""
        if words := one_line(error):
            self.cells.setdefault(row, {})[column] = words

    def add_error_code(self, row: int, column: int, code: int) -> None:
        """Add the error that Excel's binary formats write as a number."""
        if code in _ERRORS and len(self.cells) < _MOST_ERRORS:
            self.add_error(row, column, _ERRORS[code])

    def add_number(self, row: int, column: int, shown: str) -> None:
        """Add what a cell shows of a number, as long as there is room."""
        if self.room.numbers > 0:
            self.room.numbers -= 1
            self.cells.setdefault(row, {})[column] = shown

    def add_note(self, row: int, column: int, note: str) -> None:
        """Add what someone noted on a cell."""
        if words := one_line(note):
            self.notes.setdefault(row, []).append(f"Note on {cell_name(row, column)}: {words}")

    def rows(self) -> list[int]:
        """Return the rows that have any of these, in order."""
        return sorted({*self.cells, *self.notes})

    def omitted(self) -> Iterator[tuple[str, int]]:
        """Yield the kinds of what is not read, as in `kb.api.omissions`, each with its number."""
        counts = {"formulas": self.formulas, **self.left_out}
        yield from ((kind, count) for kind, count in counts.items() if count)


_MARGIN_CODE: Final = re.compile(
    r"&(?:(?P<part>[LCR])|(?P<sign>&)|\"[^\"]*\"|K(?:[0-9A-Fa-f]{6}|\d\d[+-]\d{3})|\d+|.)", re.DOTALL
)


def margin_lines(written: str) -> list[str]:
    """Return the words of a header or footer as Excel writes it: `&L&"Arial,Bold"Draft&RPage &P`."""
    return _MARGIN_CODE.sub(lambda code: "\n" if code["part"] else code["sign"] or "", written).splitlines()


def cell_name(row: int, column: int) -> str:
    """Return what people call a cell: B2."""
    name, column = "", column + 1
    while column > 0:
        column, letter = divmod(column - 1, _LETTERS)
        name = chr(ord("A") + letter) + name
    return f"{name}{row + 1}"


def cell_place(name: str) -> tuple[int, int] | None:
    """Return the row and the column of a cell; None if that is no cell."""
    match = _REFERENCE.fullmatch(name)
    return (int(match[2]) - 1, _column(match[1])) if match and int(match[2]) else None


def moved(formula: str, rows: int, columns: int) -> str:
    """Return a formula as it is in a cell so many rows and columns further; what `$` fixes stays."""
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
