"""The database made anew from its texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.embed.open import open_embedder
from kb.ingest.chunk import Chunker
from kb.store.lock import sole_user
from kb.store.open import database_lock, database_path
from kb.store.rows import VectorSpace
from kb.store.sqlite.rebuild import rebuild

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from kb.settings import Settings


def reindex(settings: Settings, on_chunks: Callable[[int, int], None], *, anew: bool) -> None:
    """Make the database anew from its texts; nothing changes until all of it is there.

    Args:
        settings: those of the engine, which must not run.
        on_chunks: is told how many chunks have their vector, and of how many.
        anew: make every vector, instead of those alone that are damaged or missing.

    Raises:
        StartError: the engine runs, or the model or the database cannot be used.
    """
    path = database_path(settings.database_url, settings.data_dir)
    with sole_user(settings.data_dir / "kb.lock"), sole_user(database_lock(path)):
        embedder = open_embedder(settings.model_dir, settings.data_dir, settings.device, settings.precision)
        chunker = Chunker(embedder)

        def embed(chunks: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
            return embedder.embed_passages([chunker.passage(header, text) for header, text in chunks])

        rebuild(path, VectorSpace.of(embedder.spec), embed, on_chunks, anew=anew)
