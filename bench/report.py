"""Write the measured figures into README.md and the pages of docs, from the files in bench/found.

    python -m bench.report

A comment before a paragraph, a list or a table names its figures. For a table it names files, and a cell has the figure
of its row and column: <!-- figures: scale -->. Otherwise it names a figure for each number, in their order:
<!-- figures: scale | hybrid, p50, ms | 100,000; peers | kb | recall -->. A number keeps its decimals. Numbers that are
not measured, such as settings, are part of a phrase in bench/found/constants.toml. Each file in bench/found has the
commit, the date, the command and the machine of its figures.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bench.origin import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Figures = Mapping[str, Mapping[str, float]]
    """Figures by row and by column."""

MINUS: Final = "\N{MINUS SIGN}"
FOUND: Final = ROOT / "bench/found"
PAGES: Final = (
    "README.md",
    "docs/performance.md",
    "docs/quality.md",
    "docs/benchmarks.md",
    "docs/comparison.md",
)
BLOCK: Final = re.compile(r"(?s)(?:^|(?<=\n))(?:```.*?\n```|<!--.*?-->|(?:(?!<!--|```)[^\n]+\n)+|\n)")
FIGURES: Final = re.compile(r"(?s)<!-- figures: (.*?) -->")
NUMBER: Final = re.compile(rf"(?<![\w.,@/:#-])[{MINUS}-]?\d+(?:,\d{{3}})*(?:\.\d+)?")
UNREAD: Final = re.compile(r"`[^`]*`|\]\([^)]*\)|<[^>]*>")
"""Code, targets of links and tags."""


@dataclass
class Page:
    """A page, and the complaints about its numbers."""

    name: str
    text: str
    found: Mapping[str, Figures]
    constants: list[str]
    complaints: list[str] = field(default_factory=list)

    def rendered(self) -> str:
        """Return the page with the figures of the files."""
        parts, names = [], ""
        for part in _parts(self.text):
            if comment := FIGURES.match(part):
                names = " ".join(comment[1].split())
                parts.append(part)
            elif part.startswith(("```", "<!--")) or not part.strip():
                parts.append(part)
            else:
                parts.append(self._block(part, names))
                names = ""
        for phrase in self.constants:
            if not _phrase(phrase).search(self.text):
                self._complain(f"constants.toml has {phrase!r}, which the page no longer has.")
        return "".join(parts)

    def _block(self, text: str, names: str) -> str:
        if text.startswith("|") and names:
            return self._table(text, names.split())
        keys = [tuple(part.strip() for part in key.split("|")) for key in names.split(";") if key]
        numbers = self._numbers(text)
        if len(numbers) != len(keys):
            shown = ", ".join(number[0] for number in numbers)
            self._complain(f"{len(keys)} figures are named for the {len(numbers)} numbers {shown} of: {text.strip()}")
            return text
        values = [self._figure(key[:1], *key[1:]) for key in keys]
        return _replaced(text, zip(numbers, values, strict=True))

    def _table(self, text: str, files: list[str]) -> str:
        head, line, *rows = text.splitlines(keepends=True)
        columns = _cells(head)
        written = [head, line]
        for row in rows:
            cells = row.split("|")
            for place, column in enumerate(columns[1:], 2):
                numbers = self._numbers(cells[place])
                values = [self._figure(files, _cells(row)[0], column) for _ in numbers]
                cells[place] = _replaced(cells[place], zip(numbers, values, strict=True))
            written.append("|".join(cells))
        return "".join(written)

    def _figure(self, files: tuple[str, ...] | list[str], row: str, column: str) -> float | None:
        """Return the figure of the first file that has it."""
        for file in files:
            if (value := self.found.get(file, {}).get(row, {}).get(column)) is not None:
                return value
        self._complain(f"no figure {row} | {column} in bench/found/{' or '.join(files)}.json")
        return None

    def _numbers(self, text: str) -> list[re.Match[str]]:
        """Return the numbers outside code, links and the phrases of constants."""
        for pattern in (*map(_phrase, self.constants), UNREAD):
            text = pattern.sub(lambda each: "x" * len(each[0]), text)
        return list(NUMBER.finditer(text))

    def _complain(self, text: str) -> None:
        self.complaints.append(f"{self.name}: {text}")


def _parts(text: str) -> Iterator[str]:
    """Yield blocks of code, comments, paragraphs and blank lines, which make up the page."""
    place = 0
    for part in BLOCK.finditer(text):
        if part.start() > place:
            yield text[place : part.start()]
        yield part[0]
        place = part.end()
    yield text[place:]


def _phrase(text: str) -> re.Pattern[str]:
    """Return the pattern of a phrase, also across lines; its first and last numbers are whole."""
    words = r"\s+".join(map(re.escape, text.split()))
    return re.compile(rf"(?<![\d.,]){words}(?!\d|[.,]\d)")


def _cells(row: str) -> list[str]:
    return [cell.replace("*", "").strip() for cell in row.strip().strip("|").split("|")]


def _replaced(text: str, pairs: Iterator[tuple[re.Match[str], float | None]]) -> str:
    """Return the text with other numbers, each with the decimals of the earlier one."""
    for number, value in reversed(list(pairs)):
        if value is not None:
            text = text[: number.start()] + rounded(value, number[0]) + text[number.end() :]
    return text


def rounded(value: float, like: str) -> str:
    """Return a number with as many digits as another: as many decimals, or fewer if it has more before the point."""
    before, _, decimals = like.lstrip(f"{MINUS}-").replace(",", "").partition(".")
    places = len(decimals)
    if places and abs(value) >= 1 and before != "0":
        places = max(0, places + len(before) - len(f"{abs(value):.0f}"))
    return f"{value:,.{places}f}".replace("-", MINUS)


def load() -> dict[str, Figures]:
    """Return the figures of each file."""
    return {file.stem: json.loads(file.read_text())["figures"] for file in sorted(FOUND.glob("*.json"))}


def pages() -> Iterator[Page]:
    """Yield each page with figures."""
    found, constants = load(), tomllib.loads((FOUND / "constants.toml").read_text())
    for name in PAGES:
        yield Page(name, (ROOT / name).read_text(), found, constants.get(name, []))


def main() -> int:
    """Write the figures; 1 if a number comes from no file."""
    complaints = []
    for page in pages():
        (ROOT / page.name).write_text(page.rendered())
        complaints += page.complaints
    print(*complaints, sep="\n")
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
