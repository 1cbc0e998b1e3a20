"""Vectors of a new note while its sender waits, or none if that would take too long."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kb.api.errors import ModelChanged
from kb.embed.protocol import Embedder
from kb.ingest.draft import Draft, embedded_contents
from kb.store.rows import Content, VectorSpace

logger = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 0.2
"""How long after its arrival a note waits for its vectors before it is stored without them."""

MOST_CHUNKS: Final = 8
"""A longer note takes the model longer than that, and other notes would wait for it."""


class NoteVectors:
    """Embeds short notes at once.

    Args:
        embedder: the model.
        pool: the one thread that runs it for notes, so that many of them at once do not slow each other down.
        is_alone: returns whether the model's cores are otherwise idle.
    """

    def __init__(self, embedder: Embedder, pool: Executor, is_alone: Callable[[], bool] = lambda: True) -> None:
        self.embedder = embedder
        self._pool = pool
        self._is_alone = is_alone

    def content(self, draft: Draft, arrived: float) -> tuple[Content, bool]:
        """Return a draft with its vectors, and whether it has them; otherwise they are zeros.

        `arrived` is the time of the note's arrival, as `time.monotonic` has it.

        Raises:
            ModelChanged: the draft was made for another model.
        """
        vectors = self._vectors(draft, arrived + PATIENCE_SECONDS) if len(draft.inputs) <= MOST_CHUNKS else None
        has_vectors = vectors is not None
        if vectors is None:
            space = draft.space or VectorSpace.of(self.embedder.spec)
            vectors = np.zeros((len(draft.inputs), space.dimensions), np.float32)
        [content] = embedded_contents([draft], [vectors])
        return content, has_vectors

    def _vectors(self, draft: Draft, until: float) -> NDArray[np.float32] | None:
        embedder = self.embedder.current
        if draft.space not in (None, VectorSpace.of(embedder.spec)):
            raise ModelChanged
        made = self._pool.submit(embedder.embed_passages, draft.inputs, alone=self._is_alone())
        try:
            vectors: NDArray[np.float32] = made.result(max(0, until - time.monotonic()))
        except TimeoutError:
            made.cancel()
        except Exception:
            logger.exception("a note is stored without vectors for now; the worker tries again")
        else:
            return vectors
        return None
