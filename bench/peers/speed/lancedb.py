"""LanceDB: vectors in IVF_HNSW_SQ, its full text, fused by its own default, and indexes of the tags."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Final

from bench.peers.speed.passages import TAGS, TOP

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from bench.peers.speed.passages import Passages, Question

os.environ.setdefault("LANCEDB_LOG", "error")  # it would write a line about most searches

arrow = import_module("pyarrow")
engine = import_module("lancedb")

INDEX: Final = "IVF_HNSW_SQ"
EXPLORED, REFINED = 200, 5
"""How many neighbours it looks at, and how many times as many as asked for it compares exactly."""


def build(passages: Passages, folder: Path) -> None:
    """Write the passages and make the indexes."""
    count, dimensions = passages.vectors.shape
    columns = {
        "id": arrow.array(range(count), arrow.int64()),
        "text": passages.texts,
        "vector": arrow.FixedSizeListArray.from_arrays(passages.vectors.ravel(), dimensions),
        **{tag: passages.tags[tag] for tag in TAGS},
    }
    table = engine.connect(folder).create_table("passages", arrow.table(columns))
    table.create_fts_index("text")
    for tag in TAGS:
        table.create_scalar_index(tag, index_type="BITMAP")
    table.create_index("cosine", vector_column_name="vector", index_type=INDEX)
    table.optimize()


class Engine:
    """See `passages.Engine`."""

    def __init__(self, folder: Path) -> None:
        self._table = engine.connect(folder).open_table("passages")

    def hybrid(self, question: Question) -> list[tuple[int, str]]:
        """Return the best of both."""
        search = self._table.search(query_type="hybrid").vector(question.vector).text(question.text)
        return self._found(search, question)

    def nearest(self, question: Question) -> list[tuple[int, str]]:
        """Return the nearest."""
        return self._found(self._table.search(question.vector), question)

    def _found(self, search: Any, question: Question) -> list[tuple[int, str]]:  # noqa: ANN401 - a builder
        search = search.distance_type("cosine").ef(EXPLORED).refine_factor(REFINED).select(["id", "text"]).limit(TOP)
        if question.tag:
            search = search.where(f"{question.tag} = true")
        return [(row["id"], row["text"]) for row in search.to_list()]
