"""LanceDB: its full text and vectors, fused by its own default. Runs in an environment that has it."""

from __future__ import annotations

import tempfile
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.peers.rankings.texts import Texts

engine = import_module("lancedb")


def rank(texts: Texts, top: int) -> list[list[str]]:
    """Return the ids of the best texts for each query."""
    with tempfile.TemporaryDirectory() as folder:
        rows = zip(texts.ids, texts.texts, texts.vectors.tolist(), strict=True)
        table = engine.connect(folder).create_table(
            "texts", [{"id": name, "text": text, "vector": vector} for name, text, vector in rows]
        )
        table.create_fts_index("text")
        found = []
        for query, vector in zip(texts.queries, texts.query_vectors, strict=True):
            search = table.search(query_type="hybrid").distance_type("cosine").vector(vector).text(query)
            found.append([row["id"] for row in search.limit(top).to_list()])
    return found
