"""The share of a query that a passage contains as typed: its names, numbers, words in quotes and rare words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.scores import EMPTY_SCORES
from kb.index.words.bm25 import inverse_document_frequency
from kb.index.words.matches import Occurrences
from kb.search import numbers
from kb.search.contained_words import OccurrencesOf
from kb.search.query import Unit

TextsOf = Callable[[Sequence[int]], Sequence[str]]

RARE, RARE_SHARE = 4, 0.001
"""The maximum number of chunks with a rare word: an absolute number or a share of all chunks, whichever is higher."""

EXACT, LONGER, SAME, ADJACENT = 1.0, 0.9, 0.85, 0.5
"""The value of a match exactly as typed; within a longer identifier, such as P-09 in P-09-2; in another case, or of the
same number in another notation; and of parts that only follow each other, or another form of the word.
"""

AS_TYPED = 1.3
"""The value of several words that appear together as typed."""

COMPARED, COMPARED_ALONE = 40, 300
"""The number of passages whose spelling is compared, for several words and for a single word."""

MOST_SOUGHT = 8
"""The maximum number of words with signs, digits or quotes that are searched for on their own, rarest first."""

COMMON_AS_TYPED = 5
"""A single word with common forms counts as typed only if at most this many of the compared passages contain it."""

BEFORE: Final = r"(?<![\w])"
NO_MINUS: Final = r"(?<![^\w)\]][-\u2212])(?<!\A[-\u2212])"
"""-5 is not the same number as 5, while 3-5 has the number 5."""

MINUS_SIGN: Final = "[-\u2212]"
MINUS: Final = re.compile(rf"{MINUS_SIGN}(?=\d)")
_SIGNED: Final = re.compile(r"(?P<sign>[-\u2212]?)(?P<number>\d+)")
ROMAN: Final = re.compile("[ivxlcdm]{1,5}")
"""Roman numerals, which are written in capitals, unlike other words."""

BEHIND: Final = r"(?![\w]|[+#](?![\w+#]))"
"""C is not the same word as C++ or C#."""

JOINERS: Final = r"[-./:@\\\u2010-\u2015]"
BEFORE_WHOLE: Final = rf"(?<!\w{JOINERS})"
BEHIND_WHOLE: Final = rf"(?!{JOINERS}\w)"
"""A whole identifier ends where its signs end: P-09 is not the whole of P-09-2."""

RUNS: Final = ("\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff", "\u30a1-\u30fa\u30fc-\u30ff")
"""Chinese characters and katakana: a word in one of them ends before another script, as in 京都 in 京都の."""


def signed_numbers(phrases: Iterable[str]) -> list[re.Pattern[str]]:
    """Return patterns of the numbers with which phrases begin: -5 and 5 differ, but not in the index."""
    signed = filter(None, map(_SIGNED.match, phrases))
    return [re.compile((MINUS_SIGN if each["sign"] else BEFORE + NO_MINUS) + each["number"]) for each in signed]


class Literal:
    """A unit that is searched for as typed.

    Args:
        unit: the typed unit.
        weight: its weight.
        is_there: a mask of the chunks that contain its words.
        is_itself: a mask of the chunks that contain the word itself; None for a word without related words.
        is_common: whether it is a plain word and its forms are in more chunks than a rare word.
    """

    def __init__(
        self,
        unit: Unit,
        weight: float,
        is_there: NDArray[np.bool_],
        is_itself: NDArray[np.bool_] | None,
        *,
        is_common: bool,
    ) -> None:
        typed = _plain(unit.text)
        pattern = _pattern(typed)
        self.weight, self.is_there, self.is_common = weight, is_there, is_common
        self._is_itself = is_itself
        case = 0 if typed != typed.lower() or ROMAN.fullmatch(typed) else re.IGNORECASE
        self._whole = re.compile(pattern if typed.isalpha() else f"{BEFORE_WHOLE}{pattern}{BEHIND_WHOLE}", case)
        self._exact = re.compile(pattern, case)
        self._same = re.compile(pattern, re.IGNORECASE)
        self._number = numbers.meant(typed)

    def likeness(self, text: str, row: int) -> float:
        """Return the value of the match in a text that contains the words, by its place among the chunks."""
        if self._whole.search(text):
            return EXACT
        if self._exact.search(text):
            return LONGER
        if self._same.search(text) or (self._number and self._number in numbers.numbers_in(text)):
            return SAME
        return SAME if self._is_itself is not None and self._is_itself[row] else ADJACENT


