"""The #tags in a text, as Obsidian writes them."""

from __future__ import annotations

import re
from typing import Final

from kb.api.limits import MAX_TAG_CHARS, MAX_TAGS

_TICKS: Final = re.compile(r"(\\[`#])|`+")
# As in Obsidian: after white space; letters, digits, - _ and /, but not only digits.
_INLINE: Final = re.compile(r"(?<!\S)#(?=[\d_/-]*[^\W\d_])(?P<tag>[\w/-]+)(?![^\w\s/.,;:!?)\]}'\"*_~|»”’-])")
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
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def inline_tags(text: str) -> list[str]:
    """Return the #tags in a paragraph or a heading, except in code."""
    return [match["tag"] for match in _INLINE.finditer(_without_code(text)) if _is_tag(match["tag"])]


def _is_tag(word: str) -> bool:
    """Return whether a word after a # is a tag, not a colour, a line of a file, or a compiler directive."""
    return not (_COLOUR.fullmatch(word) or _LINES.fullmatch(word) or word in _DIRECTIVES)


def _without_code(text: str) -> str:
    """Return a text with a backtick in place of each code span, which ends with as many backticks as it begins with."""
    runs = list(_TICKS.finditer(text))
    closing: dict[str, list[int]] = {}
    for index, run in reversed(list(enumerate(runs))):
        closing.setdefault(run[0], []).append(index)
    pieces, place, index = list[str](), 0, 0
    while index < len(runs):
        run, later = runs[index], closing[runs[index][0]]
        while later and later[-1] <= index:
            later.pop()
        end = later[-1] if later and not run[1] else index
        pieces += [text[place : run.start()], "`" if run[1] or end > index else run[0]]
        place, index = runs[end].end(), end + 1
    return "".join([*pieces, text[place:]])


def clean_tags(words: list[str]) -> tuple[str, ...]:
    """Return the words as tags: without their #, each once, and only valid ones."""
    tags = (" ".join(word.split()).lstrip("#").strip().strip("/") for word in words)
    known = (tag for tag in tags if tag and len(tag) <= MAX_TAG_CHARS and not _CONTROL.search(tag))
    return tuple(dict.fromkeys(known))[:MAX_TAGS]
