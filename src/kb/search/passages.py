"""Passages as they are answered: grouped by document, cut to a budget, with highlights."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from kb.api.models import CopyOf, Explanation
from kb.lexical.segmentation import WITH_MARKS
from kb.search.highlights import Highlighter
from kb.store.rows import Hit

OF_HIT = tuple(field.name for field in fields(Hit))

PASSAGES = 3
"""How many passages of a document come back when grouped by document."""

T = TypeVar("T")

CHINESE_AND_JAPANESE = r"\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

# Where there is no space between words, each letter may be the last of one; Korean has spaces.
WORD_ENDS = re.compile(rf"\S(?=\s)|(?![\uac00-\ud7a3]){WITH_MARKS.pattern}|[{CHINESE_AND_JAPANESE}]")

UNBROKEN = re.compile(r"[!-~]{40,}")
"""What is no word: keys, hashes, base64. The embedding model's tokenizer counts each as one token."""

UNKNOWN = re.compile(rf"[^\x00-\x7f\s{CHINESE_AND_JAPANESE}]{{4,}}")
"""What may be of a script that the embedding model does not know: its tokenizer counts a sentence as one token."""

CHARS_PER_TOKEN = 3
"""How many characters of these a language model reads as one token."""


@dataclass(slots=True, kw_only=True)
class FoundPassage(Hit):
    """A chunk that was found, with its document: the fields of `kb.api.models.SearchResult`, which is read from it.

    `more` has the next best passages of the document when grouped; `copies` are other documents that say the same in a
    passage, `copy_count` says how many there are; `successors` is what replaced the document, the nearest first.
    """

    score: float
    fts_score: float | None
    vec_score: float | None
    context_score: float | None
    successors: Sequence[int] = ()
    truncated: bool = False
    highlights: list[tuple[int, int]] = field(default_factory=list)
    more: list[FoundPassage] = field(default_factory=list)
    copies: list[CopyOf] = field(default_factory=list)
    copy_count: int = 0
    explanation: Explanation | None = None

    @classmethod
    def of(cls, hit: Hit, **details: Any) -> FoundPassage:  # noqa: ANN401 - its other fields
        """Return the whole chunk with its scores."""
        return cls(**{name: getattr(hit, name) for name in OF_HIT}, **details)

    @property
    def by(self) -> str | None:
        """The name of the key that made the document what it is."""
        return self.author.by

    @property
    def client(self) -> str | None:
        """The program that did."""
        return self.author.client

    @property
    def replaced_by(self) -> int | None:
        """The last of what replaced the document."""
        return self.successors[-1] if self.successors else None


def in_succession(items: Sequence[T], documents: Sequence[int], successors: Mapping[int, Sequence[int]]) -> list[T]:
    """Return items in their order, but none before the first of a document that replaced its own: that takes its place.

    Args:
        items: what stands in an order.
        documents: the document of each.
        successors: what replaced documents, the nearest first.
    """
    first: dict[int, int] = {}
    for place, document_id in enumerate(documents):
        first.setdefault(document_id, place)
    order: dict[int, None] = {}
    for place, document_id in enumerate(documents):
        later = [first[successor] for successor in reversed(successors.get(document_id, ())) if successor in first]
        order |= dict.fromkeys(position for position in (*later, place) if position not in order)
    return [items[place] for place in order]


def group(passages: Iterable[FoundPassage]) -> list[FoundPassage]:
    """Return one passage a document, in the order of their best ones, with the next best in `more`."""
    documents: dict[int, FoundPassage] = {}
    for passage in passages:
        best = documents.setdefault(passage.document_id, passage)
        if best is not passage and len(best.more) < PASSAGES - 1:
            best.more.append(passage)
    return list(documents.values())


def count(passages: Sequence[FoundPassage]) -> int:
    """Return how many there are, with those in `more`."""
    return sum(1 + len(passage.more) for passage in passages)


def fit(passages: Iterable[FoundPassage], budget: TokenBudget, highlighter: Highlighter) -> Iterator[FoundPassage]:
    """Yield the passages that the budget has room for, highlighted; the last one may be cut.

    One of which nothing fits, as it begins with a word that is too long, leaves its room to the others.
    """
    for passage in passages:
        if _fits(passage, budget, highlighter):
            passage.more = [other for other in passage.more if _fits(other, budget, highlighter)]
            yield passage


def _fits(passage: FoundPassage, budget: TokenBudget, highlighter: Highlighter) -> bool:
    text = budget.spend(passage.text)
    passage.truncated = text != passage.text
    passage.text = text
    passage.highlights = highlighter.ranges(text, passage.language)
    return bool(text)


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
