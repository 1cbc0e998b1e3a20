"""What to look for: a query in the words of the full-text leg, and as the text that the model reads."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kb.lexical.stop_words import STOP_WORDS

if TYPE_CHECKING:
    from kb.store.rows import Filter

MAX_TERMS = 64
"""How many different words of a query the full-text leg looks up."""


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for, among which documents. A leg without anything to look for does not run.

    Args:
        text: for the vector leg.
        words: for the full-text leg, each once.
        where: the filter.
        exact: whether the vector leg must compare every vector.
    """

    text: str | None
    words: tuple[str, ...]
    where: Filter
    exact: bool = False

    @classmethod
    def parse(
        cls, text: str, where: Filter, *, full_text: bool = True, vectors: bool = True, exact: bool = False
    ) -> Query:
        """Return the query for the legs that shall run."""
        return cls(text if vectors else None, tuple(keywords(text)) if full_text else (), where, exact)

    @property
    def terms(self) -> tuple[str, ...]:
        """The words to look up; every word is highlighted."""
        return self.words[:MAX_TERMS]


def keywords(text: str) -> list[str]:
    """Return the words to look for, each once: stop words only when there is nothing else."""
    words = list(dict.fromkeys(tokenize(text)))
    return [word for word in words if word not in STOP_WORDS] or words


def tokenize(text: str) -> list[str]:
    """Return the words of a text: letters and digits with their marks, without regard to case.

    What the full-text index makes of the marks it does by itself: it drops some, and parts words at others.
    """
    characters = unicodedata.normalize("NFC", text).lower()
    return "".join(each if is_word_character(each) else " " for each in characters).split()


def is_word_character(character: str) -> bool:
    """Return whether a character is a letter, a digit or a mark on one."""
    return character.isalnum() or unicodedata.category(character).startswith("M")
