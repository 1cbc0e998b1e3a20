"""A file of almost nothing but separators holds neither the queue nor a core."""

from __future__ import annotations

import numpy as np
import pytest

from kb.api.errors import Unreadable
from kb.ingest.draft import BYTES_PER_PASSAGE, MOST_SHORT_PASSAGES, Draft, _bounded, embed_slices
from kb.store.rows import NewChunk
from tests.support.models import WrappedModel


class Counting(WrappedModel):
    def __init__(self, embedder):
        super().__init__(embedder)
        self.texts = 0

    def embed_passages(self, texts, *, alone=True):
        self.texts += len(texts)
        return self._embedder.embed_passages(texts)


def passages(count):
    return ((NewChunk("x", "", place=index), "x") for index in range(count))


def test_more_passages_than_a_file_can_have_are_refused_before_they_are_made():
    most = MOST_SHORT_PASSAGES + 2_600_000 // BYTES_PER_PASSAGE
    made = passages(10**9)
    with pytest.raises(Unreadable, match="passages of a few letters"):
        list(_bounded(made, float("inf"), "", most))
    assert next(made)[0].place == most + 1


def test_the_same_text_is_embedded_once_and_all_vectors_are_the_same_as_without_that(embedder):
    counting = Counting(embedder)
    inputs = ["Event", *["Event"] * 200, "a lamp by the window", *["Event", "Event: lunch"] * 40, "the end"]
    chunks = [NewChunk(text, "", place=index) for index, text in enumerate(inputs)]
    draft = Draft("text", "a", "b", chunks, np.empty((0, 0), np.float32), inputs=inputs)
    slices = list(embed_slices([draft], counting))
    assert sum(map(len, slices)) == len(inputs)
    assert counting.texts < 10
    alone = {text: embedder.embed_passages([text])[0] for text in set(inputs)}
    rows = [row for part in slices for row in part]
    assert all(float(row @ alone[text]) > 0.99 for row, text in zip(rows, inputs, strict=True))
