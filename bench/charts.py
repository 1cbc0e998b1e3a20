"""Charts of the figures in bench/found, as SVG: times by the number of passages, and quality next to other programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Figures = Mapping[str, Mapping[str, float]]
    """Figures by row and column."""

LINES: Final = {
    "embedding of the query, p50, ms": "embedding of the query",
    "hybrid, p50, ms": "hybrid",
    "keyword, p50, ms": "keyword search",
    "semantic, p50, ms": "semantic search",
    "filter of 50%, p50, ms": "hybrid, filter of 50%",
    "note until found, p50, ms": "note until found",
}
LINE_COLOURS: Final = ("#888888", "#1b6ca8", "#2a9d5c", "#c05a1c", "#7d4fa8", "#b03060")
FONT: Final = 'font-family="sans-serif" font-size="12"'
WIDTH, HEIGHT, MARGIN, LEGEND = 720, 400, 60, 190

COLLECTIONS: Final = ("SciFact", "Cranfield", "LoCoMo sessions", "LoCoMo turns", "Mean")
PROGRAMS: Final = {"kb": "#1b6ca8", "LanceDB": "#2a9d5c", "txtai": "#c05a1c", "Chroma": "#7d4fa8"}
LEFT, TOP, BAR, GROUP, SCALE, KEY = 130, 40, 16, 78, 500, 120


def drawn(found: Mapping[str, Mapping[str, Figures]]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each chart."""
    figures = {name: file["figures"] for name, file in found.items()}
    sizes = {row: {**each, **figures["scale-million"].get(row, {})} for row, each in figures["scale"].items()}
    yield "scale.svg", times(sizes)
    yield "scale-postgresql.svg", times(figures["scale-postgresql"])
    yield "quality.svg", bars({row: {**figures["rankings"][row], **figures["quality"][row]} for row in COLLECTIONS})


def times(found: Figures) -> str:
    """Return a chart of milliseconds against passages, both on logarithmic scales."""
    curves = {
        name: {int(size.replace(",", "")): ms for size, ms in found[row].items()}
        for row, name in LINES.items()
        if row in found
    }
    sizes = sorted({size for each in curves.values() for size in each})
    measured = [ms for each in curves.values() for ms in each.values()]
    lowest, highest = math.floor(math.log10(min(measured))), math.ceil(math.log10(max(measured)))
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
        parts += curve(points, LINE_COLOURS[place])
        parts.append(text(WIDTH - LEGEND + 12, MARGIN + 20 * place, name, "start", LINE_COLOURS[place]))
    return image(WIDTH, HEIGHT, parts)


def curve(points: Sequence[tuple[float, float]], colour: str) -> list[str]:
    """Return the points and the line that connects them."""
    path = " ".join(f"{x},{y}" for x, y in points)
    dots = [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in points]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots]


def text(x: float, y: float, content: str, anchor: str, colour: str = "#333333") -> str:
    """Return a text element."""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{content}</text>'


def bars(found: Figures) -> str:
    """Return a chart with a bar for each program in each collection."""
    parts = []
    for place, (name, colour) in enumerate(PROGRAMS.items()):
        x = LEFT + KEY * place
        parts += [bar(x, 12, 12, colour), text(x + 18, 22, name, "start")]
    for number, row in enumerate(COLLECTIONS):
        y = TOP + GROUP * number
        parts.append(text(LEFT - 10, y + 36, row, "end"))
        for place, (name, colour) in enumerate(PROGRAMS.items()):
            width, top = round(SCALE * found[row][name]), y + BAR * place
            parts += [
                bar(LEFT, top, width, colour),
                text(LEFT + width + 6, top + 11, f"{found[row][name]:.3f}", "start"),
            ]
    return image(WIDTH, TOP + GROUP * len(COLLECTIONS), parts)


def bar(x: float, y: float, width: float, colour: str) -> str:
    """Return a bar."""
    return f'<rect x="{x}" y="{y}" width="{width}" height="12" fill="{colour}"/>'


def image(width: int, height: int, parts: Sequence[str]) -> str:
    """Return an SVG with a white background."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {FONT}>'
    background = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, background, *parts, "</svg>\n"])
