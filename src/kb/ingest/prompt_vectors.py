"""Vectors of a new note while its sender waits, or none if that would take too long."""

from __future__ import annotations

import logging
from concurrent.futures import Executor
from typing import Final

import numpy as np

from kb.api.errors import ModelChanged
from kb.embed.protocol import Embedder
from kb.ingest.draft import Draft, embed_draft, embedded_contents
from kb.store.rows import Content, VectorSpace

logger = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 0.2
"""How long a note waits for its vectors before it is stored without them."""

MOST_CHUNKS: Final = 8
"""A longer note takes the model longer than that, and other notes would wait for it."""


class PromptVectors:
    """Embeds short notes at once.

    Args:
        embedder: the model.
        pool: the one thread that runs it for notes, so that many of them at once do not slow each other down.
    """

    def __init__(self, embedder: Embedder, pool: Executor) -> None:
        self.embedder = embedder
        self._pool = pool

    def content(self, draft: Draft) -> tuple[Content, bool]:
        """Return a draft with its vectors, and whether it has them; otherwise they are zeros.

        Raises:
            ModelChanged: the draft was made for another model.
        """
        if len(draft.inputs) <= MOST_CHUNKS:
            made = self._pool.submit(embed_draft, draft, self.embedder)
            try:
                return made.result(PATIENCE_SECONDS), True
            except TimeoutError:
                made.cancel()
            except ModelChanged:
                raise
            except Exception:
                logger.exception("a note is stored without vectors for now; the worker tries again")
        space = draft.space or VectorSpace.of(self.embedder.spec)
        zeros = np.zeros((len(draft.inputs), space.dimensions), np.float32)
        [content] = embedded_contents([draft], [zeros])
        return content, False
