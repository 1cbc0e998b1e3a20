"""The #tags in a text, by Obsidian's rules.

A tag follows white space. It ends before the first sign that cannot be in it, and has at least one letter or emoji. A #
in code, comments, links and formulas makes no tag.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from itertools import takewhile
from typing import Final
from unicodedata import category

from kb.api.tag_tree import clean_tags
from kb.markdown.blocks import Block, blocks_of
from kb.markdown.front_matter import front_matter
from kb.markdown.links import link_ranges
from kb.markdown.prose import masked, prose

_EMPHASIS: Final = "*_~="
_WORD: Final = r"[^\s!-,.:-@\[-^`{-~]+"
_HASH: Final = re.compile(rf"#(?={_WORD})")
_TAG: Final = re.compile(rf"(?:(?<!\S)[{_EMPHASIS}]{{0,3}}|(?<=\|))#(?P<word>{_WORD})")
"""A # after white space, signs of emphasis or a border of a table; and a word, which may end with signs of no tag."""

_FORMULA: Final = re.compile(r"\$\$[^$]{1,2000}\$\$|(?<![\\$\w])\$(?=[^\s$])[^$\n]{0,500}?(?<=[^\s\\])\$(?![\w$])")
_COLOUR: Final = re.compile(
    r"(?![a-f]2[a-f]$)(?=.*\d)(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})|([a-f])\1\1(?:\1{3})?|([a-f]{2})\2\2"
    r"|(?:([a-f])\3){2}([a-f])\4",
    re.IGNORECASE,
)
"""As many hex digits as a colour has, with a decimal digit, as in #c0ffee, but not b2b; or repeated, as in #fafafa."""

_LINES: Final = re.compile(r"L\d+(?:C\d+)?(?:-L?\d+(?:C\d+)?)?")
_DIRECTIVES: Final = {
    *("include", "include_next", "import", "define", "undef", "if", "ifdef", "ifndef", "elif", "elifdef", "else"),
    *("endif", "pragma", "error", "warning", "line", "region", "endregion", "nullable"),
}
"""Compiler directives after a #; these are not tags."""


def tags_in(text: str) -> tuple[str, ...]:
    """Return the #tags in a whole text, without its front matter, which can turn them off."""
    if not _HASH.search(text):
        return ()
    text = text.replace("\r\n", "\n")
    front = front_matter(text)
    return tags_of_blocks(text, blocks_of(text, front.length)) if front.inline_tags else ()


def changed_tags(before: str, after: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the #tags in a text that its earlier version lacks, and the #tags of that version that the text lacks."""
    if before == after or "#" not in before + after:
        return (), ()
    known, tags = tags_in(before), tags_in(after)
    return tuple(tag for tag in tags if tag not in known), tuple(tag for tag in known if tag not in tags)


def tags_of_blocks(text: str, blocks: Iterable[Block]) -> tuple[str, ...]:
    """Return the #tags in the paragraphs and headings of a text."""
    if not _HASH.search(text):
        return ()
    shown = prose(text)
    parts = (_without_links(shown[each.start : each.end]) for each in blocks if _HASH.search(shown, *each[:2]))
    return clean_tags(tag_at(part, sign.start()) for part in parts for sign in _HASH.finditer(part))


def _without_links(prose: str) -> str:
    """Return a paragraph with backticks in place of links and formulas."""
    text = masked(prose, link_ranges(prose), "`")
    return masked(text, (formula.span() for formula in _FORMULA.finditer(text)), "`") if "$" in text else text


def tag_at(text: str, place: int, end: int = sys.maxsize) -> str:
    """Return the name of the tag whose # is at a place; empty for a mere number, a colour, or a word of a program."""
    begin = place
    while begin and text[begin - 1] in _EMPHASIS:
        begin -= 1
    tag = _TAG.match(text, begin, end)
    if not tag or tag.start("word") != place + 1:
        return ""
    word = tag["word"]
    if not word.isascii():
        word = "".join(takewhile(_can_be_in_tag, word))
    if "_" in text[begin:place]:
        word = word.rstrip("_")
    is_word = any(not sign.isdigit() and sign not in "_-/" for sign in word)
    return word if is_word and not (_COLOUR.fullmatch(word) or _LINES.fullmatch(word) or word in _DIRECTIVES) else ""


def _can_be_in_tag(sign: str) -> bool:
    """Return whether a sign is a letter, a digit, an emoji, a part of one, or one of - _ /."""
    return sign.isalnum() or sign in "_-/\u200c\u200d" or category(sign) in ("Mn", "Mc", "Me", "So", "Sk")
