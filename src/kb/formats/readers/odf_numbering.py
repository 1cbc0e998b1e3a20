"""The numbers that OpenDocument programs count themselves and show before headings and items of lists."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from kb.formats.containers.zip import attribute, local_name, whole_number
from kb.formats.text.encoding import one_line
from kb.formats.text.numerals import base_letters, roman

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lxml import etree

BULLET: Final = "-"
_LEVELS: Final = 10
_LONGEST: Final = 60
_MOST: Final = 32_767
_PLACE: Final = re.compile(r"%(\d{1,2})%")


class _Level(NamedTuple):
    """How one level counts: `shown` levels stand in its number, or it is made as `pattern` says (%1%.%2%)."""

    is_bullet: bool = False
    way: str = ""
    before: str = ""
    after: str = ""
    shown: int = 1
    start: int = 1
    pattern: str = ""


@dataclass(slots=True)
class Counting:
    """How far a list has been counted."""

    style: str = ""
    values: dict[int, int] = field(default_factory=dict)


class Numbering:
    """The lists and the numbered headings of a document; asked for them in their order.

    Args:
        roots: the parts that define the styles.
    """

    def __init__(self, roots: Iterable[etree._Element]) -> None:
        self._styles: dict[str, dict[int, _Level]] = {}
        self._outline: dict[int, _Level] = {}
        self._headings = Counting()
        self._by_style: dict[str, Counting] = {}
        self._by_id: dict[str, Counting] = {}
        for root in roots:
            for style in root.iter("{*}list-style"):
                self._styles.setdefault(attribute(style, "name") or "", _levels(style))
            for style in root.iter("{*}outline-style"):
                self._outline = _levels(style)

    def begin(self, items: etree._Element) -> Counting:
        """Return how far a list has been counted that begins now: it may go on from another one."""
        style = attribute(items, "style-name") or ""
        counting = self._by_id.get(attribute(items, "continue-list") or "")
        if counting is None and attribute(items, "continue-numbering") == "true":
            counting = self._by_style.get(style)
        if counting is None:
            counting = Counting(style)
        self._by_style[style] = counting
        if name := attribute(items, "id"):
            self._by_id[name] = counting
        return counting

    def mark(self, counting: Counting, style: str, depth: int, item: etree._Element) -> str:
        """Count an item of a list, and return what stands before it: a number, `BULLET`, or nothing."""
        levels = self._styles.get(style)
        if local_name(item) == "list-header":
            return ""
        _count(counting.values, levels or {}, depth, _start(item))
        level = levels.get(depth) if levels else None
        if level is None or level.is_bullet:
            return BULLET
        return _shown(counting.values, levels or {}, depth)

    def heading(self, heading: etree._Element, depth: int) -> str:
        """Count a heading, and return the number that stands before it, if any."""
        if not self._outline or attribute(heading, "is-list-header") == "true":
            return ""
        start = _start(heading) if attribute(heading, "restart-numbering") == "true" else None
        _count(self._headings.values, self._outline, depth, start)
        level = self._outline.get(depth, _Level())
        return _shown(self._headings.values, self._outline, depth) if level.way else ""

    def is_clause(self, style: str, depth: int) -> bool:
        """Return whether others refer to an item by its number: its list counts 7, 7.1, 7.1.1."""
        levels = self._styles.get(style, {})
        return _parts(levels.get(depth, _Level())) == depth and any(_parts(each) > 1 for each in levels.values())


def _parts(level: _Level) -> int:
    """Return of how many levels the number of one is made."""
    return len(set(_PLACE.findall(level.pattern))) if level.pattern else level.shown if level.way else 0


def _levels(style: etree._Element) -> dict[int, _Level]:
    levels = {}
    for element in style:
        depth = whole_number(element, "level")
        if 0 < depth <= _LEVELS:
            levels[depth] = _Level(
                is_bullet=local_name(element) in {"list-level-style-bullet", "list-level-style-image"},
                way=attribute(element, "num-format") or "",
                before=attribute(element, "num-prefix") or "",
                after=attribute(element, "num-suffix") or "",
                shown=whole_number(element, "display-levels", 1),
                start=whole_number(element, "start-value", 1),
                pattern=(attribute(element, "num-list-format") or "")[:_LONGEST],
            )
    return levels


def _start(item: etree._Element) -> int | None:
    """Return the number that an item has whatever was counted, if any."""
    return None if attribute(item, "start-value") is None else whole_number(item, "start-value", 1)


def _count(values: dict[int, int], levels: Mapping[int, _Level], depth: int, start: int | None) -> None:
    if start is not None:
        values[depth] = start
    elif depth in values:
        values[depth] += 1
    else:
        values[depth] = levels.get(depth, _Level()).start
    for deeper in [each for each in values if each > depth]:
        del values[deeper]


def _shown(values: Mapping[int, int], levels: Mapping[int, _Level], depth: int) -> str:
    """Return the number of an item; nothing where there are no words or numbers to see."""
    level = levels[depth]

    def number(place: int) -> str:
        counted = levels.get(place, _Level())
        return _written(values.get(place, counted.start), counted.way)

    if level.pattern:
        shown = _PLACE.sub(lambda found: number(int(found[1])), level.pattern)
    else:
        first = max(1, depth - level.shown + 1)
        numbers = ".".join(filter(None, map(number, range(first, depth + 1))))
        shown = f"{level.before}{numbers if level.way else ''}{level.after}"
    return one_line(shown) if any(map(str.isalnum, shown)) else ""


def _written(number: int, way: str) -> str:
    if not 0 < number <= _MOST:
        return str(number) if way else ""
    lower = {"i": roman, "a": base_letters}.get(way.lower()[:1])
    if lower is None:
        return str(number) if way else ""
    text = lower(number)
    return text.upper() if way[0].isupper() else text
