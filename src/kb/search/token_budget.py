"""How much of a text fits."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Chinese and Japanese put no space between words: there each character may be the last.
WORD_ENDS = re.compile(r"\S(?=\s)|[\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")

UNBROKEN = re.compile(r"[!-~]{40,}")
"""What is no word: keys, hashes, base64. The embedding model's tokenizer counts each as one token."""

UNBROKEN_CHARS = 3
"""How many characters of it a language model reads as one token."""


class TokenBudget:
    """So many tokens, to be spent on texts in their order.

    Args:
        tokens: how many; None is no limit.
        count_tokens: how many a text has.
    """

    def __init__(self, tokens: int | None, count_tokens: Callable[[str], int]) -> None:
        self._left = tokens
        self._count = count_tokens

    def spend(self, text: str) -> str:
        """Return as much of the text as there is left for, cut after a word; empty if not even one fits."""
        if self._left is None:
            return text
        needed = self._tokens(text)
        if needed > self._left:
            text = self._cut(text, self._left)
            needed = self._left
        self._left -= needed
        return text

    def _cut(self, text: str, room: int) -> str:
        ends = [match.end() for match in WORD_ENDS.finditer(text)]
        fitting = bisect_right(ends, room, key=lambda end: self._tokens(text[:end]))
        return text[: ends[fitting - 1]] if fitting else ""

    def _tokens(self, text: str) -> int:
        return self._count(text) + sum(map(len, UNBROKEN.findall(text))) // UNBROKEN_CHARS
