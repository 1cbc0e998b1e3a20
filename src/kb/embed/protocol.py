"""What the engine asks of an embedding model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


class Embedder(Protocol):
    """A model that turns texts into unit vectors. Safe to call from several threads."""

    @property
    def model(self) -> str:
        """The model's name."""

    @property
    def dimensions(self) -> int:
        """The length of a vector."""

    @property
    def window(self) -> int:
        """The most tokens of one text that the model reads, its special tokens included."""

    @property
    def precision(self) -> str:
        """The arithmetic, such as `fp32`."""

    @property
    def digest(self) -> str:
        """The SHA-256 of the weights, in hexadecimal."""

    @property
    def device(self) -> str:
        """Where it runs: `cpu`, `cuda` or `rocm`."""

    @property
    def provider(self) -> str:
        """The execution provider that is really active, in ONNX Runtime's words."""

    def count_tokens(self, text: str) -> int:
        """The number of tokens the model would read for `text`, special tokens included, without truncation."""

    def token_starts(self, text: str) -> list[int]:
        """Where each token of `text` begins, in characters, special tokens excluded."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (len(texts), dimensions), each of length 1, in the order of `texts`."""
