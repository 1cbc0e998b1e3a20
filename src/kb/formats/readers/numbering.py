"""The numbers that Word and OpenDocument programs compute: `7.3`, `(a)`, `Article IV`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lxml import etree

from kb.formats.containers.zip import attribute, local_name, whole_number
from kb.formats.text.encoding import one_line
from kb.formats.text.numerals import written

BULLET: Final = "-"
_NO_NUMBER: Final = "none"

_WORD_LEVELS: Final = 9
_WORD_PLACE: Final = re.compile(r"%([1-9])")
_LONGEST_WORD_TEXT: Final = 100
_CUSTOM: Final = re.compile(r"0*1(?=,|$)")

_ODF_LEVELS: Final = 10
_ODF_PLACE: Final = re.compile(r"%(\d{1,2})%")
_LONGEST_ODF_TEXT: Final = 60
_ODF_BULLETS: Final = {"list-level-style-bullet", "list-level-style-image"}
_ODF_WAYS: Final = {"i": "lowerRoman", "I": "upperRoman", "a": "baseLetter", "A": "upperBaseLetter"}


class Level(NamedTuple):
    """The numbering and appearance of one level of a list.

    Args:
        start: its first number.
        way: the notation of its number, as named in `kb.formats.text.numerals`.
        pieces: its words alternating with levels, counted from one, whose numbers appear between the words.
        shown: the number of levels in its number.
        is_bullet: whether it shows a bullet instead.
        restarts_after: the level, counted from one, after which it restarts; 0 means never, None after any above it.
        is_legal: whether it writes the numbers of other levels in digits.
        width: the minimum number of digits of its number.
        style: its paragraph style.
    """

    start: int = 1
    way: str = "decimal"
    pieces: tuple[str, ...] = ("",)
    shown: int = 0
    is_bullet: bool = False
    restarts_after: int | None = None
    is_legal: bool = False
    width: int = 0
    style: str | None = None


def _is_clause(levels: Mapping[int, Level], depth: int) -> bool:
    """Return whether others cite an item by its number, as in contracts: its list counts 7, 7.1, 7.1.1."""
    level = levels.get(depth)
    return level is not None and level.shown == depth and any(level.shown > 1 for level in levels.values())


def _count(values: dict[int, int], levels: Mapping[int, Level], depth: int, start: int | None) -> None:
    """Count an item, restarting at `start` if given."""
    if start is not None:
        values[depth] = start
    elif depth in values:
        values[depth] += 1
    else:
        values[depth] = levels.get(depth, Level()).start
    for deeper in [value for value in values if value > depth]:
        after = levels.get(deeper, Level()).restarts_after
        if after is None or depth <= after:
            del values[deeper]


def _shown(
    values: Mapping[int, int], levels: Mapping[int, Level], level: Level, starts: Mapping[int, int] | None = None
) -> str:
    """Return a level's text with its numbers; empty if it has no visible words or numbers."""

    def number(place: int) -> str:
        counted = levels.get(place, Level())
        if counted.way == _NO_NUMBER:
            return ""
        start = (starts or {}).get(place, counted.start)
        way = "decimal" if level.is_legal and counted.way != "decimalZero" else counted.way
        return written(values.get(place, start), way).zfill(counted.width)

    pieces = (number(int(piece)) if index % 2 else piece for index, piece in enumerate(level.pieces))
    text = one_line("".join(pieces))
    return text if any(map(str.isalnum, text)) or level.way == "chicago" else ""


class Item(NamedTuple):
    """A Word paragraph's place: an item of the list `number` at this level."""

    number: str
    level: int


@dataclass(slots=True)
class _Counters:
    """The current numbers of a definition's levels, and the lists that have started to count."""

    values: dict[int, int] = field(default_factory=dict)
    begun: set[Item] = field(default_factory=set)


class _List(NamedTuple):
    """A list's levels, the counters that it shares with other lists, and its restart numbers."""

    counters: _Counters
    levels: Mapping[int, Level]
    starts: Mapping[int, int]


