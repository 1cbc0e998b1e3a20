"""Words of a query that count as one: spellings of the same word, and its stems."""

from __future__ import annotations

from collections.abc import Iterable

from kb.lexical.segmentation import folded
from kb.lexical.stems import stem_language, stemmed
from kb.lexical.word_variants import spellings


def alternatives(words: Iterable[str]) -> list[list[str]]:
    """Return words, those in one list that are spellings or stems of the same: they count as one.

    They are all apart if one is a beginning: FTS5, which then looks for all, counts each.
    """
    given = list(words)
    languages = {language for word in given if (language := stem_language(word))}
    forms = {word: [*spellings(word), *stemmed([folded(word)], languages)] for word in given}
    others = {other for group in forms.values() for other in group}.intersection(given)
    if not others or any(word.endswith("*") for word in given):
        return [[word] for word in given]
    return [[word, *(form for form in forms[word] if form in others)] for word in given if word not in others]
