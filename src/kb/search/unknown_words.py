"""The words of a query that no document contains."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Final

from kb.index.words.edit_distance import LONGEST, SHORTEST
from kb.index.words.function_words import FUNCTION_WORDS
from kb.index.words.segmentation import folded, has_run
from kb.index.words.speller import CORRECTED, NEAREST
from kb.index.words.stems import stemmed
from kb.index.words.word_variants import in_words, spellings
from kb.search import long_numbers, numbers
from kb.search.name_match import LOOKED_AT, MOST_NAMED, is_in_name
from kb.search.query import MAX_PARTS, Query, Unit, tokenize
from kb.store.protocol import Selection, Transaction
from kb.store.rows import Filter

MOST_EXACT: Final = 8
"""The maximum number of identifiers and phrases of a query that are looked up."""

LEAST_DIGITS: Final = 4
"""The minimum number of digits of a number that may be an identifier."""

MOST_PARTED: Final = 3
"""The maximum number of unknown words of a query whose parts are searched for."""

SEVERAL: Final = 3
SHORTEST_PART: Final = 2
DIGITS_OR_LETTERS: Final = re.compile(r"\d+|[^\W\d_]+")

TIME_OR_AMOUNT: Final = re.compile(r"\W*\d+[a-z°%]{0,3}\W*|\d+:\d+.*|(?:.*\W)?(?:19|20)\d\d(?:\W[\d\W]*)?")
"""Such as 5kg, 3pm, 14:30, 2026-11-26 and 26.11.2026: documents write them in many ways."""


def unknown_words(tx: Transaction, query: Query) -> dict[str, list[str]]:
    """Return the words that no document contains, each with the nearest known words, of which to search for the first.

    For an identifier, a name or a phrase in quotes, these are at most its own parts. If the words are of another
    language, none has nearest words.
    """
    everywhere = tx.index.select(Filter(limit=query.where.limit))  # all that the caller may read
    exact: dict[str, list[str]] = {word: [] for word in _unknown_exact(tx, everywhere, query)}
    unknown = exact | _misspelled(tx, everywhere, query)
    if _are_foreign(unknown, query):
        return {word: [] for word in unknown}
    typed = (word for word in unknown if word.isalnum() and word not in query.where.holding)
    for word in islice([*typed], MOST_PARTED):
        if parts := _parted(word.lower(), everywhere):
            unknown[word] = [parts, *unknown[word]][:NEAREST]
    return unknown


def _are_foreign(unknown: Mapping[str, list[str]], query: Query) -> bool:
    """Whether most of several telling words are unknown, and not all that are long enough resemble known words."""
    telling = [form for word in query.telling for form in word.forms[:1]]
    if len(telling) < SEVERAL or 2 * sum(form in unknown for form in telling) <= len(telling):
        return False
    compared = [word for word in unknown if word in query.plain and len(word) >= SHORTEST][:CORRECTED]
    return not compared or not all(unknown[word] for word in compared)


def _misspelled(tx: Transaction, everywhere: Selection, query: Query) -> dict[str, list[str]]:
    if not query.plain:
        return {}
    others = {word: spellings(word) for word in query.plain}
    related = {unit.text.lower(): unit.related for unit in query.units}
    words = [*others, *chain.from_iterable(others.values())]
    unknown = everywhere.unknown(words)
    index = tx.index
    return {
        word: unknown[word]
        for word, typed in others.items()
        if word in unknown
        and all(other in unknown for other in typed)
        and not _has_any(everywhere, [*stemmed([folded(word)], index.languages), *related.get(word, ())])
        and not tx.documents.named(index.analyzer.indexed(word), MOST_NAMED, 1)
    }


def _has_any(everywhere: Selection, forms: Iterable[str]) -> bool:
    return any(everywhere.best_ids([form], 1).size for form in forms)


def _unknown_exact(tx: Transaction, everywhere: Selection, query: Query) -> list[str]:
    sought = dict(islice(_exact(query), MOST_EXACT))
    if not sought:
        return []
    everywhere.look_up(chain.from_iterable(sought.values()))
    return [word for word, forms in sought.items() if not _has_any(everywhere, forms) and not _is_name(tx, word)]


def _parted(word: str, everywhere: Selection) -> str | None:
    """Return two words, or letters and digits, that some document has one after the other, without a sign or space."""
    if len(word) > LONGEST or has_run(word):
        return None
    places = range(SHORTEST_PART, len(word) - SHORTEST_PART + 1)
    even = sorted(places, key=lambda place: abs(2 * place - len(word)))
    phrases = [f"{word[:place]} {word[place:]}" for place in even]
    if word.isdecimal():
        phrases = [*long_numbers.in_groups(word), *long_numbers.grouped(word)]
    elif any(map(str.isdigit, word)):
        phrases = [" ".join(DIGITS_OR_LETTERS.findall(word)), *long_numbers.in_groups(word)]
    phrases = [phrase for phrase in phrases if 1 < len(phrase.split()) <= MAX_PARTS]
    everywhere.look_up(phrases)
    return next((phrase for phrase in phrases if everywhere.best_ids([phrase], 1).size), None)


def _exact(query: Query) -> Iterator[tuple[str, tuple[str, ...]]]:
    for phrase in query.where.holding:
        yield phrase, (phrase,)
    for unit in query.units:
        if unit.text not in query.where.holding and (is_identifier(unit) or _is_proper_name(unit)):
            words = in_words(unit.text)
            yield unit.text, (*unit.forms, words) if words else unit.forms


def is_identifier(unit: Unit) -> bool:
    """Whether a unit has digits or joining signs and one usual spelling: P-09, kb_get, v2.13.0, 4711."""
    text = unit.text.lower()
    if not unit.is_literal or has_run(text) or len(tokenize(text)) > MAX_PARTS:
        return False
    if text.isdecimal() and len(text) >= long_numbers.FEWEST:
        return True
    if number := numbers.meant(text):
        return len(number.whole) >= LEAST_DIGITS and not number.decimals and not numbers.is_year(number)
    if any(map(str.isdigit, text)):
        return not TIME_OR_AMOUNT.fullmatch(text)
    return len(tokenize(text)) > 1 and any(sign in text for sign in "_./@:\\&=")


def _is_proper_name(unit: Unit) -> bool:
    """Whether a unit is a word with a capital after its first letter, such as GitHub or NASA."""
    word = unit.text
    return word.isalpha() and not (word[1:].islower() or len(word) == 1) and word.lower() not in FUNCTION_WORDS


def _is_name(tx: Transaction, word: str) -> bool:
    named = tx.documents.named(tx.index.analyzer.indexed(word), MOST_NAMED, LOOKED_AT)
    return any(is_in_name(document, word) for document in named)
