"""The words of the full-text index for a speller, in SQL."""

from collections.abc import Iterable, Sequence

from kb.index.words.segmentation import as_phrase
from kb.index.words.snapshot import Key
from kb.store.analyzer import Analyzer
from kb.store.postgres.full_text import FullText
from kb.store.sql.conditions import Condition


class PostgresVocabulary:
    """See `kb.index.words.speller.Vocabulary`.

    Args:
        words: the full-text index.
        condition: the condition on the documents of the chunks.
    """

    def __init__(self, words: FullText, condition: Condition) -> None:
        self._words = words
        self._condition = condition

    def tokens(self, text: str) -> list[str]:
        return self._words.tokenizer.tokens(text)

    def places(self, text: str) -> Iterable[tuple[int, int, str]]:
        return Analyzer(self._words.tokenizer).stems(text)

    def keys(self, word: str) -> list[Key]:
        tokens = tuple(self.tokens(as_phrase(word)))
        return [tokens] if tokens else []

    def known(self, stems: Sequence[str]) -> set[str]:
        return set(self._words.terms(stems))

    def begun(self, beginning: str, most: int) -> Iterable[str]:
        return self._words.begun(beginning, most)

    def some_with(self, key: Key, most: int) -> tuple[int, list[int]]:
        return self._words.some_with(key, self._condition, most)

    def sources(self, chunk_ids: Sequence[int]) -> Iterable[str]:
        return self._words.sources(chunk_ids)
