"""Stems of words by the rules of their language, so that *Häuser* finds *Haus* and *chevaux* finds *cheval*.

English stems come from FTS5's own tokenizer, which reads every text as if it were English. The stems of other
languages are indexed after the text of documents in that language, each with a mark of the language. The mark prevents
accidental matches between languages: the German stem of *hunger* would be the English *hung*.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import chain
from typing import Any, Final

from kb.index.words.function_words import FUNCTION_WORDS
from kb.index.words.word_variants import PLAIN, Variant

ALGORITHMS: Final = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "tr": "turkish",
}
"""The languages with stems, and the names of their algorithms."""

FIRST_MARK, LETTERS_OF_CODE = 0xE000, 26
"""Language marks are private characters, which the tokenizer treats as letters. `segment.PRIVATE` uses others."""

END: Final = "0"
"""Ends a stem; without it, the tokenizer would apply English rules."""

SHORTEST, LONGEST = 3, 32
"""The length limits of a word with a stem: shorter words seldom change, and longer ones are probably codes."""

PLURALS: Final = {
    "es": {"ces": "z"},
    "it": {"chi": "co", "ghi": "go", "che": "ca", "ghe": "ga"},
    "pt": {"ais": "al", "éis": "el", "óis": "ol", "ões": "ão", "ães": "ão", "ãos": "ão"},
}
"""Regular plural endings that Snowball does not reduce to the singular, with their singulars."""

ROUNDS = 2
"""The number of times a word is stemmed: Snowball's stem of a plural may still be a whole word, such as *ciudad*."""

KEPT = 1 << 16
"""The number of stems kept in memory."""

WORD: Final = re.compile(rf"(?<!\w)[^\W\d_]{{{SHORTEST},{LONGEST}}}(?!\w)")

_stemming = threading.Lock()
_stemmers: dict[str, Any] = {}

ENDINGS = ("", "e", "ion", "tion", "ation", "ness", "ess", "ity", "er", "ing", "al", "able")
"""Common continuations of English words: *organiz* is a prefix of *organization*, whose stem is *organ*."""


def language_mark(language: str) -> str:
    """Return the mark of a language with this two-letter code."""
    first, second = (ord(letter) - ord("a") for letter in language)
    return chr(FIRST_MARK + LETTERS_OF_CODE * first + second)


LANGUAGES: Final = {language_mark(language): language for language in ALGORITHMS}


def stem_language(word: str) -> str | None:
    """Return the language of a stem in a query; None if the word is not such a stem."""
    return LANGUAGES.get(word[:1])


def stemmed(words: Iterable[str], languages: Collection[str]) -> list[str]:
    """Return the stems of words in some languages, each once, marked as indexed."""
    supported = [language for language in languages if language in ALGORITHMS]
    return list(dict.fromkeys(stem for word in words for language in supported for stem in stems(word, language)))


def stems(word: str, language: str) -> list[str]:
    """Return the marked stem of a folded word in a language; an empty list if it has none."""
    if not WORD.fullmatch(word) or (lower := word.lower()) in FUNCTION_WORDS:
        return []
    return [_marked(lower, language)]


def stems_in(text: str, language: str | None) -> Iterator[Variant]:
    """Yield the stems of the words of a folded text, at the places of the words."""
    if language not in ALGORITHMS:
        return
    for word in WORD.finditer(text):
        yield from (Variant(*word.span(), stem) for stem in stems(word[0], language))


@lru_cache(KEPT)
def _marked(word: str, language: str) -> str:
    stem = _of_one(word, language)
    with _stemming:  # a stemmer stores its current word
        for _ in range(ROUNDS):
            stem = _stemmer(language).stemWord(stem)
    return f"{language_mark(language)}{stem.translate(PLAIN)}{END}"


def _of_one(word: str, language: str) -> str:
    """Return the singular if the ending marks a plural; otherwise the word."""
    endings = PLURALS.get(language, {})
    ending = next((ending for ending in endings if word.endswith(ending)), None)
    return word.removesuffix(ending) + endings[ending] if ending else word


def _stemmer(language: str) -> Any:  # noqa: ANN401 - snowballstemmer declares no types
    if language not in _stemmers:
        name = ALGORITHMS[language]
        module = import_module(f"snowballstemmer.{name}_stemmer")
        _stemmers[language] = getattr(module, f"{name.capitalize()}Stemmer")()
    return _stemmers[language]


def completions(beginning: str, stems_of: Callable[[str], Sequence[str]]) -> dict[str, str]:
    """Return words with this prefix by stem, if their stem does not begin with the stem of the prefix."""
    begun = tuple(stems_of(beginning)[-1:])
    words: dict[str, str] = {}
    for word in (beginning + ending for ending in ENDINGS):
        for stem in stems_of(word)[-1:]:
            if not stem.startswith(begun):
                words.setdefault(stem, word)
    return words


def completed(words: Iterable[str], stems_of: Callable[[str], Sequence[str]]) -> tuple[str, ...]:
    """Return the words, followed by the completions of each prefix among them."""
    given = tuple(words)
    begun = (word.removesuffix("*") for word in given if word.endswith("*"))
    return (*given, *chain.from_iterable(completions(word, stems_of).values() for word in begun))
