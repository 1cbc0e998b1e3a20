"""Measures how a model's cosines relate to those of the default model, for which kb's limits were chosen.

Models differ in this: two unrelated passages have a cosine of about 0.04 by all-MiniLM-L6-v2, and of 0.79 by
multilingual-e5-small. Two values fix the scale: the mean cosine of unrelated texts, and that of the halves of a text.
Measured on three other collections, the limits that follow from kb's own texts were within 0.01 of theirs.
"""

from collections.abc import Sequence
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kb.embed.protocol import Embedder

OF_QUERIES: Final = (0.045, 0.386)
OF_PASSAGES: Final = (0.042, 0.412)
"""The two means by the default model, in fp32."""

LEAST_WORDS: Final = 16
LEAST_TEXTS: Final = 10
QUERY_WORDS: Final = 8
"""The number of words at the beginning of a text that stand for a query."""


Pair = tuple[float, float]


class TooFewTexts(Exception):
    """Fewer than `LEAST_TEXTS` of the texts have `LEAST_WORDS` words."""


def measure(
    embedder: Embedder, texts: Sequence[str] = (), default: Embedder | None = None
) -> tuple[float, float, float, float]:
    """Return the numbers of the model's `Likeness`, by kb's own texts or by others, which the default model reads too.

    Raises:
        TooFewTexts: too few are long enough.
    """
    wanted = _of_both(default, texts) if default else (OF_QUERIES, OF_PASSAGES)
    (queries, passages), (wanted_queries, wanted_passages) = _of_both(embedder, texts or _own_texts()), wanted
    return *_line(queries, wanted_queries), *_line(passages, wanted_passages)


def _of_both(embedder: Embedder, texts: Sequence[str]) -> tuple[Pair, Pair]:
    """Return the means of `_means` for queries and for passages."""
    long = [words for text in texts if len(words := text.split()) >= LEAST_WORDS]
    if len(long) < LEAST_TEXTS:
        raise TooFewTexts
    halves = [(words[: len(words) // 2], words[len(words) // 2 :]) for words in long]
    seconds = embedder.embed_passages([" ".join(second) for _, second in halves])
    passages = embedder.embed_passages([" ".join(first) for first, _ in halves])
    queries = embedder.embed_queries([" ".join(first[:QUERY_WORDS]) for first, _ in halves])
    return _means(queries @ seconds.T), _means(passages @ seconds.T)


def _own_texts() -> list[str]:
    return files("kb.embed.models").joinpath("calibration.txt").read_text(encoding="utf-8").splitlines()


def _means(cosines: NDArray[np.float32]) -> Pair:
    """Return the mean cosine of texts that do not belong together, and of those that do."""
    together = np.eye(len(cosines), dtype=bool)
    return float(cosines[~together].mean()), float(cosines[together].mean())


def _line(own: Pair, wanted: Pair) -> Pair:
    """Return the slope and the offset that turn one pair of numbers into the other, within reason for any model."""
    slope = (wanted[1] - wanted[0]) / max(own[1] - own[0], 1e-3)
    return round(slope, 4), round(wanted[0] - slope * own[0], 4)
