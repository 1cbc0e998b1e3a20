"""Rebuild the database from its texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from kb.api.errors import StoreError
from kb.backup.swap import complete_restore
from kb.embed.protocol import Embedder
from kb.ingest.chunk import Chunker
from kb.repair.named_model import open_named_model
from kb.running_engine import lock_path
from kb.settings import Settings
from kb.store.engine_lock import database_lock, sole_user
from kb.store.rows import VectorSpace
from kb.store.sqlite.rebuild import rebuild
from kb.store.sqlite.vector_space import recorded_space


def reindex(settings: Settings, on_chunks: Callable[[int, int], None], *, recompute_all: bool) -> None:
    """Rebuild the database from its texts; nothing changes until all of it is ready.

    Args:
        settings: the settings of the engine, which must not run.
        on_chunks: receives the numbers of chunks with vectors and in total.
        recompute_all: whether to recompute all vectors, not only damaged and missing ones.

    Raises:
        StartError: the engine runs, or the model or the database cannot be used.
    """
    path = settings.database_path
    with sole_user(lock_path(settings.data_dir)), sole_user(database_lock(path)):
        complete_restore(settings)
        model = cache(lambda: open_named_model(settings)[0])  # most damage needs no model
        space = VectorSpace.of(model().spec) if recompute_all else recorded_space(path)
        rebuild(path, space, partial(_embed, model, space), on_chunks, recompute_all=recompute_all)


def _embed(model: Callable[[], Embedder], space: VectorSpace, chunks: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
    """Return the vectors of headers and texts.

    Raises:
        StartError: the model cannot be used, or differs from the model of the other vectors.
    """
    embedder = model()
    if (made := VectorSpace.of(embedder.spec)) != space:
        raise StoreError(
            f"The vectors are of {space}, but the model computes vectors of {made}."
            " Set KB_MODEL_DIR to the model of the vectors."
        )
    chunker = Chunker(embedder)
    return embedder.embed_passages([chunker.passage(header, text) for header, text in chunks])
