"""Passages and queries as files that every environment reads. This module does not need kb."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

TAGS: Final = {"tenth": 10, "hundredth": 100}
"""One document in so many carries the tag."""

TOP: Final = 10
CANDIDATES: Final = 100
"""The number of passages that each search offers to a fusion written here, the same as in kb."""

RRF: Final = 60


@dataclass(frozen=True, slots=True)
class Passages:
    """Texts with their unit vectors, shape (n, dimensions), and the tags that each has."""

    texts: list[str]
    vectors: NDArray[np.float32]
    tags: dict[str, NDArray[np.bool_]]

    def write(self, folder: Path) -> None:
        """Write all into a folder."""
        np.savez(folder / "passages.npz", vectors=self.vectors, **self.tags)  # type: ignore[arg-type]
        (folder / "passages.json").write_text(json.dumps(self.texts))

    @classmethod
    def read(cls, folder: Path) -> Passages:
        """Return the written texts."""
        with np.load(folder / "passages.npz") as arrays:
            tags = {tag: arrays[tag] for tag in TAGS}
            return cls(json.loads((folder / "passages.json").read_text()), arrays["vectors"], tags)


@dataclass(frozen=True, slots=True)
class Question:
    """A query, its significant words, its vector, and the tag that a result must have."""

    text: str
    words: list[str]
    vector: NDArray[np.float32]
    tag: str | None


@dataclass(frozen=True, slots=True)
class Queries:
    """Queries with their words and their vectors, made beforehand."""

    texts: list[str]
    words: list[list[str]]
    vectors: NDArray[np.float32]

    def question(self, number: int, tag: str | None) -> Question:
        """Return one of them."""
        return Question(self.texts[number], self.words[number], self.vectors[number], tag)

    def write(self, folder: Path) -> None:
        """Write all into a folder."""
        np.save(folder / "queries.npy", self.vectors)
        (folder / "queries.json").write_text(json.dumps([self.texts, self.words]))

    @classmethod
    def read(cls, folder: Path) -> Queries:
        """Return the written texts."""
        texts, words = json.loads((folder / "queries.json").read_text())
        return cls(texts, words, np.load(folder / "queries.npy"))


class Engine(Protocol):
    """What answers over a folder that was built. Results are the numbers of passages with their texts, best first."""

    def hybrid(self, question: Question) -> list[tuple[int, str]]:
        """Return the best by words and meaning, or only by meaning if the library has no keyword search."""

    def nearest(self, question: Question) -> list[tuple[int, str]]:
        """Return the nearest in meaning."""


def fused(rankings: Iterable[Sequence[int]]) -> list[int]:
    """Return the best of some rankings by reciprocal rank fusion."""
    scores: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for place, number in enumerate(ranking):
            scores[number] += 1 / (RRF + 1 + place)
    return sorted(scores, key=scores.__getitem__, reverse=True)[:TOP]
