"""The interface between the engine and an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Likeness:
    """How the cosines of a model relate to those of all-MiniLM-L6-v2, for which kb's limits were chosen.

    A cosine of that model is about `slope` times that of this one plus `offset`; see `models/likeness.py`.
    """

    query_slope: float = 1.0
    query_offset: float = 0.0
    passage_slope: float = 1.0
    passage_offset: float = 0.0

    def of_query(self, cosine: float) -> float:
        """Return what the cosine of a query and a passage would be by the default model."""
        return self.query_slope * cosine + self.query_offset

    def of_passages(self, cosines: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        """Return what the cosines of passages would be by the default model."""
        return self.passage_slope * cosines + self.passage_offset


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The properties and the input of a model.

    Args:
        digest: the SHA-256 of the weights and of their arrangement, in hexadecimal.
        precision: the arithmetic, such as `fp32`.
        dimensions: the length of a vector, after truncation.
        window: the maximum number of tokens of one text that the model reads, prefix and special tokens included.
        special_tokens: the number of tokens that the tokenizer adds to each text.
        query_prefix: the text that the model reads before each query.
        passage_prefix: the text that the model reads before each passage.
        likeness: the scale of its cosines.
    """

    name: str
    digest: str
    precision: str
    dimensions: int
    window: int
    special_tokens: int = 2
    query_prefix: str = ""
    passage_prefix: str = ""
    likeness: Likeness = Likeness()


class Tokenizer(Protocol):
    """The tokens of a model, and its limit."""

    @property
    def spec(self) -> ModelSpec:
        """The model that reads the tokens."""

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of `text`, special tokens included, without prefix or truncation."""

    def token_starts(self, text: str) -> list[int]:
        """Return the start of each token of `text`, in characters, special tokens excluded."""


class Embedder(Tokenizer, Protocol):
    """A model that turns texts into unit vectors. Safe to call from several threads."""

    @property
    def current(self) -> Embedder:
        """The model itself, if another may be in use from one call to the next."""

    @property
    def models(self) -> Sequence[Embedder]:
        """The models that may be in use at the moment that a transaction sees."""

    @property
    def device(self) -> str:
        """The device: `cpu`, `cuda` or `rocm`."""

    @property
    def provider(self) -> str:
        """The active execution provider, as ONNX Runtime names it."""

    def embed_queries(self, texts: Sequence[str], *, alone: bool = True) -> NDArray[np.float32]:
        """Return vectors of shape (len(texts), dimensions), each of length 1, in the order of `texts`.

        Unless `alone`, the CPU uses one core and leaves the others to other work; the vectors are the same.
        """

    def embed_passages(self, texts: Sequence[str], *, alone: bool = True) -> NDArray[np.float32]:
        """Return the vectors of passages, in the same form; `alone` as for queries."""
