"""The command line without one ingredient of the ranking, or with another weight in it.

python -m bench.without INGREDIENT serve --data-dir DIR
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kb.index.words import bm25, index
from kb.search import fusion, query, retrieve
from kb.store.sqlite import context, full_text_cache

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

RRF: Final = 60


def reciprocal_ranks(scores: NDArray[np.float64], _spread: object) -> NDArray[np.float64]:
    """Return what reciprocal rank fusion adds up instead of the scores."""
    places = np.empty(scores.size)
    places[np.argsort(-scores, kind="stable")] = np.arange(scores.size)
    return 1 / (RRF + 1 + places)


def nothing(*_: object) -> list[str]:
    return []


def alone(_: object, rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return no groups of neighbours."""
    return np.empty((0, 1 + 2 * context.REACH), np.int32)


def set_to(value: object, *places: tuple[Any, str]) -> Callable[[], None]:
    """Return what gives names another value in the modules that use them."""

    def change() -> None:
        for module, name in places:
            if not hasattr(module, name):
                raise LookupError(name)
            setattr(module, name, value)

    return change


INGREDIENTS: Final[dict[str, Callable[[], None]]] = {
    "scores fused, but ranks": set_to(reciprocal_ranks, (fusion, "_z")),
    "the better leg leads": set_to(sys.maxsize, (fusion, "ENOUGH")),
    "neighbours": set_to(0, (retrieve, "IN_CONTEXT")),
    "neighbours in a document": set_to(alone, (context.ContextReader, "_siblings")),
    "neighbours in a thread": set_to(0, (context, "THREADED")),
    "less weight of length among neighbours": set_to(0.75, (bm25, "CONTEXT_B")),
    "stop words": set_to(frozenset(), (query, "STOP_WORDS")),
    "identifiers as written": set_to(nothing, (query, "compounds")),
    "corrections": set_to(nothing, (query, "plain_words")),
    "headers that count twice": set_to(1, (index, "HEADER_WEIGHT"), (full_text_cache, "HEADER_WEIGHT")),
}
"""The ingredients of the ranking, each with the changes that remove it."""

WEIGHTS: Final[dict[str, dict[str, Callable[[], None]]]] = {
    "weight of words": {
        "words half as much": set_to(fusion.WORDS / 2, (fusion, "WORDS")),
        "words twice as much": set_to(fusion.WORDS * 2, (fusion, "WORDS")),
    },
    "weight of neighbours": {
        "neighbours 0.15": set_to(0.15, (context, "WEIGHT")),
        "neighbours 0.35": set_to(0.35, (context, "WEIGHT")),
    },
}
"""The weights of the ranking, each with other values."""


def main() -> None:
    """Take the ingredient away, or set the weight, and run the command line."""
    changes = INGREDIENTS | {name: change for values in WEIGHTS.values() for name, change in values.items()}
    changes[sys.argv.pop(1)]()
    from kb_cli.main import main as run

    run()


if __name__ == "__main__":
    main()
