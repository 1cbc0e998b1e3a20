"""Passages for an answer: grouped by document, cut to a budget, with highlights."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from kb.api.search_models import CopyOf, Explanation
from kb.index.words.segmentation import WITH_MARKS
from kb.processor_time import check
from kb.search.highlights import Highlighter
from kb.store.rows import Hit

OF_HIT = tuple(field.name for field in fields(Hit))

PASSAGES = 3
"""The number of passages per document in a grouped answer."""

T = TypeVar("T")

CHINESE_AND_JAPANESE = r"\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

# In scripts without spaces, each letter may end a word; Korean has spaces.
WORD_ENDS = re.compile(rf"\S(?=\s)|(?![\uac00-\ud7a3]){WITH_MARKS.pattern}|[{CHINESE_AND_JAPANESE}]")

UNBROKEN = re.compile(r"[!-~]{40,}")
"""Text without words: keys, hashes, base64. The embedding model's tokenizer counts each as one token."""

UNKNOWN = re.compile(rf"[^\x00-\x7f\s{CHINESE_AND_JAPANESE}]{{4,}}")
"""Text that may be in a script unknown to the embedding model: its tokenizer counts a sentence as one token."""

CHARS_PER_TOKEN = 3
"""The number of these characters that a language model reads as one token."""


@dataclass(slots=True, kw_only=True)
class FoundPassage(Hit):
    """A found chunk with its document: the source of `kb.api.search_models.SearchResult`.

    When grouped, `more` contains the next best passages of the document. `copies` are other documents with the same
    text in a passage; `copy_count` is their number. `successors` are the replacements of the document, nearest first.
    `exact` is as in `kb.api.search_models.Passage`.
    """

    score: float
    fts_score: float | None
    vec_score: float | None
    context_score: float | None
    successors: Sequence[int] = ()
    exact: bool = False
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
        """The name of the key that last changed the document."""
        return self.author.by

    @property
    def client(self) -> str | None:
        """The program that last changed the document."""
        return self.author.client

    @property
    def replaced_by(self) -> int | None:
        """The last replacement of the document."""
        return self.successors[-1] if self.successors else None


def in_succession(items: Sequence[T], documents: Sequence[int], successors: Mapping[int, Sequence[int]]) -> list[T]:
    """Return items in their order, but move the first item of a replacement before the items of the replaced document.

    Args:
        items: the ordered items.
        documents: the document of each item.
        successors: the replacements of documents, nearest first.
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
    """Return one passage per document, in the order of the best passages, with the next best in `more`."""
    documents: dict[int, FoundPassage] = {}
    for passage in passages:
        best = documents.setdefault(passage.document_id, passage)
        if best is not passage and len(best.more) < PASSAGES - 1:
            best.more.append(passage)
    return list(documents.values())


def count(passages: Sequence[FoundPassage]) -> int:
    """Return the number of passages, including those in `more`."""
    return sum(1 + len(passage.more) for passage in passages)


def fit(passages: Iterable[FoundPassage], budget: TokenBudget, highlighter: Highlighter) -> Iterator[FoundPassage]:
    """Yield the passages that fit into the budget, highlighted; the last one may be cut.

    If nothing of a passage fits, because its first word is too long, its budget goes to the other passages.
    """
    for passage in passages:
        check()
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
    """A number of tokens to spend on texts in their order.

    Args:
        tokens: the number; None for no limit.
        count_tokens: returns the number of tokens in a text.
    """

    def __init__(self, tokens: int | None, count_tokens: Callable[[str], int]) -> None:
        self._left = tokens
        self._count = count_tokens

    def spend(self, text: str) -> str:
        """Return the part of the text that fits into the rest of the budget, cut after a word.

        If not even one word fits, the result is empty and nothing is spent.
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
        """Return the tokens that a language model reads in unknown scripts, less the tokens already counted."""
        if text.isascii() or not (unknown := UNKNOWN.findall(text)):
            return 0
        return max(0, sum(map(len, unknown)) // CHARS_PER_TOKEN - self._count(" ".join(unknown)))
