"""txtai: its BM25 and vectors, fused by its own default. Runs in an environment that has it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bench.peers.rankings.texts import Texts

engine = import_module("txtai")


def rank(texts: Texts, top: int) -> list[list[str]]:
    """Return the ids of the best texts for each query."""
    vectors = dict(zip([*texts.texts, *texts.queries], [*texts.vectors, *texts.query_vectors], strict=True))

    def transform(wanted: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([vectors[text] for text in wanted])

    embeddings = engine.Embeddings(method="external", transform=transform, hybrid=True)
    embeddings.index(list(zip(texts.ids, texts.texts, strict=True)))
    return [[name for name, _ in embeddings.search(query, top)] for query in texts.queries]
