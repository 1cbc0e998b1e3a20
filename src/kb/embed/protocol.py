"""What the engine asks of an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """What a model is, and how it is fed.

    Args:
        digest: the SHA-256 of the weights and of how they are put together, in hexadecimal.
        precision: the arithmetic, such as `fp32`.
        dimensions: the length of a vector, after truncation.
        window: the most tokens of one text that the model reads, prefix and special tokens included.
        special_tokens: how many tokens the tokenizer adds to each text.
        query_prefix: what the model reads before each query.
        passage_prefix: what it reads before each passage.
    """

    name: str
    digest: str
    precision: str
    dimensions: int
    window: int
    special_tokens: int = 2
    query_prefix: str = ""
    passage_prefix: str = ""


class Tokenizer(Protocol):
    """The model's tokens, and how many of them it reads."""

    @property
    def spec(self) -> ModelSpec:
        """The model that reads them."""

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of `text`, special tokens included, without prefix or truncation."""

    def token_starts(self, text: str) -> list[int]:
        """Return where each token of `text` begins, in characters, special tokens excluded."""


class Embedder(Tokenizer, Protocol):
    """A model that turns texts into unit vectors. Safe to call from several threads."""

    @property
    def current(self) -> Embedder:
        """The model itself, where another may be in use from one call to the next."""

    @property
    def models(self) -> Sequence[Embedder]:
        """The models that may be in use at the moment that a transaction sees."""

    @property
    def device(self) -> str:
        """Where it runs: `cpu`, `cuda` or `rocm`."""

    @property
    def provider(self) -> str:
        """The execution provider that is really active, in ONNX Runtime's words."""

    def embed_queries(self, texts: Sequence[str], *, alone: bool = True) -> NDArray[np.float32]:
        """Return vectors of shape (len(texts), dimensions), each of length 1, in the order of `texts`.

        On the CPU one core does if it is not `alone`, for others have something to do; the vectors are the same.
        """

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of what queries are to find, likewise."""
