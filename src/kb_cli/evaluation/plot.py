"""How well each mode does, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kb_cli.evaluation.measures import mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kb_cli.evaluation.measures import Mean

    Run = Mapping[str, Sequence[Mapping[str, Any]]]

WIDTH, ROW, LEFT, SPAN = 640, 28, 130, 440
BAR: Final = (
    '<text x="{name_x}" y="{text_y}" text-anchor="end">{name}</text>'
    '<rect x="{left}" y="{y}" width="{width:.1f}" height="16" rx="3" fill="{colour}"/>'
    '<path d="M{low:.1f} {middle}H{high:.1f}" stroke="#111" stroke-width="1.5"/>'
    '<text x="{number_x:.1f}" y="{text_y}">{value:.3f}</text>'
)


def drawn(run: Run, before: Run | None) -> str:
    """Return nDCG@10 of each mode with its interval, and of the run before beside it, as SVG."""
    bars = []
    for mode, outcomes in run.items():
        bars.append((mode, "#2b6cb0", mean([outcome["measures"]["ndcg"] for outcome in outcomes])))
        if earlier := (before or {}).get(mode):
            bars.append((f"{mode}, before", "#a0aec0", mean([outcome["measures"]["ndcg"] for outcome in earlier])))
    lines = "\n".join(_bar(row, *bar) for row, bar in enumerate(bars))
    height = ROW * len(bars) + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        ' font-family="sans-serif" font-size="13" role="img">\n'
        f"<title>nDCG@10 with 95 % intervals</title>\n{lines}\n</svg>\n"
    )


def _bar(row: int, name: str, colour: str, shown: Mean) -> str:
    y = 6 + row * ROW
    return BAR.format(
        name=name,
        name_x=LEFT - 10,
        text_y=y + 13,
        left=LEFT,
        y=y,
        width=max(shown.value * SPAN, 1),
        colour=colour,
        low=LEFT + shown.low * SPAN,
        high=LEFT + shown.high * SPAN,
        middle=y + 8,
        number_x=LEFT + max(shown.value, shown.high) * SPAN + 8,
        value=shown.value,
    )
