"""Markdown's signs of emphasis. They count in pairs around words: those of `2 * 3 * 4` and `snake_case` are text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAIR: Final = re.compile(
    r"(?<!\w)(?P<open>(?<!\*)\*{1,3}|_{1,3})(?!(?P=open))(?P<inner>\S(?:[^\n]{0,300}?\S)??)(?P<close>(?P=open))(?![\w*])"
)


def emphasis_signs(text: str, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield where in a text the signs are that make words of it strong or slanted."""
    for pair in _PAIR.finditer(text, begin, len(text) if end is None else end):
        yield pair.span("open")
        yield from emphasis_signs(text, *pair.span("inner"))
        yield pair.span("close")


def without_emphasis(text: str) -> str:
    """Return a text without these signs."""
    pieces, at = [], 0
    for begin, end in emphasis_signs(text):
        pieces.append(text[at:begin])
        at = end
    return "".join([*pieces, text[at:]])
