"""Words that are spelled nearly alike."""

from __future__ import annotations

import unicodedata
from functools import cache

from kb.lexical.segmentation import folded

SHORTEST, LONGEST = 5, 32
"""Shorter words are spelled like too many others to be corrected, and of longer ones no change is worth trying."""

REPLACED = 6
"""How long a word is at least of which a letter may be another: a shorter one becomes another word too easily."""

LONG = 8
"""How long a word is at least of which two letters may be wrong."""

BLOCK = 128
"""Letters of one alphabet are among so many characters."""

ALPHABETS = 3
"""Of how many a word may be: one of more is no language's, and would become tens of thousands of others."""


def plain(word: str) -> str:
    """Return a word as the index has it: without the marks of Latin letters, and of others those that are folded."""
    return "".join(map(_plain, folded(word)))


def _plain(letter: str) -> str:
    """Return a letter as FTS5's tokenizer has it, which leaves out the marks of Latin letters alone."""
    parts = unicodedata.normalize("NFKD", letter)
    if not parts[0].isascii():
        return letter
    return "".join(character for character in parts if unicodedata.category(character) != "Mn")


def spelled_out(word: str) -> str:
    """Return a word as those write it whose keyboards have no ß."""
    return word.replace("ß", "ss")


def edits(word: str) -> set[str]:
    """Return what a word becomes when a letter behind the first is left out, put in or replaced, or two change places.

    ß and ss are one letter. People seldom mistake the first, and words that differ in it are rather two words. Of a
    word in letters of many alphabets there is nothing.
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
    """Return the letters of one alphabet that have no marks."""
    characters = map(chr, range(block * BLOCK, (block + 1) * BLOCK))
    return tuple(character for character in characters if character.islower() and plain(character) == character)


def may_be_near(first: str, second: str, far: int) -> bool:
    """Return whether so few changes may lead from one to the other: each takes one letter away or adds one, or both."""
    return abs(len(first) - len(second)) <= far and len(set(first) ^ set(second)) <= 2 * far


def distance(first: str, second: str) -> int:
    """Return how many letters must be left out, put in or replaced, or change places with the next one."""
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
