"""Chroma: vectors in HNSW. Runs in an environment that has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import chromadb
from chromadb.config import Settings

if TYPE_CHECKING:
    from bench.peers.rankings.texts import Texts

BATCH = 5000


def rank(texts: Texts, top: int) -> list[list[str]]:
    """Return the ids of the best texts for each query."""
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    if any(each.name == "texts" for each in client.list_collections()):
        client.delete_collection("texts")
    collection = client.create_collection("texts", metadata={"hnsw:space": "cosine"})
    for start in range(0, len(texts.ids), BATCH):
        part = slice(start, start + BATCH)
        collection.add(texts.ids[part], texts.vectors[part], documents=texts.texts[part])
    found = collection.query(query_embeddings=texts.query_vectors, n_results=min(top, len(texts.ids)))
    return [list(each) for each in found["ids"]]
