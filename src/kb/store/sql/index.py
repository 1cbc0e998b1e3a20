"""The queries that the indexes of both stores share, in SQL."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kb.store.row_mapping import Execute, map_hit, mapped, strings
from kb.store.rows import Hit, WrittenText


class Index:
    """See `kb.store.protocol.Index`; `sql` contains the statements about search."""

    def __init__(self, execute: Execute, sql: Mapping[str, str]) -> None:
        self._execute = execute
        self._sql = sql

    @cached_property
    def languages(self) -> Sequence[str]:
        return [language for (language,) in self._execute(self._sql["select_languages"]).fetchall()]

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
