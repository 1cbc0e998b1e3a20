"""AsciiDoc (.adoc): the source itself, cut at its headings."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, takewhile
from typing import Final

from kb.api.tag_tree import clean_tags
from kb.formats.text.builder import LONGEST_HEADING, Heading, lone_title, sections_under
from kb.formats.text.dates import iso_date
from kb.formats.text.encoding import decode, one_line
from kb.formats.text.extracted import Extracted
from kb.markdown.front_matter import front_matter

_HEADING: Final = re.compile(r"(?P<marks>={1,6}|#{1,6})[ \t]+(?P<title>\S.*)")
_UNDERLINE: Final = re.compile(r"([=~^+-])\1{3,}")
_UNDERLINES: Final = "=-~^+"
_NEAR: Final = 1
"""The difference in length up to which a line of signs underlines a heading."""

_EDGE: Final = re.compile(r"-{4,}|\.{4,}|/{4,}|\+{4,}|(?P<fence>`{3,})\w*")
"""The first line of a block such as code or a comment; the last one is the same."""

_ATTRIBUTE: Final = re.compile(r":(?P<name>[\w-]+):(?:[ \t]+(?P<value>.*))?")
_REVISION: Final = re.compile(r"(?:v[\w.]+,[ \t]*)?(?P<date>[^:]{4,40}?)[ \t]*(?::.*)?")
_HEADER_LINES: Final = 4
_MARKUP: Final = re.compile(
    r"\[\[[^\[\]]{1,200}\]\]|\[[#.][^\[\]]{1,200}\](?=[#*_`])|(?<!\w)[*_`#]{1,2}(?=\S)|(?<=\S)[*_`#]{1,2}(?!\w)"
)
_DATES: Final = ("revdate", "date", "docdate", "page-date", "jbake-date", "created")
_WRITTEN: Final = ("%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%d %b %Y", "%d.%m.%Y")
_TAGS: Final = ("tags", "page-tags", "jbake-tags")


def read(data: bytes) -> Extracted:
    """Read an AsciiDoc file; blocks, such as code and comments, contain no headings."""
    text = decode(data)
    front = front_matter(text)
    attributes = dict[str, str]()
    headings = list(_headings(text.split("\n"), text.count("\n", 0, front.length), attributes))
    tags = " ".join(attributes.get(name, "") for name in _TAGS).replace(",", " ").strip("[]").split()
    return Extracted(
        front.title or one_line(attributes.get("doctitle", "")) or lone_title(headings),
        text,
        sections_under(text, headings),
        tags=clean_tags([*front.tags, *tags]),
        date=front.date or _date(text, headings, attributes),
        aliases=front.aliases,
    )


def _headings(lines: Sequence[str], begin: int, attributes: dict[str, str]) -> Iterator[Heading]:
    """Yield the headings, and add the values of attributes by their names."""
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    block = ""
    for number, line in enumerate(map(str.rstrip, lines[begin:]), start=begin):
        if block:
            block = "" if line == block else block
        elif match := _HEADING.fullmatch(line):
            yield from _heading(starts[number], len(match["marks"]), match["title"])
        elif number > begin and _is_title(lines[number - 1].rstrip(), line):
            yield from _heading(starts[number - 1], _UNDERLINES.index(line[0]) + 1, lines[number - 1])
        elif edge := _EDGE.fullmatch(line):
            block = edge["fence"] or line
        elif attribute := _ATTRIBUTE.fullmatch(line):
            attributes.setdefault(attribute["name"].lower(), (attribute["value"] or "").strip())


def _is_title(line: str, under: str) -> bool:
    is_underlined = _UNDERLINE.fullmatch(under) and abs(len(line) - len(under)) <= _NEAR
    return bool(is_underlined) and line[0].isalnum() and any(map(str.isalpha, line))


def _heading(start: int, level: int, written: str) -> Iterator[Heading]:
    title = one_line(_MARKUP.sub("", written))
    if title and len(title) <= LONGEST_HEADING:
        yield Heading(start, level, title)


def _date(text: str, headings: Sequence[Heading], attributes: Mapping[str, str]) -> str | None:
    """Return the date in an attribute, or failing that, in the revision below the title and the authors."""
    has_header = headings and headings[0].level == 1
    below = text[headings[0].start :].split("\n", _HEADER_LINES)[1:_HEADER_LINES] if has_header else []
    header = takewhile(bool, map(str.strip, below))
    revisions = filter(None, map(_REVISION.fullmatch, header))
    written = [attributes.get(name, "") for name in _DATES] + [revision["date"] for revision in revisions]
    return next(filter(None, map(_iso, written)), None)


def _iso(written: str) -> str | None:
    for form in _WRITTEN:
        with suppress(ValueError):
            return dt.datetime.strptime(written, form).date().isoformat()  # noqa: DTZ007 - only the day is used
    return iso_date(written)
