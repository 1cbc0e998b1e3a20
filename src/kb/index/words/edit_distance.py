"""Distances between spellings, and the possible corrections of a word."""

from __future__ import annotations

import unicodedata
from functools import cache

from kb.index.words.segmentation import folded

SHORTEST, LONGEST = 5, 32
"""Shorter words resemble too many others to be corrected, and corrections of longer words are not worth the time."""

REPLACED = 6
"""The minimum length of a word with a replaced letter: a shorter word too easily becomes another."""

LONG = 8
"""The minimum length of a word with two wrong letters."""

BLOCK = 128
"""The size of a block of characters, which contains the letters of one alphabet."""

ALPHABETS = 3
"""The maximum number of alphabets in a word: no language uses more, and there would be too many corrections."""


def plain(word: str) -> str:
    """Return a word as indexed: without the diacritics of Latin letters, and with other letters folded."""
    return "".join(map(_plain, folded(word)))


def _plain(letter: str) -> str:
    """Return a letter as FTS5's tokenizer indexes it, which removes the marks only of Latin letters."""
    parts = unicodedata.normalize("NFKD", letter)
    if not parts[0].isascii():
        return letter
    return "".join(character for character in parts if unicodedata.category(character) != "Mn")


def spelled_out(word: str) -> str:
    """Return a word as typed on keyboards without ß."""
    return word.replace("ß", "ss")


def edits(word: str) -> set[str]:
    """Return the words that differ in one letter after the first: omitted, added, replaced, or swapped with the next.

    ß and ss count as one letter. People seldom mistype the first letter, so words that differ in it are probably
    different words. A word in too many alphabets has no corrections.
    """
    blocks = {ord(letter) // BLOCK for letter in word}
    if len(blocks) > ALPHABETS:
        return set()
    letters = {letter for block in blocks for letter in alphabet(block)}
    halves = [(word[:place], word[place:]) for place in range(1, len(word) + 1)]
    edited = {first + last[1:] for first, last in halves if last}
    edited |= {first + last[1] + last[0] + last[2:] for first, last in halves if len(last) > 1}
    edited |= {first + letter + last for first, last in halves for letter in letters}
    if len(word) >= REPLACED:
        edited |= {first + letter + last[1:] for first, last in halves if last for letter in letters}
    edited |= {first + "ß" + last[2:] for first, last in halves if last.startswith("ss")} | {spelled_out(word)}
    return edited - {word}


@cache
def alphabet(block: int) -> tuple[str, ...]:
    """Return the unmarked lower-case letters of one alphabet."""
    characters = map(chr, range(block * BLOCK, (block + 1) * BLOCK))
    return tuple(character for character in characters if character.islower() and plain(character) == character)


def may_be_near(first: str, second: str, far: int) -> bool:
    """Whether `far` changes may be enough: each removes one letter, adds one, or does both."""
    return abs(len(first) - len(second)) <= far and len(set(first) ^ set(second)) <= 2 * far


def distance(first: str, second: str) -> int:
    """Return the number of letters to omit, add, replace or swap with the next."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for place, letter in enumerate(first, 1):
        before, above, row = row, before, [place]
        for column, other in enumerate(second, 1):
            cost = min(before[column] + 1, row[-1] + 1, before[column - 1] + (letter != other))
            if place > 1 and column > 1 and (letter, first[place - 2]) == (second[column - 2], other):
                cost = min(cost, above[column - 2] + 1)
            row.append(cost)
    return row[-1]
