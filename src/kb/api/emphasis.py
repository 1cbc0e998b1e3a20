"""The signs of emphasis in Markdown.

They count only in pairs around words. In `2 * 3 * 4`, in `snake_case` and in code, they are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_LETTER: Final = r"[^\W_\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]"
"""A letter or digit of a script with spaces between words."""

_CODE: Final = r"(?<![`\\])(?P<ticks>`+)(?!`)(?:(?s:.{1,1000}?)(?<!`)(?P=ticks)(?!`)|(?<=```)(?s:.*)\Z)"
_PAIR: Final = re.compile(
    rf"{_CODE}|(?<!{_LETTER})(?<!\\)(?P<open>(?P<sign>(?<!\*)\*|(?<!_)_)(?P=sign){{0,2}})(?!(?P=sign))"
    rf"(?P<inner>\S(?:[^\n]{{0,300}}?\S)??)(?<!\\)(?<!(?P=sign))(?P<close>(?P=open))(?!{_LETTER})(?!(?P=sign))"
)


def emphasis_signs(text: str, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the signs that make words bold or italic."""
    for pair in _PAIR.finditer(text, begin, len(text) if end is None else end):
        if pair["open"]:
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
