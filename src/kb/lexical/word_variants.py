"""Other forms of words, under which they are found as well: they are indexed behind the text that has the words.

`Łódź` is found as *Lodz*, `Größe` as *Groesse*, `getUserById` as *user by id*. The words themselves stay in their
places, so that phrases are those of the text, and what is written as it was typed counts for more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from kb.lexical.emoji import found_in, indexed

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
"""Letters that no decomposition makes plain, as people type them whose keyboards lack them."""

DIGRAPHS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa", "ǿ": "oe"})
"""How German, Danish, Norwegian and Swedish write such letters where they must."""

_LETTERS: Final = "".join(
    sorted({letter for code in (*PLAIN, *DIGRAPHS) for letter in (chr(code), *chr(code).upper())} - {*"SI"})
)
SPECIAL: Final = re.compile(f"[{_LETTERS}]")
CAMEL: Final = re.compile(r"[A-Z](?:(?<=[a-z\d].)|(?<=[A-Z].)[a-z]{2})")
"""Where a word begins within a name; from its capital letter on, which is found in a fifth of the time."""

PART: Final = re.compile(r"[A-Z]+(?![a-rt-z]|s[a-z])s?|[A-Z]?[a-z]+|[A-Z]|\d+")
"""A word within a name: letters that a capital one may begin, capital letters with the s of a plural, or digits."""
OTHERWISE_TYPED: Final = re.compile(
    rf"(?<![^\W_])(?=[^\W_]*?(?:[a-z\d][A-Z]|[A-Z]{{2}}[a-z]{{2}}|[{_LETTERS}]))[^\W_]+", re.UNICODE
)
"""A word that may have other forms."""

HAS_WORD: Final = re.compile("[A-Za-z][a-z]{2}")
"""What a name has that is made of words: miRNAs, mTORC1 and PI3K are signs of a science, whose parts say nothing."""

SHORTEST_PART: Final = 2
MOST_PARTS: Final = 8
"""How many parts a name has at most: what has more is rather encoded than written."""


class Variant(NamedTuple):
    """Other words for what stands from `start` to before `end`."""

    start: int
    end: int
    text: str


def variants(text: str) -> str | None:
    """Return what is indexed behind a text, which is in its form to compare; None if that is nothing."""
    texts = dict.fromkeys(variant.text for variant in variants_in(text))
    return " ".join(texts) or None


def variants_in(text: str) -> Iterator[Variant]:
    """Yield the other forms of the words of a text, each where the word stands."""
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
    """Return how else a word is typed that has letters which not every keyboard has."""
    if word.isascii() or not SPECIAL.search(word):
        return []
    lower = word.lower()
    plain = lower.translate(PLAIN)
    others = dict.fromkeys([plain, lower.translate(DIGRAPHS).translate(PLAIN)])
    return [other for other in others if other != lower and other]


def name_parts(name: str) -> list[Variant]:
    """Return the words of which a name such as getUserById is made, each where it stands."""
    return [Variant(start, end, name[start:end].lower()) for start, end in _telling(_spans(name))]


def in_words(name: str) -> str | None:
    """Return the words of such a name; None if it is of one word."""
    words = [name[start:end].lower() for start, end in _telling(_spans(name))]
    return " ".join(words) if len(words) > 1 else None


def _spans(name: str) -> list[tuple[int, int]]:
    """Return where the words of a name stand; none if it is of one, or of too many."""
    if not (name.isalnum() and CAMEL.search(name) and HAS_WORD.search(name)):
        return []
    spans = [part.span() for part in PART.finditer(name)]
    return spans if 1 < len(spans) <= MOST_PARTS else []


def _telling(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(start, end) for start, end in spans if end - start >= SHORTEST_PART]
