"""Words of a query that count as one: spellings of the same word, and its stems."""

from __future__ import annotations

from collections.abc import Iterable

from kb.index.words.segmentation import folded
from kb.index.words.stems import stem_language, stemmed
from kb.index.words.word_variants import spellings


def alternatives(words: Iterable[str]) -> list[list[str]]:
    """Return the words in lists; spellings and stems of the same word share a list and count as one.

    If any word is a prefix, each word has its own list, because FTS5 then counts each.
    """
    given = list(words)
    languages = {language for word in given if (language := stem_language(word))}
    forms = {word: [*spellings(word), *stemmed([folded(word)], languages)] for word in given}
    others = {other for group in forms.values() for other in group}.intersection(given)
    if not others or any(word.endswith("*") for word in given):
        return [[word] for word in given]
    return [[word, *(form for form in forms[word] if form in others)] for word in given if word not in others]