class WordNumbering:
    """The lists of a Word document; pass it the paragraphs in order.

    Args:
        root: the part that defines them.
        style_numbers: the list of each style.
    """

    def __init__(self, root: etree._Element | None, style_numbers: Mapping[str, str]) -> None:
        self._lists: dict[str, _List] = {}
        if root is None:
            return
        definitions = {
            attribute(definition, "abstractNumId"): definition for definition in root.iterfind("{*}abstractNum")
        }
        numbers = {attribute(instance, "numId") or "": instance for instance in root.iterfind("{*}num")}
        shared = {name: _Counters() for name in definitions}
        known: dict[str | None, dict[int, Level]] = {}
        for number, element in numbers.items():
            name = attribute(element.find("{*}abstractNumId"), "val")
            if name not in definitions:
                continue
            if name not in known:
                linked = _linked(definitions[name], style_numbers, numbers, definitions)
                known[name] = _word_levels(linked.iterfind("{*}lvl"))
            own, starts = _overrides(element)
            self._lists[number] = _List(shared[name], {**known[name], **own} if own else known[name], starts)

    def level_of_style(self, number: str, style: str) -> int:
        numbered = self._lists.get(number)
        levels = numbered.levels.items() if numbered else ()
        return next((depth - 1 for depth, level in levels if level.style == style), 0)

    def is_clause(self, item: Item) -> bool:
        numbered = self._lists.get(item.number)
        return numbered is not None and _is_clause(numbered.levels, item.level + 1)

    def mark(self, item: Item) -> str:
        """Count a paragraph, and return its prefix: a number, `BULLET`, or an empty string."""
        numbered = self._lists.get(item.number)
        if numbered is None:
            return BULLET
        depth, values = item.level + 1, numbered.counters.values
        begins = item not in numbered.counters.begun
        numbered.counters.begun.add(item)
        _count(values, numbered.levels, depth, numbered.starts.get(depth) if begins or depth not in values else None)
        level = numbered.levels.get(depth, Level())
        return BULLET if level.is_bullet else _shown(values, numbered.levels, level, numbered.starts)


def _linked(
    definition: etree._Element,
    style_numbers: Mapping[str, str],
    numbers: Mapping[str, etree._Element],
    definitions: Mapping[str | None, etree._Element],
) -> etree._Element:
    """Return the definition with the levels, because a definition may only name a style whose list has them."""
    style = attribute(definition.find("{*}numStyleLink"), "val")
    element = numbers.get(style_numbers.get(style or "", ""))
    name = attribute(element.find("{*}abstractNumId"), "val") if element is not None else None
    return definitions.get(name, definition)


def _word_levels(elements: Iterable[etree._Element]) -> dict[int, Level]:
    depths = ((whole_number(element, "ilvl", -1) + 1, element) for element in elements)
    return {depth: _word_level(element) for depth, element in depths if 0 < depth <= _WORD_LEVELS}


def _overrides(number: etree._Element) -> tuple[dict[int, Level], dict[int, int]]:
    """Return a list's own levels, and the start numbers that it overrides."""
    levels, starts = dict[int, Level](), dict[int, int]()
    for override in number.iterfind("{*}lvlOverride"):
        depth = whole_number(override, "ilvl", -1) + 1
        if not 0 < depth <= _WORD_LEVELS:
            continue
        if (own := override.find("{*}lvl")) is not None:
            levels[depth] = _word_level(own)
        if (start := override.find("{*}startOverride")) is not None:
            starts[depth] = whole_number(start, "val", 1)
    return levels, starts


def _word_level(element: etree._Element) -> Level:
    way, custom = _way(element)
    restart = element.find("{*}lvlRestart")
    is_hidden = _is_on(element.find("{*}rPr/{*}vanish"))
    text = "" if is_hidden else (attribute(element.find("{*}lvlText"), "val") or "")[:_LONGEST_WORD_TEXT]
    return Level(
        start=whole_number(element.find("{*}start"), "val"),
        way=way,
        pieces=tuple(_WORD_PLACE.split(text)),
        shown=len(set(_WORD_PLACE.findall(text))),
        is_bullet=way == "bullet",
        restarts_after=None if restart is None else whole_number(restart, "val"),
        is_legal=_is_on(element.find("{*}isLgl")),
        width=len(custom),
        style=attribute(element.find("{*}pStyle"), "val"),
    )


def _way(level: etree._Element) -> tuple[str, str]:
    """Return the notation of a level's number, and the first number of the author's own notation, such as `001`."""
    format_ = next(level.iter("{*}numFmt"), None)
    way = attribute(format_, "val") or "decimal"
    if way != "custom":
        return way, ""
    first = _CUSTOM.match((attribute(format_, "format") or "").strip())
    return "decimal", first[0] if first else ""


