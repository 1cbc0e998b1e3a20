"""Words of a query that count as one: spellings of the same word, its stems, and compounds with them."""

from __future__ import annotations

from collections.abc import Iterable

from kb.index.words.compounds import MARKS
from kb.index.words.edit_distance import plain
from kb.index.words.segmentation import folded
from kb.index.words.stems import stem_language, stemmed
from kb.index.words.word_variants import spellings


def alternatives(words: Iterable[str]) -> list[list[str]]:
    """Return the words in lists; spellings and stems of the same word share a list and count as one.

    If any word is a prefix, each word has its own list, because FTS5 then counts each.
    """
    given = list(words)
    languages = {language for word in given if (language := stem_language(word))}
    marked = [word for word in given if word[:1] in MARKS]
    forms = {word: [*spellings(word), *stemmed([folded(word)], languages)] for word in given}
    forms = {word: [*group, *_compounds(group, marked)] for word, group in forms.items()} if marked else forms
    others = {other for group in forms.values() for other in group}.intersection(given)
    if not others or any(word.endswith("*") for word in given):
        return [[word] for word in given]
    return [[word, *(form for form in forms[word] if form in others)] for word in given if word not in others]


def _compounds(forms: list[str], marked: list[str]) -> list[str]:
    """Return the stems of compounds with a word, given its stems and other forms."""
    compounds = (word for word in marked for form in forms if word[0] == form[0] and plain(form[1:-1]) in word)
    return [word for word in compounds if word not in forms]
