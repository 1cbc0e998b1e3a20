"""The queries that the indexes of both stores share, in SQL."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kb.index.words.compounds import LANGUAGES as COMPOUNDING
from kb.index.words.compounds import Part, parts
from kb.index.words.other_scripts import LANGUAGES as OF_SCRIPTS
from kb.index.words.other_scripts import spelled
from kb.index.words.segmentation import folded
from kb.index.words.stems import stemmed
from kb.store.row_mapping import map_hit, mapped, strings
from kb.store.rows import Hit, WrittenText
from kb.store.sql.sql_part import SqlPart


class Index(SqlPart, ABC):
    """See `kb.store.protocol.Index`; `sql` contains the statements about search."""

    @cached_property
    def languages(self) -> Sequence[str]:
        return [language for (language,) in self._execute(self._sql["select_languages"]).fetchall()]

    def related(self, words: Iterable[str]) -> dict[str, list[str]]:
        """See `kb.store.protocol.Index.related`."""
        compounding, written = COMPOUNDING.intersection(self.languages), OF_SCRIPTS.intersection(self.written)
        by_word = dict[str, list[str]]()
        for word in words if compounding or written else ():
            found = spelled(word, written, self.known)
            letters = folded(word.lower())
            for part in parts(letters, stemmed([letters], compounding)):
                found += self.compounds(part)
            if found:
                by_word[word] = list(dict.fromkeys(found))
        return by_word

    @property
    def written(self) -> Collection[str]:
        """The languages of the documents, and others that use the same alphabet."""
        return self.languages

    @abstractmethod
    def known(self, tokens: Sequence[str]) -> Collection[str]:
        """Return the tokens that occur somewhere."""

    @abstractmethod
    def compounds(self, part: Part) -> list[str]:
        """Return the tokens that are compounds with a word."""

    def documents_of(self, chunk_ids: NDArray[np.int64]) -> list[int]:
        ids = chunk_ids.tolist()
        documents = dict(self._execute(self._sql["select_documents_of"], {"ids": ids}).fetchall())
        return [documents[chunk_id] for chunk_id in ids]

    def hits(self, chunk_ids: Sequence[int]) -> list[Hit]:
        rows = self._execute(self._sql["select_hits"], {"ids": [int(chunk_id) for chunk_id in chunk_ids]})
        hits = {hit.chunk_id: hit for hit in mapped(map_hit, rows)}
        return [hits[chunk_id] for chunk_id in chunk_ids]

    def texts(self, chunk_ids: Sequence[int]) -> list[WrittenText]:
        rows = self._execute(self._sql["select_written_texts"], {"ids": [int(chunk_id) for chunk_id in chunk_ids]})
        texts = {
            chunk_id: WrittenText(title, strings(heading), text) for chunk_id, title, heading, text in rows.fetchall()
        }
        return [texts[chunk_id] for chunk_id in chunk_ids]
