"""Canvas (.canvas): its cards and links as Markdown, from top to bottom, each group under its name.

See https://jsoncanvas.org/spec/1.0/
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kb.formats.readers import markdown
from kb.formats.text.encoding import decode, one_line
from kb.formats.text.extracted import Extracted
from kb.formats.text.reading_order import Box, in_reading_order

_LONGEST_NAME: Final = 80

Card = Mapping[str, Any]


def read(data: bytes) -> Extracted:
    try:
        canvas = json.loads(decode(data))
    except (ValueError, RecursionError):
        canvas = None
    if not isinstance(canvas, dict):
        return markdown.read(data)
    return markdown.read("\n\n".join(_pieces(canvas)).encode())


def _pieces(canvas: Card) -> Iterator[str]:
    cards = _dicts(canvas.get("nodes"))
    groups = [card for card in cards if card.get("type") == "group"]
    members = {id(card): _group_of(card, groups) for card in cards if card.get("type") != "group"}
    for group in (None, *in_reading_order(groups, _box)):
        inside = [card for card in cards if id(card) in members and members[id(card)] is group]
        if group is not None and _text(group, "label"):
            yield f"## {_text(group, 'label')}"
        yield from filter(None, map(_written, in_reading_order(inside, _box)))
    names = {card.get("id"): _name(card) for card in cards}
    for edge in _dicts(canvas.get("edges")):
        if label := _text(edge, "label"):
            yield f"{names.get(edge.get('fromNode'), '')} → {names.get(edge.get('toNode'), '')}: {label}"


def _written(card: Card) -> str:
    """Return the text of a card, or a link to its file or address."""
    if file := _text(card, "file"):
        return f"[[{file}{_text(card, 'subpath')}]]"
    if address := _text(card, "url"):
        return f"<{address}>"
    text = card.get("text")
    return text.strip() if isinstance(text, str) else ""


def _name(card: Card) -> str:
    lines = (_text(card, "label") or _written(card)).strip().split("\n")
    return lines[0].lstrip("# ")[:_LONGEST_NAME]


def _group_of(card: Card, groups: Sequence[Card]) -> Card | None:
    """Return the smallest group around the middle of a card."""
    box = _box(card)
    around = [
        (outer.width * outer.height, index) for index, outer in enumerate(map(_box, groups)) if _holds(outer, box)
    ]
    return groups[min(around)[1]] if around else None


def _holds(outer: Box, inner: Box) -> bool:
    x, y = inner.left + inner.width / 2, inner.middle
    return outer.left <= x <= outer.left + outer.width and outer.top <= y <= outer.top + outer.height


def _box(card: Card) -> Box:
    numbers = (card.get(name) for name in ("x", "y", "width", "height"))
    return Box(*(float(number) if isinstance(number, int | float) else 0.0 for number in numbers))


def _text(card: Card, name: str) -> str:
    value = card.get(name)
    return one_line(value) if isinstance(value, str) else ""


def _dicts(items: object) -> list[Card]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
