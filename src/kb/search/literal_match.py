"""How much of a query stands in a passage as it was typed: its names, numbers, words in quotes and rare words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kb.lexical.bm25 import inverse_document_frequency
from kb.lexical.matches import Occurrences
from kb.search import numbers
from kb.search.query import Unit
from kb.vectors.scores import EMPTY_SCORES

OccurrencesOf = Callable[[Sequence[str], NDArray[np.int64]], Sequence[Occurrences | None]]
TextsOf = Callable[[Sequence[int]], Sequence[str]]

RARE, RARE_SHARE = 4, 0.001
"""In how many chunks a word stands at most that is rare: in so many, or in such a share of all."""

EXACT, SAME, ADJACENT = 1.0, 0.85, 0.5
"""What it counts for if something stands there as it was typed; in capital letters, or the same number in other signs;
or if its parts only follow each other, or another form of the word stands there."""

AS_TYPED = 1.3
"""What it counts for if several words stand there together as they were typed."""

COMPARED, COMPARED_ALONE = 40, 300
"""In how many passages it is looked how they are written; in how many if one word is all of the query."""

MOST_SOUGHT = 8
"""How many words with signs, numbers or quotes of a query are looked for by themselves, the rarest ones."""

COMMON_AS_TYPED = 5
"""In how many of these a lone word stands as it was typed, if other forms of it are common: else it is common."""

BEFORE: Final = r"(?<![\w])"
BEHIND: Final = r"(?![\w]|[+#](?![\w+#]))"
"""C is another word than C++ and C#."""

RUNS: Final = ("\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff", "\u30a1-\u30fa\u30fc-\u30ff")
"""Chinese characters, and katakana: a word of one of them ends where another script begins, as 京都 does in 京都の."""


class Literal:
    """What is looked for as it is.

    Args:
        unit: what was typed.
        weight: what it counts for.
        is_there: which of the chunks have its words.
        is_common: whether it is a plain word of which more chunks have a form than have a rare word.
    """

    def __init__(self, unit: Unit, weight: float, is_there: NDArray[np.bool_], *, is_common: bool) -> None:
        typed = _plain(unit.text)
        pattern = _pattern(typed)
        self.weight, self.is_there, self.is_common = weight, is_there, is_common
        self._exact = re.compile(pattern, 0 if typed != typed.lower() else re.IGNORECASE)
        self._same = re.compile(pattern, re.IGNORECASE)
        self._number = numbers.meant(typed)

    def likeness(self, text: str) -> float:
        """Return what it counts for how it stands in a text that has its words."""
        if self._exact.search(text):
            return EXACT
        if self._same.search(text) or (self._number and self._number in numbers.numbers_in(text)):
            return SAME
        return ADJACENT


def coverage(
    units: Sequence[Unit],
    whole: str,
    ids: NDArray[np.int64],
    scores: NDArray[np.float64],
    occurrences_of: OccurrencesOf,
    texts_of: TextsOf,
) -> NDArray[np.float64]:
    """Return for each chunk which share of the query it has as it was typed, from 0 to `AS_TYPED`.

    Each word counts by how rare it is.

    Args:
        units: what was typed.
        whole: all of that in one text.
        ids: the chunks, ascending.
        scores: how good they are otherwise: the best are looked at.
        occurrences_of: how often a word stands in chunks.
        texts_of: what chunks stand under and their texts, as they were written.
    """
    is_alone = len(units) == 1
    literals, weight, has_all = _weighed(units, ids, occurrences_of, is_alone=is_alone)
    shares = np.zeros(ids.size)
    for literal in literals:
        shares += literal.weight * ADJACENT * literal.is_there
    rows = np.lexsort((ids, -scores, -shares))[: COMPARED_ALONE if is_alone else COMPARED]
    rows = rows[(shares[rows] > 0) | has_all[rows]]
    if not rows.size:
        return shares
    as_typed = re.compile(_pattern(_plain(whole)), re.IGNORECASE)
    for row, text in zip(rows.tolist(), map(_plain, texts_of(ids[rows].tolist())), strict=True):
        shares[row] = sum(literal.weight * literal.likeness(text) for literal in literals if literal.is_there[row])
        if has_all[row] and as_typed.search(text):
            shares[row] = AS_TYPED * weight
    shares /= weight
    if is_alone and literals[0].is_common and not 0 < np.count_nonzero(shares > SAME) <= COMMON_AS_TYPED:
        return np.zeros(ids.size)
    return shares


def sought(units: Sequence[Unit], occurrences_of: OccurrencesOf) -> list[tuple[Unit, int]]:
    """Return what is looked for as it is, each with how many chunks that have its words are looked at."""
    if len(units) == 1:
        return [(units[0], COMPARED_ALONE)]
    literals = [unit for unit in units if unit.is_literal]
    pairs = zip(literals, _occurrences(literals, EMPTY_SCORES.ids, occurrences_of), strict=True)
    rarest = sorted(
        (highest_frequency(occurrences), place, unit) for place, (unit, occurrences) in enumerate(pairs) if occurrences
    )
    return [(unit, COMPARED) for _, _, unit in rarest[:MOST_SOUGHT]]


def _weighed(
    units: Sequence[Unit], ids: NDArray[np.int64], occurrences_of: OccurrencesOf, *, is_alone: bool
) -> tuple[list[Literal], float, NDArray[np.bool_]]:
    """Return what is looked for as it is, what all that was typed weighs, and which chunks have all of it."""
    literals, whole, has_all = list[Literal](), 0.0, np.full(ids.size, len(units) > 1)
    for unit, occurrences in zip(units, _occurrences(units, ids, occurrences_of), strict=True):
        if not occurrences:
            has_all[:] = False
            continue
        frequency, of = highest_frequency(occurrences), occurrences[0].of
        weight = inverse_document_frequency(frequency, of)
        whole += weight
        is_common = frequency > max(RARE, RARE_SHARE * of)
        is_there = np.logical_or.reduce([form_occurrences.counts > 0 for form_occurrences in occurrences])
        has_all &= is_there
        if is_alone or not is_common:
            literals.append(Literal(unit, weight, is_there, is_common=is_common and not unit.is_literal))
    return literals, whole, has_all


def _occurrences(
    units: Sequence[Unit], ids: NDArray[np.int64], occurrences_of: OccurrencesOf
) -> list[list[Occurrences]]:
    """Return for each unit the occurrences of those of its forms that some chunk has."""
    forms = list(dict.fromkeys(form for unit in units for form in unit.forms))
    by_form = dict(zip(forms, occurrences_of(forms, ids), strict=True))
    return [
        [form_occurrences for form in unit.forms if (form_occurrences := by_form[form]) and form_occurrences.frequency]
        for unit in units
    ]


def highest_frequency(occurrences: Iterable[Occurrences]) -> int:
    """Return in how many chunks the most frequent form occurs."""
    return max(form_occurrences.frequency for form_occurrences in occurrences)


def _pattern(typed: str) -> str:
    before, behind = (BEFORE if typed[:1].isalnum() else ""), BEHIND
    for run in RUNS:
        before = f"(?<![{run}])" if re.match(f"[{run}]", typed) else before
        behind = f"(?![{run}])" if re.search(f"[{run}]\\Z", typed) else behind
    return before + re.escape(typed) + behind


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())
