"""The languages of documents that a query in another language may miss."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from kb.index.words.function_words import BY_LANGUAGE
from kb.search.query import Query, tokenize
from kb.store.protocol import Transaction

MOST_LANGUAGES: Final = 5


def other_languages(tx: Transaction, query: Query, languages: Iterable[str]) -> list[str]:
    """Return up to `MOST_LANGUAGES` of the languages in which other documents within the query's filter are.

    The list is empty if the language of the query is unknown or its filter names one.
    """
    language = language_of(query.whole)
    if language is None or query.where.lang:
        return []
    where = replace(query.where, holding=())
    others = [
        other
        for other in languages
        if other != language and tx.documents.page(replace(where, lang=other), sort="id", limit=1, cursor=None)
    ]
    return others[:MOST_LANGUAGES]


def language_of(text: str) -> str | None:
    """Return the language of a query by its function words; without any, English for Latin letters without accents."""
    words = set(tokenize(text))
    counts = {language: len(words & its_words) for language, its_words in BY_LANGUAGE.items()}
    most = max(counts.values())
    if most == 0:
        return "en" if text.isascii() else None
    likely = [language for language, count in counts.items() if count == most]
    return likely[0] if likely[0] == "en" or len(likely) == 1 else None