def _is_on(element: etree._Element | None) -> bool:
    return element is not None and attribute(element, "val") not in {"0", "false", "off"}


@dataclass(slots=True)
class ListCount:
    style: str = ""
    values: dict[int, int] = field(default_factory=dict)


class OdfNumbering:
    """The lists and the numbered headings of an OpenDocument text; pass them in order.

    Args:
        roots: the parts that define the styles.
    """

    def __init__(self, roots: Iterable[etree._Element]) -> None:
        self._styles: dict[str, dict[int, Level]] = {}
        self._outline: dict[int, Level] = {}
        self._headings = ListCount()
        self._by_style: dict[str, ListCount] = {}
        self._by_id: dict[str, ListCount] = {}
        for root in roots:
            for style in root.iter("{*}list-style"):
                self._styles.setdefault(attribute(style, "name") or "", _odf_levels(style))
            for style in root.iter("{*}outline-style"):
                self._outline = _odf_levels(style)

    def begin(self, items: etree._Element) -> ListCount:
        """Return the count of a list that begins now, which may continue another list."""
        style = attribute(items, "style-name") or ""
        counting = self._by_id.get(attribute(items, "continue-list") or "")
        if counting is None and attribute(items, "continue-numbering") == "true":
            counting = self._by_style.get(style)
        if counting is None:
            counting = ListCount(style)
        self._by_style[style] = counting
        if name := attribute(items, "id"):
            self._by_id[name] = counting
        return counting

    def mark(self, counting: ListCount, style: str, depth: int, item: etree._Element) -> str:
        """Count an item of a list, and return its prefix: a number, `BULLET`, or an empty string."""
        if local_name(item) == "list-header":
            return ""
        levels = self._styles.get(style, {})
        _count(counting.values, levels, depth, _start(item))
        level = levels.get(depth)
        return BULLET if level is None or level.is_bullet else _shown(counting.values, levels, level)

    def heading(self, heading: etree._Element, depth: int) -> str:
        """Count a heading, and return its number, or an empty string."""
        if not self._outline or attribute(heading, "is-list-header") == "true":
            return ""
        start = _start(heading) if attribute(heading, "restart-numbering") == "true" else None
        _count(self._headings.values, self._outline, depth, start)
        level = self._outline.get(depth, Level(way=_NO_NUMBER))
        return "" if level.way == _NO_NUMBER else _shown(self._headings.values, self._outline, level)

    def is_clause(self, style: str, depth: int) -> bool:
        return _is_clause(self._styles.get(style, {}), depth)


def _odf_levels(style: etree._Element) -> dict[int, Level]:
    elements = {depth: child for child in style if 0 < (depth := whole_number(child, "level")) <= _ODF_LEVELS}
    numbered = {depth for depth, child in elements.items() if attribute(child, "num-format")}
    return {depth: _odf_level(element, depth, numbered) for depth, element in elements.items()}


def _odf_level(element: etree._Element, depth: int, numbered: set[int]) -> Level:
    """Return a level; it shows only numbers of levels in `numbered`."""
    way, before, after = (attribute(element, f"num-{name}") or "" for name in ("format", "prefix", "suffix"))
    shown = whole_number(element, "display-levels", 1)
    if pattern := (attribute(element, "num-list-format") or "")[:_LONGEST_ODF_TEXT]:
        shown = len(set(_ODF_PLACE.findall(pattern)))
        text = _ODF_PLACE.sub(lambda place: place[0] if int(place[1]) in numbered else "", pattern)
        pieces = _ODF_PLACE.split(text)
    else:
        places = [other for other in range(max(1, depth - shown + 1), depth + 1) if way and other in numbered]
        pieces = [piece for place in places for piece in (".", str(place))]
        pieces = [before, *pieces[1:], after] if pieces else [before + after]
        shown = shown if way else 0
    return Level(
        start=whole_number(element, "start-value", 1),
        way=_ODF_WAYS.get(way[:1], "decimal") if way else _NO_NUMBER,
        pieces=tuple(pieces),
        shown=shown,
        is_bullet=local_name(element) in _ODF_BULLETS,
    )


def _start(item: etree._Element) -> int | None:
    """Return an item's own start number; None if it has none."""
    return None if attribute(item, "start-value") is None else whole_number(item, "start-value", 1)
