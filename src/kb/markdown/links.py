"""The links in a Markdown text, by Obsidian's rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_INNER: Final = r"\[(?P<inner>[^\[\]\n]{1,1000}(?:\[[^\[\]\n]{0,500}\][^\[\]\n]{0,1000}){0,5})\]\]"
WIKI: Final = re.compile(rf"(?P<embed>!?)\[{_INNER}")
"""A link to a note or a file, with its heading and other text; the name may have brackets of its own."""

BEHIND: Final = ".,;:!?*_~"
"""Marks after an address that do not belong to it."""

PLAIN: Final = r"(?:[^\s()<>]|\([^\s()]{0,500}\)){1,2000}"
"""The destination of a link without angle brackets."""

_ADDRESS: Final = r"://[^\s<>\[\]()\"'`|]{1,2000}"

# Each alternative begins with a letter of its own: only then does the search skip other letters, which is ten times
# as fast.
_LINK: Final = re.compile(
    rf"\[(?<!\\\[){_INNER}"
    rf"|\]\([ \t]*(?:<(?P<quoted>[^<>\n]{{1,2000}})>|(?P<plain>{PLAIN}))"
    r"(?:[ \t]+(?:\"[^\"\n]{0,500}\"|'[^'\n]{0,500}'))?[ \t]*\)"
    r"|\[(?:(?<=^\[)|(?<=^ \[)|(?<=^ {2}\[)|(?<=^ {3}\[)|(?<=^> \[)|(?<=^>\[))(?!\^)"
    r"[^\[\]\n]{1,200}\]:[ \t]*(?:\n[> \t]{0,9}(?=<))?"
    r"(?:<(?P<defined>[^<>\n]{1,2000})>|(?P<reference>[^\s<>]{1,2000}))"
    rf"|https?{_ADDRESS}|kb{_ADDRESS}",
    re.MULTILINE,
)
_LABEL: Final = 500


class WrittenLink(NamedTuple):
    """A link as written: its target, and its range in characters. `is_wiki` if it is in double brackets."""

    target: str
    start: int
    end: int
    is_wiki: bool


def links_in(prose: str) -> Iterator[WrittenLink]:
    """Yield the links in a text without code and comments."""
    for match in _LINK.finditer(prose):
        if inner := match["inner"]:
            yield WrittenLink(wiki_target(inner), *match.span(), is_wiki=True)
        else:
            target = match["quoted"] or match["plain"] or match["defined"] or match["reference"]
            yield WrittenLink(target or match[0].rstrip(BEHIND), *match.span(), is_wiki=False)


def wiki_target(inner: str) -> str:
    """Return the target of a link in double brackets, without its other text."""
    return inner.partition("|")[0].removesuffix("\\").strip()


def link_ranges(prose: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of links with their texts."""
    end = 0
    for link in links_in(prose):
        start = link.start
        if prose[start] == "]":
            start = max(prose.rfind("[", max(end, start - _LABEL), start), end)
        yield start, link.end
        end = link.end
