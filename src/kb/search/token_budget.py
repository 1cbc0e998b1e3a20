"""How much of a text fits."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from kb.lexical.segment import WITH_MARKS

if TYPE_CHECKING:
    from collections.abc import Callable

CHINESE_AND_JAPANESE = r"\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

# Where there is no space between words, each letter may be the last of one; Korean has spaces.
WORD_ENDS = re.compile(rf"\S(?=\s)|(?![\uac00-\ud7a3]){WITH_MARKS.pattern}|[{CHINESE_AND_JAPANESE}]")

UNBROKEN = re.compile(r"[!-~]{40,}")
"""What is no word: keys, hashes, base64. The embedding model's tokenizer counts each as one token."""

UNKNOWN = re.compile(rf"[^\x00-\x7f\s{CHINESE_AND_JAPANESE}]{{4,}}")
"""What may be of a script that the embedding model does not know: its tokenizer counts a sentence as one token."""

CHARS_PER_TOKEN = 3
"""How many characters of these a language model reads as one token."""


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
        """Return as much of the text as there is left for, cut after a word.

        It is empty, and nothing is spent, if not even one word fits.
        """
        if self._left is None:
            return text
        if not self._left:
            return ""
        needed = self._tokens(text)
        if needed > self._left:
            text = self._cut(text, self._left)
            needed = self._left if text else 0
        self._left -= needed
        return text

    def _cut(self, text: str, room: int) -> str:
        ends = [match.end() for match in WORD_ENDS.finditer(text)]
        fitting = bisect_right(ends, room, key=lambda end: self._tokens(text[:end]))
        return text[: ends[fitting - 1]] if fitting else ""

    def _tokens(self, text: str) -> int:
        return self._count(text) + sum(map(len, UNBROKEN.findall(text))) // CHARS_PER_TOKEN + self._uncounted(text)

    def _uncounted(self, text: str) -> int:
        """Return how many tokens a language model reads in unknown scripts beyond those that were counted."""
        if text.isascii() or not (unknown := UNKNOWN.findall(text)):
            return 0
        return max(0, sum(map(len, unknown)) // CHARS_PER_TOKEN - self._count(" ".join(unknown)))
