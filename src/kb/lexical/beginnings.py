"""Words that begin in some way, where an index has but their stems, from which more than the end may be gone."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ENDINGS = ("", "e", "ion", "tion", "ation", "ness", "ess", "ity", "er", "ing", "al", "able")
"""What English words often go on with: *organiz* begins *organization*, whose stem is *organ*."""


def completions(beginning: str, stems_of: Callable[[str], Sequence[str]]) -> dict[str, str]:
    """Return words that begin so, by their stems: those stems that do not begin with the stem of the beginning."""
    begun = tuple(stems_of(beginning)[-1:])
    words: dict[str, str] = {}
    for word in (beginning + ending for ending in ENDINGS):
        for stem in stems_of(word)[-1:]:
            if not stem.startswith(begun):
                words.setdefault(stem, word)
    return words


def completed(words: Iterable[str], stems_of: Callable[[str], Sequence[str]]) -> tuple[str, ...]:
    """Return the words, and behind them the completions of each beginning among them."""
    given = tuple(words)
    begun = (word.removesuffix("*") for word in given if word.endswith("*"))
    return (*given, *chain.from_iterable(completions(word, stems_of).values() for word in begun))
