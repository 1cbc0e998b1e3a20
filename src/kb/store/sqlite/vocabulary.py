"""The words of the full text for the speller, from SQL and from memory."""

import json
from collections.abc import Iterable, Sequence
from functools import cached_property

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.index.words.snapshot import Admitted, Key
from kb.store.analyzer import Analyzer, FtsTokenizer
from kb.store.row_mapping import Execute
from kb.store.sqlite.full_text_cache import LAST, WordReader
from kb.store.sqlite.statements import statements


class SqliteVocabulary:
    """See `kb.index.words.speller.Vocabulary`.

    Args:
        connection: the transaction's connection.
        words: the words that the transaction sees.
        admitted: the chunks to search; None for all.
    """

    def __init__(self, connection: apsw.Connection, words: WordReader, admitted: Admitted | None) -> None:
        self._connection = connection
        self._execute: Execute = connection.execute
        self._words = words
        self._admitted = admitted

    @cached_property
    def _tokenizer(self) -> FtsTokenizer:
        return FtsTokenizer(self._connection)

    def tokens(self, text: str) -> list[str]:
        return self._tokenizer.tokens(text)

    def places(self, text: str) -> Iterable[tuple[int, int, str]]:
        return Analyzer(self._tokenizer).stems(text)

    def keys(self, word: str) -> list[Key]:
        return self._words.keys([word])

    def known(self, stems: Sequence[str]) -> set[str]:
        possible = json.dumps(self._words.possible(stems))
        return {stem for (stem,) in self._execute(statements("postings")["select_known"], (possible,))}

    def begun(self, beginning: str, most: int) -> Iterable[str]:
        rows = self._execute(statements("postings")["select_beginning"], (beginning, beginning + LAST, most))
        return (stem for (stem,) in rows)

    def some_with(self, key: Key, most: int) -> tuple[int, list[int]]:
        rows = self._rows(key)
        return rows.size, self._words.snapshot.ids[rows[:most]].tolist()

    def sources(self, chunk_ids: Sequence[int]) -> Iterable[str]:
        rows = self._execute(statements("postings")["select_sources"], (json.dumps(chunk_ids),))
        return (text for (text,) in rows)

    def _rows(self, key: Key) -> NDArray[np.int32]:
        """Return the rows of the admitted chunks that contain a word."""
        rows = self._words.postings(key).rows
        if self._admitted is not None:
            return rows[self._admitted.mask[rows]]
        dead = self._words.snapshot.dead
        return rows[~np.isin(rows, dead)] if dead.size else rows
