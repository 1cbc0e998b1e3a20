"""Vectors of a new or edited note while its sender waits, or none if that would take too long."""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kb.api.errors import ModelChanged
from kb.embed.protocol import Embedder
from kb.ingest.chunk import Chunker
from kb.ingest.draft import Draft
from kb.store.rows import Chunk, Content, VectorSpace

logger = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 0.2
"""How long after its arrival a note waits for its vectors before it is stored without them."""

MOST_CHUNKS: Final = 8
"""More new passages take the model longer than that, and other notes would wait for them."""


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

    def content(self, draft: Draft, arrived: float, before: Sequence[Chunk] = ()) -> tuple[Content, bool]:
        """Return a draft with its vectors, and whether it has them.

        Passages of the chunks `before` an edit get none, because the store has theirs. `arrived` is the time of the
        note's arrival, as `time.monotonic` has it.

        Raises:
            ModelChanged: the draft was made for another model.
            Exception: the model failed at an edit. A new note is stored all the same.
        """
        draft = draft.knowing(before)
        if len(draft.new) > MOST_CHUNKS:
            return draft.content(), False
        made = self._vectors(draft, arrived + PATIENCE_SECONDS, is_edit=bool(before))
        return draft.content(made), made is not None

    def _vectors(self, draft: Draft, until: float, *, is_edit: bool) -> NDArray[np.float32] | None:
        embedder = self.embedder.current
        if draft.space not in (None, VectorSpace.of(embedder.spec)):
            raise ModelChanged
        chunker = Chunker(embedder)
        chunks = [(draft.inputs[index], draft.chunks[index]) for index in draft.new]
        inputs = [known or chunker.passage(chunk.header, chunk.text) for known, chunk in chunks]
        made = self._pool.submit(embedder.embed_passages, inputs, alone=self._is_alone())
        try:
            vectors: NDArray[np.float32] = made.result(max(0, until - time.monotonic()))
        except TimeoutError:
            made.cancel()
        except Exception:
            if is_edit:  # requirement N-2: the old note stays
                raise
            logger.exception("a note is stored without vectors for now; the worker tries again")
        else:
            return vectors
        return None
