"""Pictures of numbers, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

WIDTH, ROW, LABEL = 640, 30, 150


def bars(rows: Sequence[tuple[str, int]], title: str) -> Markup:
    """Return a bar for each row, the longest of them the whole width."""
    most = max((number for _, number in rows), default=0) or 1
    scale = (WIDTH - LABEL - 70) / most
    lines = Markup("").join(
        Markup(
            '<text class="name" x="{label}" y="{text}" text-anchor="end">{name}</text>'
            '<rect class="bar" x="{left}" y="{top}" width="{width}" height="18" rx="3"/>'
            '<text class="number" x="{right}" y="{text}">{number}</text>'
        ).format(
            label=LABEL - 12,
            text=index * ROW + 20,
            name=name,
            left=LABEL,
            top=index * ROW + 6,
            width=round(max(2, number * scale), 1),
            right=round(LABEL + max(2, number * scale) + 8, 1),
            number=f"{number:,}",
        )
        for index, (name, number) in enumerate(rows)
    )
    return _picture(title, ROW * len(rows), lines)


def stack(rows: Sequence[tuple[str, int]], title: str) -> Markup:
    """Return one bar of parts, each as long as its share."""
    whole, left, parts = sum(number for _, number in rows) or 1, 0.0, Markup("")
    for index, (name, number) in enumerate(rows):
        width = number * WIDTH / whole
        parts += Markup('<rect class="part-{}" x="{}" y="2" width="{}" height="22"><title>{}</title></rect>').format(
            index, round(left, 1), round(width, 1), name
        )
        left += width
    return _picture(title, 26, parts)


def columns(rows: Sequence[tuple[str, int]], title: str, height: int = 150) -> Markup:
    """Return a column for each row, as of one day after another."""
    most = max((number for _, number in rows), default=0) or 1
    step = WIDTH / max(1, len(rows))
    lines = [
        Markup('<rect class="bar" x="{}" y="{}" width="{}" height="{}" rx="2"><title>{}: {}</title></rect>').format(
            round(index * step + 1, 1),
            round(height - 20 - (high := max(1.5 if number else 0, number * (height - 30) / most)), 1),
            round(step - 2, 1),
            round(high, 1),
            name,
            f"{number:,}",
        )
        for index, (name, number) in enumerate(rows)
    ]
    ends = [(0, "start", rows[0][0]), (WIDTH, "end", rows[-1][0])] if rows else []
    lines += [
        Markup('<text class="name" x="{}" y="{}" text-anchor="{}">{}</text>').format(x, height - 3, anchor, name)
        for x, anchor, name in ends
    ]
    lines.append(Markup('<line class="axis" x1="0" x2="{}" y1="{}" y2="{}"/>').format(WIDTH, height - 19, height - 19))
    return _picture(title, height, Markup("").join(lines))


def lines(rows: Mapping[str, Sequence[float | None]], title: str, height: int = 110) -> Markup:
    """Return a line for each row of milliseconds, with a dot where a value stands alone."""
    known = [value for values in rows.values() for value in values if value is not None]
    most = max(known, default=1.0)
    drawn = [
        Markup('<path class="line line-{}" d="{}"><title>{}</title></path>').format(
            number, _path(values, most, height), name
        )
        for number, (name, values) in enumerate(rows.items())
    ]
    drawn += [
        Markup('<text class="name" x="0" y="12">{}</text>').format(milliseconds(most)),
        Markup('<line class="axis" x1="0" x2="{}" y1="{}" y2="{}"/>').format(WIDTH, height - 2, height - 2),
    ]
    return _picture(title, height, Markup("").join(drawn))


def milliseconds(number: float) -> str:
    """Return a time for people."""
    return f"{number / 1000:.1f} s" if number >= 1000 else f"{number:.0f} ms" if number >= 10 else f"{number:.1f} ms"


def _path(values: Sequence[float | None], most: float, height: int) -> str:
    """Return the path through values at equal distances; where one is not known it begins anew."""
    step, parts = WIDTH / max(1, len(values)), []
    for index, (before, value, after) in enumerate(zip([None, *values], values, [*values[1:], None], strict=False)):
        if value is None:
            continue
        x, y = round((index + 0.5) * step, 1), round(height - 6 - value / most * (height - 26), 1)
        is_alone = before is None and after is None
        parts.append(f"M{x} {y}m-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0" if is_alone else f"{'ML'[before is not None]}{x} {y}")
    return "".join(parts)


def _picture(title: str, height: int, content: Markup) -> Markup:
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, height, title, content
    )
