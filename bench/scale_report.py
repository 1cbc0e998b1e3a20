"""Draw a file of `bench.scale` as a plot of milliseconds against the number of passages.

python -m bench.scale_report bench/found/scale.json docs/scale.svg
python -m bench.scale_report bench/found/scale-postgresql.json docs/scale-postgresql.svg
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Figures = Mapping[str, Mapping[str, float]]

LINES: Final = {
    "embedding of the query, p50, ms": "embedding of the query",
    "hybrid, p50, ms": "hybrid",
    "keyword, p50, ms": "keyword search",
    "semantic, p50, ms": "semantic search",
    "filter of 50%, p50, ms": "hybrid, filter of 50%",
    "note until found, p50, ms": "note until found",
}
COLOURS: Final = ("#888888", "#1b6ca8", "#2a9d5c", "#c05a1c", "#7d4fa8", "#b03060")
FONT: Final = 'font-family="sans-serif" font-size="12"'
WIDTH, HEIGHT, MARGIN, LEGEND = 720, 400, 60, 190


def plot(found: Figures) -> str:
    """Return an SVG of milliseconds against passages, both on logarithmic scales."""
    curves = {name: {int(size.replace(",", "")): ms for size, ms in found[row].items()} for row, name in LINES.items()}
    sizes = list(next(iter(curves.values())))
    times = [ms for each in curves.values() for ms in each.values()]
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
    for place, (name, each) in enumerate(curves.items()):
        points = [(x(size), y(ms)) for size, ms in each.items()]
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


def main() -> None:
    """Draw the plot of a file."""
    file, plotted = map(Path, sys.argv[1:])
    plotted.write_text(plot(json.loads(file.read_text())["figures"]))


if __name__ == "__main__":
    main()
