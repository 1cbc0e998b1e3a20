"""Words that begin in some way, where an index has but their stems, from which more than the end may be gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
