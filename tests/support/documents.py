"""Documents for tests that do not depend on the model."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from kb.store.rows import ChunkPosition, Content, NewChunk

DIMENSIONS = 8


def content(text, doc_type="note", title="A title"):
    """The content of one chunk of text, with a vector of its own."""
    numbers = np.frombuffer(sha256(text.encode()).digest()[:DIMENSIONS], np.uint8).astype(np.float32) + 1
    vectors = (numbers / np.linalg.norm(numbers))[None]
    chunk = NewChunk(text, title, ChunkPosition(1, 1, 0, len(text)))
    return Content(doc_type, title, sha256(text.encode()).hexdigest(), [chunk], vectors)
