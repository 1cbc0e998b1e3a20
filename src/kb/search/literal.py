"""How much of a query stands in a passage as it was typed: its names, numbers, words in quotes and rare words."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from kb.lexical.bm25 import idf_of
from kb.search import numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from kb.lexical.bm25 import Occurrences
    from kb.search.query import Unit

    OccurrencesOf = Callable[[str, NDArray[np.int64]], Occurrences | None]
    TextsOf = Callable[[Sequence[int]], Sequence[str]]

RARE, RARE_SHARE = 3, 0.0005
"""In how many chunks a word stands at most that is rare: in so many, or in such a share of all."""

EXACT, SAME, ADJACENT = 1.0, 0.95, 0.8
"""What it counts for if something stands there as it was typed; in capital letters, or in other signs of the same number;
or if its parts only follow each other, or another form of the word stands there."""

COMPARED: Final = 40
"""In how many passages it is looked how they are written."""

_BEFORE, _BEHIND = r"(?<![\w])", r"(?![\w]|[+#](?![\w+#]))"


@dataclass(frozen=True, slots=True)
class Literal:
    """What is looked for as it is: what it counts for, and which of the chunks have its words."""

    unit: Unit
    weight: float
    is_there: NDArray[np.bool_]


def coverage(
    units: Iterable[Unit],
    ids: NDArray[np.int64],
    scores: NDArray[np.float64],
    occurrences_of: OccurrencesOf,
    texts_of: TextsOf,
) -> NDArray[np.float64]:
    """Return for each chunk which share of the query it has as it was typed, from 0 to 1, each word by how rare it is.

    Args:
        units: what was typed.
        ids: the chunks, ascending.
        scores: how good they are otherwise: the best are looked at.
        occurrences_of: how often a word stands in chunks.
        texts_of: what chunks stand under and their texts, as they were written.
    """
    literals, whole = _weighed(units, ids, occurrences_of)
    shares = np.zeros(ids.size)
    if not literals:
        return shares
    for literal in literals:
        shares += literal.weight * ADJACENT * literal.is_there
    rows = np.lexsort((ids, -scores, -shares))[:COMPARED]
    rows = rows[shares[rows] > 0]
    for row, text in zip(rows.tolist(), texts_of(ids[rows].tolist()), strict=True):
        there = (each for each in literals if each.is_there[row])
        shares[row] = sum(each.weight * likeness(each.unit.text, text) for each in there)
    shares /= whole
    return shares


def _weighed(
    units: Iterable[Unit], ids: NDArray[np.int64], occurrences_of: OccurrencesOf
) -> tuple[list[Literal], float]:
    """Return what is looked for as it is, and the weight of all that was typed."""
    literals, whole = list[Literal](), 0.0
    for unit in units:
        found = [each for form in unit.forms if (each := occurrences_of(form, ids)) and each.frequency]
        if not found:
            continue
        frequency, of = max(each.frequency for each in found), found[0].of
        weight = idf_of(frequency, of)
        whole += weight
        if unit.is_literal or frequency <= max(RARE, RARE_SHARE * of):
            is_there = np.logical_or.reduce([each.counts > 0 for each in found])
            literals.append(Literal(unit, weight, is_there))
    return literals, whole


def likeness(typed: str, text: str) -> float:
    """Return what it counts for how something that was typed stands in a text that has its words."""
    typed, text = _plain(typed), _plain(text)
    begin = _BEFORE if typed[:1].isalnum() else ""
    pattern = begin + re.escape(typed) + _BEHIND
    if re.search(pattern, text, 0 if typed != typed.lower() else re.IGNORECASE):
        return EXACT
    if re.search(pattern, text, re.IGNORECASE):
        return SAME
    number = numbers.meant(typed)
    return SAME if number and number in numbers.numbers_in(text) else ADJACENT


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())
