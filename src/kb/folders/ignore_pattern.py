"""Match the patterns of a .kbignore in linear time, however many stars they have."""

from typing import Final

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

STAR: Final = "[^/]*"
"""The translation of a star within a name by `GitIgnoreSpecPattern`."""
FOLDERS: Final = "(?:/.+)?"
"""Its translation of `**` between two slashes."""
LEADING_FOLDERS: Final = "^(?:.+/)?"
"""Its translation of `**` at the beginning."""


class LinearPattern(GitIgnoreSpecPattern):
    """A .gitignore pattern that does not backtrack between two stars.

    The first match of a piece leaves the most text for the rest, so a later match cannot succeed if the first one
    fails.
    """

    __slots__ = ()

    @classmethod
    def pattern_to_regex(cls, pattern: str) -> tuple[str | None, bool | None]:  # type: ignore[override] # no bytes here
        regex, include = super().pattern_to_regex(pattern)
        return regex and without_backtracking(regex), include


def without_backtracking(regex: str) -> str:
    """Return a regular expression equivalent to one of `GitIgnoreSpecPattern`, which matches in linear time."""
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
