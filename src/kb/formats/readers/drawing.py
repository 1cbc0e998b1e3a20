"""Drawings in Office Open XML: the text of shapes, charts as their source tables, diagrams, equations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

from lxml import etree

from kb.formats.containers.zip import local_name, whole_number
from kb.formats.readers.omml import linear
from kb.formats.text.builder import TextBuilder
from kb.formats.text.encoding import one_line
from kb.formats.text.tables import write_table

if TYPE_CHECKING:
    from kb.formats.containers.ooxml import Package, Relation

DRAWN: Final = {"chart", "chartEx", "diagramData"}
"""The relation types of parts that a frame shows."""

_INLINE: Final = {"r", "fld", "m", "oMathPara", "AlternateContent", "Choice"}


def paragraphs(element: etree._Element) -> Iterator[str]:
    for paragraph in element.iter("{*}p"):
        yield inline(paragraph)


def inline(paragraph: etree._Element) -> str:
    return "".join(_pieces(paragraph))


def _pieces(element: etree._Element) -> Iterator[str]:
    for child in element:
        name = local_name(child)
        if name == "t":
            yield child.text or ""
        elif name == "br":
            yield "\n"
        elif name == "oMath":
            yield one_line(linear(child))
        elif name in _INLINE:
            yield from _pieces(child)


def write_drawn(relation: Relation, package: Package, text: TextBuilder, *, level: int) -> None:
    """Add the content of a drawing, as a table under headings from `level` on; embedded objects are not XML."""
    root = package.side_xml(relation.target) if relation.kind in DRAWN else None
    if root is None:
        return
    if relation.kind == "diagramData":
        _write_lines(paragraphs(root), text)
    elif relation.kind == "chartEx":
        _write_lines(_values(root), text)
    else:
        _write_chart(root, text, level)
        for drawing in package.related_xml(relation.target, "chartUserShapes"):
            _write_lines(paragraphs(drawing), text)


def _write_lines(lines: Iterator[str], text: TextBuilder) -> None:
    for line in map(one_line, lines):
        if line:
            text.line(line)


def _values(root: etree._Element) -> Iterator[str]:
    """Yield the words of a chart of the types added after 2010, its title first."""
    for title in root.iter("{*}title", "{*}tx"):
        yield from paragraphs(title)
        yield from (value.text or "" for value in title.iter("{*}v"))
    for dimension in root.iter("{*}strDim", "{*}numDim"):
        yield " | ".join(point.text or "" for point in dimension.iter("{*}pt"))


def _write_chart(root: etree._Element, text: TextBuilder, level: int) -> None:
    """Write a chart as its source table: its title, a row for each category, then the titles of its axes."""
    titles = [_title(title) for title in root.iterfind("{*}chart/{*}title")]
    axes = [_title(title) for title in root.iterfind("{*}chart/{*}plotArea/*/{*}title")]
    _write_lines(iter(titles), text)
    series = list(root.iterfind("{*}chart/{*}plotArea/*/{*}ser"))
    categories = next(filter(None, (_points(one, "cat", "xVal") for one in series)), {})
    columns = [_points(one, "val", "yVal") for one in series]
    indexes = sorted(set(categories).union(*columns))
    names = ["", *(" ".join(_points(one, "tx").values()) for one in series)]
    rows = ([categories.get(index, ""), *(column.get(index, "") for column in columns)] for index in indexes)
    write_table(text, [names, *rows], level=level)
    labels = (line for label in root.iter("{*}dLbl") for line in paragraphs(label))
    _write_lines(chain(axes, labels), text)


def chart_titles(root: etree._Element) -> list[str]:
    titles = (*root.iterfind("{*}chart/{*}title"), *root.iterfind("{*}chart/{*}plotArea/*/{*}title"))
    return [*filter(None, (one_line(_title(title)) for title in titles))]


def _title(title: etree._Element) -> str:
    written = [*paragraphs(title), *(value.text or "" for value in title.iterfind("{*}tx/{*}strRef//{*}v"))]
    return " ".join(written)


def _points(series: etree._Element, *names: str) -> dict[int, str]:
    """Return the values of a series by their number, from the file's copy, because the workbook may be missing."""
    points = next((part for name in names for part in series.iterfind(f"{{*}}{name}")), None)
    values = dict[int, str]()
    for point in points.iter("{*}pt") if points is not None else ():  # with several levels, the outer ones come later
        index, value = whole_number(point, "idx"), point.findtext("{*}v") or ""
        values[index] = f"{value} {values[index]}" if values.get(index) else value
    literal = points.findtext("{*}v") if points is not None and not values else None
    return {0: literal} if literal else values
