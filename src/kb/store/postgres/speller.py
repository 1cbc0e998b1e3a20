"""The words of the full text, as a speller looks for them, in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.lexical.segment import as_phrase

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kb.lexical.snapshot import Key
    from kb.store.analyzer import Tokenizer
    from kb.store.postgres.words import FullText
    from kb.store.sql.conditions import Condition


class PostgresVocabulary:
    """See `kb.store.speller.Vocabulary`.

    Args:
        words: the full text.
        condition: which documents the chunks are of.
    """

    def __init__(self, words: FullText, condition: Condition) -> None:
        self._words = words
        self._condition = condition

    @property
    def tokenizer(self) -> Tokenizer:
        """That of the full text."""
        return self._words.tokenizer

    def keys(self, word: str) -> list[Key]:
        """Return what the full text has of a word."""
        tokens = tuple(self.tokenizer.tokens(as_phrase(word)))
        return [tokens] if tokens else []

    def known(self, stems: Sequence[str]) -> set[str]:
        """Return those of the stems that stand somewhere."""
        return set(self._words.terms(stems))

    def begun(self, beginning: str, most: int) -> Iterable[str]:
        """Return stems that begin so."""
        return self._words.begun(beginning, most)

    def some_with(self, key: Key, most: int) -> tuple[int, list[int]]:
        """Return how many of the chunks have a word, and the first of them."""
        return self._words.some_with(key, self._condition, most)

    def sources(self, chunk_ids: Sequence[int]) -> Iterable[str]:
        """Return headers and texts of chunks as they were written."""
        return self._words.sources(chunk_ids)