def coverage(
    units: Sequence[Unit],
    whole: str,
    ids: NDArray[np.int64],
    scores: NDArray[np.float64],
    occurrences_of: OccurrencesOf,
    texts_of: TextsOf,
) -> NDArray[np.float64]:
    """Return the share of the query that each chunk contains as typed, from 0 to `AS_TYPED`.

    Rare words weigh more.

    Args:
        units: the typed units.
        whole: the whole typed text.
        ids: the chunks, ascending.
        scores: their other scores, which decide the chunks whose texts are read.
        occurrences_of: returns the occurrences of words in chunks.
        texts_of: returns the titles, headings and texts of chunks, as written.
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
        shares[row] = sum(literal.weight * literal.likeness(text, row) for literal in literals if literal.is_there[row])
        if has_all[row] and as_typed.search(text):
            shares[row] = AS_TYPED * weight
    shares /= weight
    if is_alone and literals[0].is_common and not 0 < np.count_nonzero(shares > SAME) <= COMMON_AS_TYPED:
        return np.zeros(ids.size)
    return shares


def sought(units: Sequence[Unit], occurrences_of: OccurrencesOf) -> list[tuple[Unit, int]]:
    """Return the units to search for as typed, each with the number of its chunks to compare."""
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
    """Return the literals, the weight of the whole query, and a mask of the chunks that contain all of it."""
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
            is_itself = _itself(unit, ids, occurrences_of)
            is_plain = is_common and not unit.is_literal and is_itself is None
            literals.append(Literal(unit, weight, is_there, is_itself, is_common=is_plain))
    return literals, whole, has_all


def _itself(unit: Unit, ids: NDArray[np.int64], occurrences_of: OccurrencesOf) -> NDArray[np.bool_] | None:
    """Return a mask of the chunks that contain a unit itself; None for a unit without related words."""
    if not unit.related:
        return None
    own = [form for form in unit.forms if form not in unit.related]
    masks = [occurrences.counts > 0 for occurrences in occurrences_of(own, ids) if occurrences]
    is_itself: NDArray[np.bool_] = np.logical_or.reduce([np.zeros(ids.size, np.bool_), *masks])
    return is_itself


def _occurrences(
    units: Sequence[Unit], ids: NDArray[np.int64], occurrences_of: OccurrencesOf
) -> list[list[Occurrences]]:
    """Return the occurrences of each unit's forms, without the forms that no chunk contains."""
    forms = list(dict.fromkeys(form for unit in units for form in unit.forms))
    by_form = dict(zip(forms, occurrences_of(forms, ids), strict=True))
    return [
        [form_occurrences for form in unit.forms if (form_occurrences := by_form[form]) and form_occurrences.frequency]
        for unit in units
    ]


def highest_frequency(occurrences: Iterable[Occurrences]) -> int:
    """Return the number of chunks that contain the most frequent form."""
    return max(form_occurrences.frequency for form_occurrences in occurrences)


def _pattern(typed: str) -> str:
    before, behind = (BEFORE if typed[:1].isalnum() else ""), BEHIND
    if typed[:1].isdigit():
        before += NO_MINUS
    for run in RUNS:
        before = f"(?<![{run}])" if re.match(f"[{run}]", typed) else before
        behind = f"(?![{run}])" if re.search(f"[{run}]\\Z", typed) else behind
    return before + MINUS.sub(MINUS_SIGN, re.escape(typed).replace(r"\-", "-"), count=1) + behind


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())
