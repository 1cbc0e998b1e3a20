"""Draw nDCG@10 of kb and other programs as bars, from bench/found: docs/quality.svg.

python -m bench.quality_report
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.origin import ROOT
from bench.report import load

if TYPE_CHECKING:
    from collections.abc import Mapping

ROWS: Final = ("SciFact", "Cranfield", "LoCoMo sessions", "LoCoMo turns", "Mean")
COLOURS: Final = {"kb": "#1b6ca8", "LanceDB": "#2a9d5c", "txtai": "#c05a1c", "Chroma": "#7d4fa8"}
LEFT, TOP, BAR, GROUP, SCALE, KEY = 130, 40, 16, 78, 500, 120


def chart(found: Mapping[str, Mapping[str, float]]) -> str:
    """Return an SVG of a group of bars for each row."""
    parts = []
    for place, (name, colour) in enumerate(COLOURS.items()):
        x = LEFT + KEY * place
        parts.append(f'<rect x="{x}" y="12" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 18}" y="22" fill="#333333">{name}</text>')
    for number, row in enumerate(ROWS):
        y = TOP + GROUP * number
        parts.append(f'<text x="{LEFT - 10}" y="{y + 36}" text-anchor="end" fill="#333333">{row}</text>')
        for place, (name, colour) in enumerate(COLOURS.items()):
            value, top = found[row][name], y + BAR * place
            width = round(SCALE * value)
            parts.append(f'<rect x="{LEFT}" y="{top}" width="{width}" height="13" fill="{colour}"/>')
            parts.append(f'<text x="{LEFT + width + 6}" y="{top + 11}" fill="#333333">{value:.3f}</text>')
    font = 'font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 430" {font} role="img">'
    title = '<title>nDCG@10 on four collections</title>\n<rect width="720" height="430" fill="#ffffff"/>'
    return "\n".join([head, title, *parts, "</svg>\n"])


def drawn() -> str:
    """Return the chart of the present figures."""
    found = load()
    return chart({row: {**found["rankings"][row], **found["quality"][row]} for row in ROWS})


def main() -> None:
    """Write the chart."""
    (ROOT / "docs/quality.svg").write_text(drawn())


if __name__ == "__main__":
    main()
