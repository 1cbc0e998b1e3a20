"""What `bench.scale` found, as a table in docs/benchmarks.md and as a plot of cost against size.

    python -m bench.scale_report FILE.json [PLOT.svg]

The table stands between two comments of that page; the plot is docs/scale.svg. With a name for the plot, that alone is
written, such as docs/scale-postgresql.svg for what was found over PostgreSQL.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Found = Mapping[int, Mapping[str, float]]

DOCS: Final = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- bench.scale: begin -->", "<!-- bench.scale: end -->"

ROWS: Final[dict[str, tuple[str, ...]]] = {
    "start until ready, s": ("start s",),
    "resident when ready / peak at start / after all of this, MB": (
        "resident MB",
        "peak at start MB",
        "resident after MB",
    ),
    "memory / disk per chunk, bytes": ("memory bytes a passage", "disk bytes a passage"),
    "one query's embedding, p50, ms": ("embedding p50",),
    "hybrid, p50 / p99, ms": ("hybrid p50", "hybrid p99"),
    "full text / vectors alone, p50, ms": ("full text p50", "vectors p50"),
    "hybrid, filter of 50 / 10 / 1 / .1 %, p50, ms": (
        "filter 50 % p50",
        "filter 10 % p50",
        "filter 1 % p50",
        "filter 0.1 % p50",
    ),
    "grouped by document, p50, ms": ("grouped p50",),
    "16 clients, searches a second / queries embedded alone": (
        "16 clients a second",
        "16 clients, embedding alone a second",
    ),
    "16 clients, p50 / p99, ms": ("16 clients p50", "16 clients p99"),
    "hybrid recall@10, all / filter of 50 / 10 / 1 / .1 %": (
        "hybrid recall",
        "filter 50 % recall",
        "filter 10 % recall",
        "filter 1 % recall",
        "filter 0.1 % recall",
    ),
    "add until found / update / delete, p50, ms": ("add until found p50", "update p50", "delete p50"),
}
"""A row's name, and which figures stand in it."""

LINES: Final = {
    "embedding p50": "the query's embedding alone",
    "hybrid p50": "hybrid",
    "full text p50": "by words alone",
    "vectors p50": "by meaning alone",
    "filter 50 % p50": "hybrid, filter of 50 %",
    "add until found p50": "a note until it is found",
}
COLOURS: Final = ("#888888", "#1b6ca8", "#2a9d5c", "#c05a1c", "#7d4fa8", "#b03060")
FONT: Final = 'font-family="sans-serif" font-size="12"'
WIDTH, HEIGHT, MARGIN, LEGEND = 720, 400, 60, 190


def table(found: Found) -> str:
    """Return the figures in Markdown, a column for each size."""
    lines = [["chunks", *(f"{size:,}" for size in found)], ["---"] * (len(found) + 1)]
    measured = {
        name: keys for name, keys in ROWS.items() if all(figures.keys() >= {*keys} for figures in found.values())
    }
    lines += [[name, *(cell(figures, keys) for figures in found.values())] for name, keys in measured.items()]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def cell(figures: Mapping[str, float], keys: Iterable[str]) -> str:
    """Return some figures with three digits each."""
    return " / ".join(rounded(figures[key]) for key in keys)


def rounded(number: float) -> str:
    """Return a number with three digits, or all of them before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def plot(found: Found) -> str:
    """Return milliseconds against chunks, both on logarithmic scales, in SVG."""
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
    parts.append(text((MARGIN + WIDTH - LEGEND) / 2, HEIGHT - 12, "chunks", "middle"))
    for place, (key, name) in enumerate(LINES.items()):
        points = [(x(size), y(figures[key])) for size, figures in found.items()]
        parts += curve(points, COLOURS[place])
        parts.append(text(WIDTH - LEGEND + 12, MARGIN + 20 * place, name, "start", COLOURS[place]))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>'
    background = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    return "\n".join([head, background, *parts, "</svg>\n"])


def curve(points: Sequence[tuple[float, float]], colour: str) -> list[str]:
    """Return points with a line through them."""
    path = " ".join(f"{x},{y}" for x, y in points)
    dots = [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in points]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots]


def text(x: float, y: float, content: str, anchor: str, colour: str = "#333333") -> str:
    """Return a text at a place."""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{content}</text>'


def replaced(page: str, content: str) -> str:
    """Return a page with other content between the comments."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError(f"the page lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{content}\n\n{END}{after}"


def write(found: Found, folder: Path = DOCS) -> None:
    """Write the table into the page, and the plot beside it."""
    page = folder / "benchmarks.md"
    page.write_text(replaced(page.read_text(), table(found)))
    (folder / "scale.svg").write_text(plot(found))


def main() -> None:
    """Write both, and print the table."""
    found = {int(size): figures for size, figures in json.loads(Path(sys.argv[1]).read_text()).items()}
    found = dict(sorted(found.items()))
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(plot(found))
    else:
        write(found)
    print(table(found))


if __name__ == "__main__":
    main()
