"""The numbers that Word counts itself and shows before paragraphs: `7.3`, `(a)`, `Article IV`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from kb.formats.containers.zip import attribute, whole_number
from kb.formats.text.encoding import one_line
from kb.formats.text.numerals import written

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lxml import etree

BULLET: Final = "-"
_LEVELS: Final = 9
_PLACE: Final = re.compile(r"%([1-9])")
_CUSTOM: Final = re.compile(r"0*1(?=,|$)")
_LONGEST: Final = 100


class Item(NamedTuple):
    """That a paragraph is an item of the list `number`, so many levels deep."""

    number: str
    level: int


class _Level(NamedTuple):
    """How one level of a list counts, and what it shows: `text` has %1 for the number of the first level."""

    start: int = 1
    way: str = "decimal"
    text: str = ""
    restarts_after: int | None = None  # the level, counted from one, with which it begins again; 0 is none
    is_legal: bool = False
    width: int = 0
    style: str | None = None


class _List(NamedTuple):
    """A list's levels, the counters that it shares with other lists, and where it begins anew."""

    counters: _Counters
    levels: Mapping[int, _Level]
    starts: Mapping[int, int]


@dataclass(slots=True)
class _Counters:
    """How far the levels of a definition have been counted, and which lists have begun to count in it."""

    values: dict[int, int] = field(default_factory=dict)
    begun: set[tuple[str, int]] = field(default_factory=set)


class Numbering:
    """The lists of a document; asked for its paragraphs one by one, in order.

    Args:
        root: the part that defines them.
        style_numbers: the list that each style is linked with.
    """

    def __init__(self, root: etree._Element | None, style_numbers: Mapping[str, str]) -> None:
        self._lists: dict[str, _List] = {}
        if root is None:
            return
        definitions = {attribute(each, "abstractNumId"): each for each in root.iterfind("{*}abstractNum")}
        numbers = {attribute(each, "numId") or "": each for each in root.iterfind("{*}num")}
        shared = {name: _Counters() for name in definitions}
        known: dict[str | None, dict[int, _Level]] = {}
        for number, element in numbers.items():
            name = attribute(element.find("{*}abstractNumId"), "val")
            if name not in definitions:
                continue
            if name not in known:
                linked = _linked(definitions[name], style_numbers, numbers, definitions)
                known[name] = _levels(linked.iterfind("{*}lvl"))
            own, starts = _overrides(element)
            self._lists[number] = _List(shared[name], {**known[name], **own} if own else known[name], starts)

    def level_of_style(self, number: str, style: str) -> int:
        """Return the level of a list that belongs to a paragraph style."""
        found = self._lists.get(number)
        levels = found.levels.items() if found else ()
        return next((level for level, each in levels if each.style == style), 0)

    def is_clause(self, item: Item) -> bool:
        """Return whether others refer to an item by its number, as in contracts: its list counts 7, 7.1, 7.1.1."""
        found = self._lists.get(item.number)
        if found is None or len(set(_PLACE.findall(found.levels.get(item.level, _Level()).text))) != item.level + 1:
            return False
        return any(len(set(_PLACE.findall(level.text))) > 1 for level in found.levels.values())

    def mark(self, item: Item) -> str:
        """Count a paragraph, and return what stands before it: a number, `BULLET`, or nothing."""
        found = self._lists.get(item.number)
        if found is None:
            return BULLET
        level = found.levels.get(item.level, _Level())
        _count(found, item)
        if level.way == "bullet":
            return BULLET
        return _shown(found, level)


def _linked(
    definition: etree._Element,
    style_numbers: Mapping[str, str],
    numbers: Mapping[str, etree._Element],
    definitions: Mapping[str | None, etree._Element],
) -> etree._Element:
    """Return the definition that holds the levels: one may only name a style, whose list has them."""
    style = attribute(definition.find("{*}numStyleLink"), "val")
    element = numbers.get(style_numbers.get(style or "", ""))
    name = attribute(element.find("{*}abstractNumId"), "val") if element is not None else None
    return definitions.get(name, definition)


def _levels(elements: Iterable[etree._Element]) -> dict[int, _Level]:
    levels = {}
    for element in elements:
        place = whole_number(element, "ilvl", -1)
        if 0 <= place < _LEVELS:
            levels[place] = _level(element)
    return levels


def _overrides(number: etree._Element) -> tuple[dict[int, _Level], dict[int, int]]:
    """Return the levels that a list defines itself, and where levels start in it."""
    levels, starts = dict[int, _Level](), dict[int, int]()
    for override in number.iterfind("{*}lvlOverride"):
        place = whole_number(override, "ilvl", -1)
        if not 0 <= place < _LEVELS:
            continue
        if (own := override.find("{*}lvl")) is not None:
            levels[place] = _level(own)
        if (start := override.find("{*}startOverride")) is not None:
            starts[place] = whole_number(start, "val", 1)
    return levels, starts


def _level(element: etree._Element) -> _Level:
    way, custom = _way(element)
    restart = element.find("{*}lvlRestart")
    is_hidden = _is_on(element.find("{*}rPr/{*}vanish"))
    return _Level(
        start=whole_number(element.find("{*}start"), "val"),
        way=way,
        text="" if is_hidden else (attribute(element.find("{*}lvlText"), "val") or "")[:_LONGEST],
        restarts_after=None if restart is None else whole_number(restart, "val"),
        is_legal=_is_on(element.find("{*}isLgl")),
        width=len(custom),
        style=attribute(element.find("{*}pStyle"), "val"),
    )


def _way(level: etree._Element) -> tuple[str, str]:
    """Return how a level's number is written, and its first number for a way of the author's own, such as `001`."""
    found = next(level.iter("{*}numFmt"), None)
    way = attribute(found, "val") or "decimal"
    if way != "custom":
        return way, ""
    first = _CUSTOM.match((attribute(found, "format") or "").strip())
    return "decimal", first[0] if first else ""


def _count(found: _List, item: Item) -> None:
    values, level = found.counters.values, item.level
    begins = (item.number, level) not in found.counters.begun
    found.counters.begun.add((item.number, level))
    if level in found.starts and (begins or level not in values):
        values[level] = found.starts[level]
    elif level in values:
        values[level] += 1
    else:
        values[level] = found.levels.get(level, _Level()).start
    for deeper in [each for each in values if each > level]:
        after = found.levels.get(deeper, _Level()).restarts_after
        if after is None or level < after:
            del values[deeper]


def _shown(found: _List, level: _Level) -> str:
    """Return a level's text with the numbers in it; nothing where there are no words or numbers to see."""

    def number(place: re.Match[str]) -> str:
        index = int(place[1]) - 1
        counted = found.levels.get(index, _Level())
        if counted.way == "none":
            return ""
        start = found.starts.get(index, counted.start)
        way = "decimal" if level.is_legal and counted.way != "decimalZero" else counted.way
        text = written(found.counters.values.get(index, start), way)
        return text.zfill(counted.width)

    shown = one_line(_PLACE.sub(number, level.text))
    return shown if any(map(str.isalnum, shown)) or level.way == "chicago" else ""


def _is_on(element: etree._Element | None) -> bool:
    return element is not None and attribute(element, "val") not in {"0", "false", "off"}
