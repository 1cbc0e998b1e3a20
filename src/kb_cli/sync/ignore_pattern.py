"""The patterns of a .kbignore, matched in time that does not explode with their stars."""

from __future__ import annotations

from typing import Final

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

STAR: Final = "[^/]*"
"""What `GitIgnoreSpecPattern` makes of a star within a name."""
FOLDERS: Final = "(?:/.+)?"
"""What it makes of `**` between two slashes."""
LEADING_FOLDERS: Final = "^(?:.+/)?"
"""What it makes of `**` at the beginning."""


class LinearPattern(GitIgnoreSpecPattern):
    """A pattern of .gitignore that never looks again for what it has found between two stars.

    The first place where that fits leaves the most room for what follows, so a later one cannot do better.
    """

    __slots__ = ()

    @classmethod
    def pattern_to_regex(cls, pattern: str) -> tuple[str | None, bool | None]:  # type: ignore[override] # no bytes here
        regex, include = super().pattern_to_regex(pattern)
        return regex and without_backtracking(regex), include


def without_backtracking(regex: str) -> str:
    """Return a regular expression of `GitIgnoreSpecPattern` that matches the same, in linear time."""
    *blocks, last = map(_names_without_backtracking, regex.split(FOLDERS))
    if not blocks:
        return last
    first = blocks[0].replace(LEADING_FOLDERS, "^(?:.+?/)??")
    rest = "".join(f"(?>(?:/.+?)??{block}(?=/))" for block in blocks[1:])
    return f"(?>{first}(?=/)){rest}{FOLDERS}{last}"


def _names_without_backtracking(block: str) -> str:
    first, *pieces = block.split(STAR)
    if not pieces:
        return block
    *inner, last = pieces
    return first + "".join(f"(?>{STAR}?{piece})" for piece in inner) + STAR + last
