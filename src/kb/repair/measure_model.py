"""Measure a model on documents and questions, and keep with it what kb's limits and its precision need to know."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from kb.api.errors import ModelError
from kb.embed.artifact import WEIGHTS, ModelFiles, write_manifest
from kb.embed.models.fetch import SOURCES
from kb.embed.models.install import install
from kb.embed.models.likeness import TooFewTexts, measure
from kb.embed.models.prepare import find_model, in_precision
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.embed.protocol import Embedder
from kb.ingest.draft import draft_note, embed_draft
from kb.settings import Settings

MOST_TEXTS: Final = 200
"""How many documents the likeness of texts is measured on."""


class Ranking(NamedTuple):
    """The documents that answer each question by meaning alone, best first, and the passages made per CPU second."""

    keys: list[list[str]]
    pace: float


class MeasuredModel:
    """An installed model.

    Args:
        wanted: see `kb.embed.models.install.install`.
        documents: the title and the text of each document.

    Raises:
        ModelError: the model cannot be installed.
    """

    def __init__(self, wanted: str, settings: Settings, documents: Mapping[str, tuple[str, str]]) -> None:
        found = install(wanted, settings.data_dir)
        self.files = replace(found, manifest=replace(found.manifest, suits_int8=None))
        self._settings = settings
        self._documents = documents
        self._measured: list[ModelFiles] = []

    @property
    def is_default(self) -> bool:
        """Whether kb's limits are already those of this model."""
        return self.files.manifest.digest == SOURCES[WEIGHTS]

    def rank(self, precision: str, questions: Sequence[str], most: int) -> Ranking:
        """Rank the documents by the cosine of their best passage.

        Raises:
            ModelError: the model is not available in this precision.
        """
        files = in_precision(self.files, self._settings.data_dir / "models", precision)
        self._measured.append(files)
        return ranked(OnnxEmbedder(files, "cpu"), self._documents, questions, most)

    def keep(self, *, suits_int8: bool) -> None:
        """Write into the model how its cosines on these documents relate to the default model's, and if int8 suits it.

        If few documents are long enough for the former, it keeps what kb's own texts say.

        Raises:
            ModelError: the model's folder cannot be written to.
        """
        default = OnnxEmbedder(find_model(None, self._settings.data_dir), "cpu")
        texts = [text for _, text in self._documents.values()][:MOST_TEXTS]
        likeness = self.files.manifest.likeness
        with suppress(TooFewTexts):
            likeness = measure(OnnxEmbedder(self.files, "cpu"), texts, default)
        try:
            for files in self._measured:
                manifest = replace(files.manifest, likeness=likeness, suits_int8=suits_int8)
                write_manifest(files.onnx.parent, manifest)
        except OSError as error:
            raise ModelError(f"kb cannot write to the model in {self.files.onnx.parent}: {error.strerror}.") from error


def ranked(
    embedder: Embedder, documents: Mapping[str, tuple[str, str]], questions: Sequence[str], most: int
) -> Ranking:
    """Rank documents for each question by the cosine of their best passage."""
    begun, keys = time.process_time(), list(documents)
    drafts = [draft_note(text, title or None, embedder) for title, text in documents.values()]
    vectors = [embed_draft(draft, embedder).vectors for draft in drafts]
    pace = sum(map(len, vectors)) / (time.process_time() - begun)
    owners, passages = np.repeat(np.arange(len(keys)), [len(made) for made in vectors]), np.concatenate(vectors)
    rankings = []
    for question in questions:
        best = np.full(len(keys), -1, np.float32)
        np.maximum.at(best, owners, passages @ embedder.embed_queries([question])[0])
        rankings.append([keys[number] for number in np.argsort(-best, kind="stable")[:most]])
    return Ranking(rankings, pace)
