"""Org (.org): the source itself, cut at its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kb.api.tag_tree import clean_tags
from kb.formats.text.builder import LONGEST_HEADING, Heading, lone_title, sections_under
from kb.formats.text.dates import iso_date
from kb.formats.text.encoding import decode, one_line
from kb.formats.text.extracted import Extracted

_LINE: Final = re.compile(
    r"(?m)^(?:(?P<stars>\*+)[ \t]+(?P<heading>\S.*)|[ \t]*#\+(?i:(?P<edge>begin|end)_(?P<block>\w+))"
    r"|#\+(?P<key>\w+):[ \t]*(?P<value>.*))"
)
_STATE: Final = re.compile(r"^(?:(?:TODO|NEXT|DONE|WAITING|HOLD|CANCELLED|CANCELED)\s+)?(?:\[#\w\]\s*)?(?:COMMENT\s+)?")
_HEADING_TAGS: Final = re.compile(r"(?<=\s):[\w@#%:]+:\s*$")
_TIMESTAMP: Final = re.compile(r"[<\[](\d{4}-\d\d-\d\d)[^>\]]*[>\]]")


def read(data: bytes) -> Extracted:
    """Read an Org file; blocks, such as code, contain no headings."""
    text = decode(data)
    headings, keys, block = list[Heading](), dict[str, str](), ""
    for line in _LINE.finditer(text):
        if line["edge"]:
            block = _block(line["edge"].lower(), line["block"].lower(), block)
        elif not block and line["heading"]:
            headings += _headings(line)
        elif not block and line["key"]:
            keys.setdefault(line["key"].lower(), line["value"])
    return Extracted(
        one_line(keys.get("title", "")) or lone_title(headings),
        text,
        sections_under(text, headings),
        tags=clean_tags(keys.get("filetags", "").replace(":", " ").split()),
        date=iso_date(_TIMESTAMP.sub(r"\1", keys.get("date", ""))),
    )


def _block(edge: str, name: str, current: str) -> str:
    """Return the current block after an edge line; a block cannot contain another with its name."""
    if edge == "begin":
        return current or name
    return "" if name == current else current


def _headings(line: re.Match[str]) -> Iterator[Heading]:
    title = one_line(_HEADING_TAGS.sub("", _STATE.sub("", line["heading"])))
    if title and len(title) <= LONGEST_HEADING:
        yield Heading(line.start(), len(line["stars"]), title)
