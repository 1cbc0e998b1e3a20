"""Words that are written as one with others, in German, Dutch, Finnish and the Scandinavian languages.

*Haltestelle* is a part of *Straßenbahnhaltestelle*. No dictionary says so: the rest must be a word, by the words of the
database or by its length.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

from kb.index.words.edit_distance import plain
from kb.index.words.stems import END, language_mark

LANGUAGES: Final = frozenset(("da", "de", "fi", "nl", "no", "sv"))
MARKS: Final = {language_mark(language): language for language in LANGUAGES}

SHORTEST: Final = 7
"""The minimum number of letters of the stem of a compound."""

SHORTEST_PART: Final = 3
SURE: Final = 4
"""The minimum number of letters of both parts if the database need not contain the other part as a word; one part may
have a letter less if the word of the query has two more."""

MOST: Final = 50
"""The maximum number of compounds of a word, the shortest ones."""

LOOKED_AT: Final = 2000
"""The maximum number of places where letters are compared, because a short word is in very many others."""

MOST_ADDED: Final = 10_000

LINKS: Final = ("", "s", "es", "n", "en", "er", "e", "ens", "t", "a", "u")
"""Letters that join the parts."""

_PREFIXES = """
    ab an auf aus be bei durch ein emp ent er ge her hin los miss mit nach um un unter ver voll vor weg zer zu zur
    aan af bij door met om ont onder op over toe uit voor for fore inn med mot opp på till ud ut und upp vid
"""
PREFIXES: Final = frozenset(map(plain, _PREFIXES.split()))
"""They make another word, such as *bekommen* of *kommen*."""

ENDINGS: Final = re.compile(
    r"(?:er|en|in|ung|heit|keit|igkeit|schaft|lich|isch|ig|bar|los|haft|sam|chen|lein|ier|ierung|heid|ing|lijk|elijk|baar"
    r"|loos|tje|het|lig|else|ande|ende|ning|dom|skap|lagt?|nen|inen|isuus|uus|minen|ja|ton)+"
)
"""They make another form of a word, such as *Freundschaft* of *Freund*."""

VOWEL: Final = re.compile("[aeiouyäöüåøæ]")


class Compounds:
    """The long stems of these languages, as lines of one text, in which letters are found faster than in a set."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._text = "\n"
        self._added: dict[str, None] = {}

    def add(self, tokens: Iterable[str]) -> None:
        """Add those among the tokens of new chunks."""
        new = dict.fromkeys(token for token in tokens if token[:1] in MARKS and len(token) > SHORTEST)
        with self._changing:
            self._added = self._added | new if new.keys() - self._added else self._added
            if len(self._added) > MOST_ADDED:
                self._text = _lines({*self._text.split("\n"), *self._added} - {""})
                self._added = {}

    def containing(self, part: Part, is_known: Callable[[str], bool]) -> list[str]:
        """Return the compounds of which a word is a part, the shortest first."""
        lines = (line for text in (self._text, _lines(self._added)) for line in _lines_with(text, part))
        return fitting(lines, part, is_known)


class Part(NamedTuple):
    """A word of a query without marks on its letters, and its indexed stem."""

    word: str
    stem: str

    @property
    def ending(self) -> str:
        """The end of compounds that end with the word."""
        return f"{self.letters}{END}"

    @property
    def beginnings(self) -> tuple[str, ...]:
        """The beginnings of compounds that begin with the word, which is not stemmed there, or only with its stem."""
        return tuple(dict.fromkeys((f"{self.stem[0]}{self.word}", self.stem.removesuffix(END))))

    @property
    def letters(self) -> str:
        return self.stem[1:].removesuffix(END)


def fitting(tokens: Iterable[str], part: Part, is_known: Callable[[str], bool]) -> list[str]:
    """Return the tokens that are compounds with a word, the shortest first."""

    def is_word(letters: str) -> bool:
        return is_known(f"{part.stem[0]}{letters}{END}")

    compounds = {
        token
        for token in tokens
        if (token.endswith(part.ending) and _is_first(token[1 : -len(part.ending)], len(part.letters), is_word))
        or any(
            _is_last(token[len(begun) : -len(END)], len(begun) - 1, is_word)
            for begun in part.beginnings
            if token.startswith(begun)
        )
    }
    return sorted(compounds, key=lambda token: (len(token), token))[:MOST]


def _is_first(rest: str, others: int, is_known: Callable[[str], bool]) -> bool:
    """Whether the letters before a part are a word."""
    if len(rest) < SHORTEST_PART or rest in PREFIXES or not VOWEL.search(rest):
        return False
    return _are_long(rest, others) or any(is_known(rest.removesuffix(link)) for link in LINKS)


def _is_last(rest: str, others: int, is_known: Callable[[str], bool]) -> bool:
    """Whether the letters after a part are a word, after letters that join both."""
    words = [rest.removeprefix(link) for link in LINKS if rest.startswith(link)]
    words = [
        word for word in words if len(word) >= SHORTEST_PART and VOWEL.search(word) and not ENDINGS.fullmatch(word)
    ]
    if not words or ENDINGS.fullmatch(rest):
        return False
    return _are_long(rest, others) or any(map(is_known, words))


def _are_long(rest: str, others: int) -> bool:
    return others >= SURE and len(rest) + (others >= SURE + 2) >= SURE


def _lines_with(text: str, part: Part) -> Iterator[str]:
    """Yield the lines of the language that begin or end with a word."""
    for sought in (f"{part.ending}\n", *(f"\n{begun}" for begun in part.beginnings)):
        place = -1
        for _ in range(LOOKED_AT):
            if (place := text.find(sought, place + 1)) < 0:
                break
            start = text.rfind("\n", 0, place + 1) + 1
            line = text[start : text.find("\n", max(place + 1, start))]
            if line[:1] == part.stem[:1]:
                yield line


def _lines(tokens: Collection[str]) -> str:
    return "\n".join(("", *tokens, ""))


def parts(word: str, stems: Iterable[str]) -> list[Part]:
    """Return a word with each of its indexed stems in a language that writes compounds as one word."""
    letters = plain(word.lower())
    return [Part(letters, plain(stem)) for stem in stems if stem[:1] in MARKS and len(stem) > SHORTEST_PART + 1]
