"""Write the results of `bench.scale` as a table and as a plot of milliseconds against size.

    python -m bench.scale_report FILE.json [PLOT.svg]

The table replaces the text between two comments in docs/benchmarks.md, and the plot is docs/scale.svg. With PLOT.svg,
only that plot is written: docs/scale-postgresql.svg has the results over PostgreSQL.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Found = Mapping[int, Mapping[str, float]]

DOCS: Final = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- bench.scale: begin -->", "<!-- bench.scale: end -->"

ROWS: Final = {
    "start until ready, s": "start s",
    "memory when ready, MB": "resident MB",
    "memory after the test, MB": "resident after MB",
    "disk per passage, bytes": "disk bytes a passage",
    "embedding of the query, p50, ms": "embedding p50",
    "hybrid, p50, ms": "hybrid p50",
    "hybrid, p99, ms": "hybrid p99",
    "keyword, p50, ms": "full text p50",
    "semantic, p50, ms": "vectors p50",
    "filter of 10%, p50, ms": "filter 10 % p50",
    "filter of 1%, p50, ms": "filter 1 % p50",
    "16 clients, searches per second": "16 clients a second",
    "16 clients, p99, ms": "16 clients p99",
    "recall@10": "hybrid recall",
    "recall@10, filter of 10%": "filter 10 % recall",
    "note until found, p50, ms": "add until found p50",
}
"""The key of the figure in each row, by the row's name."""

LINES: Final = {
    "embedding p50": "embedding of the query",
    "hybrid p50": "hybrid",
    "full text p50": "keyword search",
    "vectors p50": "semantic search",
    "filter 50 % p50": "hybrid, filter of 50%",
    "add until found p50": "note until found",
}
COLOURS: Final = ("#888888", "#1b6ca8", "#2a9d5c", "#c05a1c", "#7d4fa8", "#b03060")
FONT: Final = 'font-family="sans-serif" font-size="12"'
WIDTH, HEIGHT, MARGIN, LEGEND = 720, 400, 60, 190


def table(found: Found) -> str:
    """Return a Markdown table with a column for each size, and a row for each figure that all sizes have."""
    lines = [["Passages", *(f"{size:,}" for size in found)]]
    measured = {name: key for name, key in ROWS.items() if all(key in figures for figures in found.values())}
    lines += [[name, *(rounded(figures[key], name) for figures in found.values())] for name, key in measured.items()]
    head, *rows = ("| " + " | ".join(cells) + " |" for cells in lines)
    return "\n".join([head, "|---" * (len(found) + 1) + "|", *rows])


def rounded(number: float, name: str = "") -> str:
    """Return a number with three digits, all digits before the point, or three decimals of a recall."""
    if name.startswith("recall"):
        return f"{number:.3f}"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def plot(found: Found) -> str:
    """Return an SVG of milliseconds against passages, both on logarithmic scales."""
    sizes = list(found)
    times = [figures[key] for figures in found.values() for key in LINES]
    lowest, highest = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    first, last = math.log10(sizes[0]), math.log10(sizes[-1])

    def x(size: int) -> float:
        share = (math.log10(size) - first) / (last - first or 1)
        return round(MARGIN + share * (WIDTH - MARGIN - LEGEND), 1)

    def y(time: float) -> float:
        share = (math.log10(time) - lowest) / (highest - lowest)
        return round(HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN), 1)

    ticks = [10.0**power for power in range(lowest, highest + 1)]
    parts = [f'<line x1="{MARGIN}" x2="{WIDTH - LEGEND}" y1="{y(t)}" y2="{y(t)}" stroke="#dddddd"/>' for t in ticks]
    parts += [text(MARGIN - 8, y(tick) + 4, f"{tick:g} ms", "end") for tick in ticks]
    parts += [text(x(size), HEIGHT - MARGIN + 20, f"{size:,}", "middle") for size in sizes]
    parts.append(text((MARGIN + WIDTH - LEGEND) / 2, HEIGHT - 12, "passages", "middle"))
    for place, (key, name) in enumerate(LINES.items()):
        points = [(x(size), y(figures[key])) for size, figures in found.items()]
        parts += curve(points, COLOURS[place])
        parts.append(text(WIDTH - LEGEND + 12, MARGIN + 20 * place, name, "start", COLOURS[place]))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>'
    background = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    return "\n".join([head, background, *parts, "</svg>\n"])


def curve(points: Sequence[tuple[float, float]], colour: str) -> list[str]:
    """Return the points and the line that connects them."""
    path = " ".join(f"{x},{y}" for x, y in points)
    dots = [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in points]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots]


def text(x: float, y: float, content: str, anchor: str, colour: str = "#333333") -> str:
    """Return a text element."""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{content}</text>'


def replaced(page: str, content: str) -> str:
    """Return the page with new content between the comments."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError(f"the page lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{content}\n\n{END}{after}"


def write(found: Found, folder: Path = DOCS) -> None:
    """Write the table into the page, and the plot next to it."""
    page = folder / "benchmarks.md"
    page.write_text(replaced(page.read_text(), table(found)))
    (folder / "scale.svg").write_text(plot(found))


def main() -> None:
    """Write the table and the plot, or only the plot, and print the table."""
    found = {int(size): figures for size, figures in json.loads(Path(sys.argv[1]).read_text()).items()}
    found = dict(sorted(found.items()))
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(plot(found))
    else:
        write(found)
    print(table(found))


if __name__ == "__main__":
    main()
