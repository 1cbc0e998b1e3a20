"""Write the tables and charts of README.md and docs from the measured figures in bench/found.

A comment before a table or a paragraph names its figures, as files, rows of a file or single figures:
<!-- figures: start; scale | hybrid, p50, ms; quality | Mean | kb -->. A cell of a table has the figure of its row and
column, with the decimals that the cell has now. In a paragraph, `tests/docs/test_figures.py` looks up each number;
those after `given:` are settings or sizes of a test.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from bench import charts
from bench.origin import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    Record = dict[str, Any]
    """The figures of a measurement by row and column, and their origin."""
    Figures = dict[tuple[str, str], float]
    """Figures by row and column."""

FOUND: Final = ROOT / "bench/found"
PAGES: Final = [
    ROOT / "README.md",
    *(ROOT / f"docs/{name}.md" for name in ("performance", "quality", "benchmarks", "comparison")),
]
MINUS: Final = "\N{MINUS SIGN}"
NUMBER: Final = re.compile(rf"(?<![\w.,@/:#-])[{MINUS}-]?\d+(?:,\d{{3}})*(?:\.\d+)?")
MARKED: Final = re.compile(
    r"(?P<mark><!-- figures: (?P<names>[^>]+?)(?:; given: (?P<given>[^>]+))? -->\n)(?P<block>.+?)(?=\n\n|\n*\Z)",
    re.DOTALL,
)
SOURCES: Final = re.compile(r"(?<=<!-- sources -->\n).+?(?=\n\n|\n*\Z)", re.DOTALL)


def load() -> dict[str, Record]:
    """Return the files by name."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(FOUND.glob("*.json"))}


def named(names: str, found: Mapping[str, Record]) -> Figures:
    """Return the figures that a comment names. Raise KeyError for a name without figures."""
    figures: Figures = {}
    for name in names.split(";"):
        file, *key = (" ".join(part.split()) for part in name.split("|"))
        every = {(row, column): value for row, each in found[file]["figures"].items() for column, value in each.items()}
        picked = {place: value for place, value in every.items() if place[: len(key)] == tuple(key)}
        if not picked:
            raise KeyError(f"no figure in bench/found: {name}")
        figures |= picked
    return figures


def written(page: str, found: Mapping[str, Record]) -> str:
    """Return a page with the figures in its tables, and the table of sources."""

    def block(marked: re.Match[str]) -> str:
        if not marked["block"].startswith("|"):
            return marked[0]
        return marked["mark"] + table(marked["block"], named(marked["names"], found))

    return SOURCES.sub(lambda _: sources(found), MARKED.sub(block, page))


def table(text: str, figures: Figures) -> str:
    """Return a table with a figure in place of each number. Raise KeyError for a cell without a figure."""
    head, line, *rows = text.splitlines()
    columns = cells(head)
    lines = [head, line]
    for row in rows:
        name, *old = cells(row)
        new = [filled(cell, figures, name, column) for column, cell in zip(columns[1:], old, strict=True)]
        lines.append(f"| {' | '.join([name, *new])} |")
    return "\n".join(lines)


def filled(cell: str, figures: Figures, row: str, column: str) -> str:
    """Return a cell with its figure in place of its number, if it has one."""
    return NUMBER.sub(lambda number: shown(figures[row, column], number[0]), cell, count=1)


def cells(row: str) -> list[str]:
    """Return the texts of a row's cells."""
    return [cell.strip() for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]


def shown(value: float, like: str) -> str:
    """Return a number with as many decimals as another."""
    return f"{value:,.{len(like.partition('.')[2])}f}".replace("-", MINUS)


def sources(found: Mapping[str, Record]) -> str:
    """Return a table of the files."""
    lines = ["| Figures | Commit | Date | Load |", "|---|---|---|---|"]
    for name, file in found.items():
        link, load = f"[{name}](../bench/found/{name}.json)", file["machine"].get("load", "")
        lines.append(f"| {link} | {file['commit']} | {file['date']} | {load} |")
    return "\n".join(lines)


def main() -> None:
    """Write all tables and charts."""
    found = load()
    for page in PAGES:
        page.write_text(written(page.read_text(), found))
    for name, svg in charts.drawn(found):
        (ROOT / "docs" / name).write_text(svg)


if __name__ == "__main__":
    main()
