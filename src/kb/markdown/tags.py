"""The #tags in a text, by Obsidian's rules.

A tag follows white space. It ends before the first sign that cannot be in it, and has at least one letter or emoji. A #
in code, comments, links and formulas makes no tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Final
from unicodedata import category

from kb.markdown.links import link_ranges
from kb.markdown.prose import masked, prose

EMPHASIS: Final = "*_~="
TAG: Final = re.compile(r"(?:(?<!\S)(?P<emphasis>[*_~=]{0,3})|(?<=\|))#(?P<word>[^\s!-,.:-@\[-^`{-~]+)")
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
_LONGEST_TAG: Final = 200
_MOST_TAGS: Final = 100
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def tags_in(text: str) -> tuple[str, ...]:
    """Return the #tags in a whole text, without its front matter."""
    if not TAG.search(text):
        return ()
    from kb.markdown.blocks import blocks_of  # the parser is slow to import, and few texts need it
    from kb.markdown.front_matter import body_start

    text = text.replace("\r\n", "\n")
    return tags_of_blocks(text, [(block.start, block.end) for block in blocks_of(text, body_start(text))])


def tags_of_blocks(text: str, blocks: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """Return the #tags in the paragraphs and headings of a text, which are at some ranges."""
    if not TAG.search(text):
        return ()
    shown = prose(text)
    parts = (_without_links(shown[begin:end]) for begin, end in blocks if TAG.search(shown, begin, end))
    return clean_tags([name for part in parts for tag in TAG.finditer(part) if (name := tag_name(tag))])


def _without_links(prose: str) -> str:
    """Return a paragraph with backticks in place of links and formulas."""
    text = masked(prose, link_ranges(prose), "`")
    return masked(text, (formula.span() for formula in _FORMULA.finditer(text)), "`") if "$" in text else text


def tag_name(tag: re.Match[str]) -> str:
    """Return the name of a tag that `TAG` matches; empty if it is only a number, a colour, or of a program."""
    word = tag["word"]
    if not word.isascii():
        word = "".join(takewhile(_can_be_in_tag, word))
    if "_" in (tag["emphasis"] or ""):
        word = word.rstrip("_")
    is_word = any(not sign.isdigit() and sign not in "_-/" for sign in word)
    return word if is_word and not (_COLOUR.fullmatch(word) or _LINES.fullmatch(word) or word in _DIRECTIVES) else ""


def _can_be_in_tag(sign: str) -> bool:
    """Return whether a sign is a letter, a digit, an emoji, a part of one, or one of - _ /."""
    return sign.isalnum() or sign in "_-/\u200c\u200d" or category(sign) in ("Mn", "Mc", "Me", "So", "Sk")


def clean_tags(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words as tags: without their #, each once, and only valid ones."""
    tags = (" ".join(word.split()).lstrip("#").strip().strip("/") for word in words)
    known = (tag for tag in tags if tag and len(tag) <= _LONGEST_TAG and not _CONTROL.search(tag))
    return tuple(dict.fromkeys(known))[:_MOST_TAGS]
