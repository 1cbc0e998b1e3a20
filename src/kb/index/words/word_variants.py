"""Other forms of words, which also find them: they are indexed after the text with the words.

`Łódź` is found as *Lodz*, `Größe` as *Groesse*, `getUserById` as *user by id*, `e-mail` as *email*. The
words themselves stay in their places, so that phrases still match, and words as typed rank higher.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from kb.index.words.emoji import found_in, indexed
from kb.index.words.joined_words import joined_words

PLAIN: Final = str.maketrans(
    {
        "ł": "l",
        "ø": "o",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "æ": "ae",
        "œ": "oe",
        "\u0131": "i",
        "ß": "ss",
        "ħ": "h",
        "ŧ": "t",
        "ŋ": "n",
        "ɓ": "b",
        "ɗ": "d",
        "ƙ": "k",
        "ƴ": "y",
        "ə": "e",
        "ɛ": "e",
        "ɔ": "o",
        "ǿ": "o",
        **dict.fromkeys("\u02b9\u02bb\u02bc\u02bd\u02c8", ""),
    }
)
"""Letters without a decomposition, with their substitutes on keyboards that lack them."""

DIGRAPHS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa", "ǿ": "oe"})
"""Substitutes for such letters in German, Danish, Norwegian and Swedish."""

_LETTERS: Final = "".join(
    sorted({letter for code in (*PLAIN, *DIGRAPHS) for letter in (chr(code), *chr(code).upper())} - {*"SI"})
)
SPECIAL: Final = re.compile(f"[{_LETTERS}]")
CAMEL: Final = re.compile(r"[A-Z](?:(?<=[a-z\d].)|(?<=[A-Z].)[a-z]{2})")
"""The beginning of a word within a name. Matching from its capital letter on takes a fifth of the time."""

PART: Final = re.compile(r"[A-Z]+(?![a-rt-z]|s[a-z])s?|[A-Z]?[a-z]+|[A-Z]|\d+")
"""A word within a name: letters with an optional initial capital, capitals with a plural s, or digits."""
OTHERWISE_TYPED: Final = re.compile(
    rf"(?<![^\W_])(?=[^\W_]*?(?:[a-z\d][A-Z]|[A-Z]{{2}}[a-z]{{2}}|[{_LETTERS}]))[^\W_]+", re.UNICODE
)
"""A word that may have other forms."""

HAS_WORD: Final = re.compile("[A-Za-z][a-z]{2}")
"""Occurs in names made of words, but not in terms such as miRNAs, mTORC1 and PI3K, whose parts carry no meaning."""

SHORTEST_PART: Final = 2
MOST_PARTS: Final = 8
"""The maximum number of parts of a name; a longer one is probably a code."""


class Variant(NamedTuple):
    """Other words for the text from `start` to before `end`."""

    start: int
    end: int
    text: str


def variants(text: str) -> str | None:
    """Return the words to index after a folded text, or None if there are none."""
    texts = dict.fromkeys(variant.text for variant in variants_in(text))
    return " ".join(texts) or None


def variants_in(text: str) -> Iterator[Variant]:
    """Yield the other forms of the words of a text, at the places of the words."""
    yield from map(Variant._make, joined_words(text))
    if text.isascii():
        if not CAMEL.search(text):
            return
    else:
        yield from (Variant(*emoji.span(), indexed(emoji)) for emoji in found_in(text))
        if not (SPECIAL.search(text) or CAMEL.search(text)):
            return
    for word in OTHERWISE_TYPED.finditer(text):
        yield from (Variant(*word.span(), other) for other in spellings(word[0]))
        yield from (Variant(word.start() + start, word.start() + end, part) for start, end, part in name_parts(word[0]))


def spellings(word: str) -> list[str]:
    """Return the other spellings of a word with letters that some keyboards lack."""
    if word.isascii() or not SPECIAL.search(word):
        return []
    lower = word.lower()
    plain = lower.translate(PLAIN)
    others = dict.fromkeys([plain, lower.translate(DIGRAPHS).translate(PLAIN)])
    return [other for other in others if other != lower and other]


def name_parts(name: str) -> list[Variant]:
    """Return the words in a name such as getUserById, each with its place."""
    return [Variant(start, end, name[start:end].lower()) for start, end in _telling(_spans(name))]


def in_words(name: str) -> str | None:
    """Return the words of such a name, separated by spaces; None if it is a single word."""
    words = [name[start:end].lower() for start, end in _telling(_spans(name))]
    return " ".join(words) if len(words) > 1 else None


def _spans(name: str) -> list[tuple[int, int]]:
    """Return the places of the words in a name; an empty list for one word or too many."""
    if not (name.isalnum() and CAMEL.search(name) and HAS_WORD.search(name)):
        return []
    spans = [part.span() for part in PART.finditer(name)]
    return spans if 1 < len(spans) <= MOST_PARTS else []


def _telling(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(start, end) for start, end in spans if end - start >= SHORTEST_PART]
