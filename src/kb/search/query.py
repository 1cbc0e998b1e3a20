"""What to look for: a query in the words of the full-text leg, and as the text that the model reads."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, takewhile
from typing import NamedTuple

from kb.api.errors import Invalid
from kb.api.stream_safe import composed
from kb.lexical.emoji import emojis
from kb.lexical.function_words import FUNCTION_WORDS, STOP_WORDS
from kb.lexical.segmentation import LETTER_MARKS, RUN, folded, has_run, is_letter, parts
from kb.lexical.spelling import LONGEST
from kb.lexical.stems import stemmed
from kb.lexical.unicode_forms import compatible
from kb.lexical.word_variants import CAMEL, in_words, spellings
from kb.search import numbers
from kb.search.apostrophes import (
    WITH_APOSTROPHE,
    apart,
    is_contraction,
    is_possessive,
    with_apostrophe,
)
from kb.search.numbers import other_spellings
from kb.store.rows import Filter

MAX_TERMS = 64
"""How many different words of a query the full-text leg looks up."""

MAX_PARTS = 8
"""How many parts an identifier or a phrase has at most that counts as one word more."""

MAX_CONDITIONS = 32
"""How many phrases a query may have that must be in a document, and as many that must not."""

PHRASE = re.compile(r'(?<!\w)(-?)["“„]([^"“”„]+)["”“](?!\w)')
MIN_EXCLUDED = 3
"""How many characters a word has at least that is excluded: shorter ones are rather options of a command."""

LEAST_PAIRS = 0.25
"""Which share of the pairs of letters of a question in a script without spaces an answer exceeds at least."""

JOINED = re.compile(r"\W*[^\W\d_]+(?:[-'’\u2010-\u2015][^\W\d_]+)+\W*")
VERSION = re.compile(r"v?\d+(?:\.\d+)+")
"""Others write it with a v, or without."""

WORD = re.compile(r"[^\W\d_]+")
ASCII_WORD = re.compile(r"[a-z0-9]+")
PUNCTUATION = ((0x21, 0xC0), (0x55A, 0x700), (0x964, 0x971), (0x2010, 0x2060), (0x3001, 0x30FC), (0xFE10, 0xFF66))
"""Where the marks are that languages write around words."""

OF_NAMES = "#%&/@\\_-"
"""Marks that begin or end names."""

MARKS_AROUND = "`\u00b4<>|" + "".join(
    mark
    for start, end in PUNCTUATION
    for mark in map(chr, range(start, end))
    if unicodedata.category(mark).startswith("P") and mark not in OF_NAMES
)
MARKS_BEFORE_DOT = MARKS_AROUND.replace(".", "")
NAMED_BY_DOT = re.compile(r"\.(?:[a-z]|[Nn][Ee][Tt]\b)")
"""A name that begins with a dot, such as .NET or .env."""

PREFIX = re.compile(rf"(?<!\S)([\w{LETTER_MARKS}]{{2,}})\*(?!\S)")


@dataclass(frozen=True, slots=True)
class Unit:
    """What somebody typed in one: a word, a name with signs in it, a number, or words in quotes.

    Args:
        text: as it was typed, without the marks around it.
        forms: the words that the full-text leg looks up for it, first as it was typed; each may be in its place.
        is_literal: whether its signs, digits or quotes say that it is meant as it is.
    """

    text: str
    forms: tuple[str, ...]
    is_literal: bool

    def respelled(self, instead: Mapping[str, str]) -> Unit:
        """Return the same with another word instead of it."""
        other = instead.get(self.text.lower())
        return Unit(other, (other,), is_literal=False) if other else self

    def stemmed(self, stems: Mapping[str, Sequence[str]]) -> Unit:
        """Return the same with the stems of its words."""
        others = [stem for form in self.forms for stem in stems.get(form, ())]
        return replace(self, forms=tuple(dict.fromkeys([*self.forms, *others])))


class DistinctiveWords(NamedTuple):
    """A word that carries meaning: its forms, and more than which share of them a passage that has it has."""

    forms: tuple[str, ...]
    least: float


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for, among which documents. A leg without anything to look for does not run.

    Args:
        text: for the vector leg.
        words: for the full-text leg, each once; one that ends in a star is the beginning of words.
        where: the filter.
        exact: whether the vector leg must compare every vector.
        plain: those of the words that may be misspelled: neither names nor in quotes.
        units: what was typed, each with the words that stand for it; without those that say nothing.
        whole: all that was typed in one text, without marks around it.
        inflected: those of the words that are looked for by their stems as well: what stands in quotes is not.
        stems: these, in the languages of the database.
    """

    text: str | None
    words: tuple[str, ...]
    where: Filter
    exact: bool = False
    plain: tuple[str, ...] = ()
    units: tuple[Unit, ...] = ()
    whole: str = ""
    inflected: tuple[str, ...] = ()
    stems: tuple[str, ...] = ()

    @classmethod
    def parse(
        cls, text: str, where: Filter, *, full_text: bool = True, vectors: bool = True, exact: bool = False
    ) -> Query:
        """Return the query for the legs that shall run.

        What stands in quotes must be in a document, `-"some words"` must not, nor must `-word` at the end of the query,
        and `begin*` stands for all words that begin so.

        Raises:
            Invalid: there are more phrases, or exclusions, than `MAX_CONDITIONS`.
        """
        text = composed(text)
        # A star in quotes means nothing.
        quoted = [(sign, phrase.strip("* ")) for sign, phrase in PHRASE.findall(text) if tokenize(phrase)]
        phrases = [phrase for sign, phrase in quoted if not sign]
        unwanted = [phrase for sign, phrase in quoted if sign]
        rest = PHRASE.sub(lambda match: " " if match[1] else f" {match[2]} ", text)
        if excluded := exclusions(PHRASE.sub(lambda match: " " if match[1] else ' " ', text)):
            unwanted += excluded
            rest = " ".join(rest.split()[: -len(excluded)])
        if not tokenize(rest):  # nothing but what is not wanted
            phrases, unwanted, rest = [], [], text
        where = replace(
            where,
            holding=conditions(phrases, "phrases in quotes"),
            lacking=conditions(unwanted, "words and phrases that are excluded"),
        )
        phrases = [phrase for phrase in phrases if sum(len(parts(word)) for word in tokenize(phrase)) <= MAX_PARTS]
        begun = beginnings(PHRASE.sub(" ", text))[:MAX_TERMS]
        telling = compatible(apart(without_grouped_numbers(without_parted_isbns(rest))))
        telling_words = keywords(telling) if tokenize(telling) else []
        words = list(dict.fromkeys([*begun, *with_spellings(telling_words), *emojis(rest), *phrases, *compounds(rest)]))
        words = words or contractions(rest) or keywords(rest)
        unquoted = PHRASE.sub(" ", text).split()
        typed = unquoted[: len(unquoted) - len(excluded)]
        plain = plain_words(typed)
        inflected = tokenize(compatible(apart(" ".join(typed))))
        return cls(
            rest if vectors else None,
            tuple(words) if full_text else (),
            where,
            exact,
            tuple(plain[:MAX_TERMS]) if full_text else (),
            tuple(units(rest, phrases)[:MAX_TERMS]) if full_text else (),
            " ".join(rest.split()).strip(f"{MARKS_AROUND} "),
            tuple(dict.fromkeys(inflected))[:MAX_TERMS] if full_text else (),
        )

    @property
    def terms(self) -> tuple[str, ...]:
        """The words to look up; every word is highlighted, but no more beginnings than are looked up."""
        return (*self.words[:MAX_TERMS], *self.stems)

    @property
    def shown(self) -> tuple[str, ...]:
        """The words to highlight."""
        return (*self.words, *self.stems)

    def stemmed(self, languages: Collection[str]) -> Query:
        """Return the same query, whose words are looked for by their stems in some languages as well."""
        by_word = {word: stemmed([folded(word)], languages) for word in self.inflected if word in self.words}
        if not any(by_word.values()) or any(word.endswith("*") for word in self.words):  # which would count them apart
            return self
        stems = tuple(dict.fromkeys(chain.from_iterable(by_word.values())))
        return replace(self, units=tuple(unit.stemmed(by_word) for unit in self.units), stems=stems)

    def respelled(self, instead: Mapping[str, str]) -> Query:
        """Return the same query with other words instead of some."""
        words = dict.fromkeys(instead.get(word, word) for word in self.words)
        text = self.text
        if text is not None:
            text = WORD.sub(lambda word: instead.get(word[0].lower(), word[0]), unicodedata.normalize("NFC", text))
        units = (unit.respelled(instead) for unit in self.units)
        inflected = tuple(dict.fromkeys(instead.get(word, word) for word in self.inflected))
        return replace(self, text=text, words=tuple(words), plain=(), units=tuple(units), inflected=inflected)

    @property
    def telling(self) -> tuple[DistinctiveWords, ...]:
        """The words that carry meaning; in a script without spaces, what stands together is one."""
        distinctive = [self._telling(unit) for unit in self.units if unit.text.lower() not in FUNCTION_WORDS]
        return tuple(unit for unit in distinctive if unit.forms)

    def _telling(self, unit: Unit) -> DistinctiveWords:
        word = unit.text.lower()
        if f"{word}*" in self.words:
            return DistinctiveWords((f"{word}*",), 0.0)
        if has_run(word):
            return DistinctiveWords(tuple(keywords(word)), LEAST_PAIRS)
        return DistinctiveWords(unit.forms, 0.0)

    @property
    def without_phrases(self) -> Query:
        """The same query, whatever must be in a document; what must not be in it must not still."""
        return replace(self, where=replace(self.where, holding=()))


def conditions(words: Iterable[str], kind: str) -> tuple[str, ...]:
    """Return what must, or must not, be in a document, each once. Raises `Invalid` if that is too much."""
    once = tuple(dict.fromkeys(words))
    if len(once) > MAX_CONDITIONS:
        raise Invalid(f"query: at most {MAX_CONDITIONS} {kind}; there are {len(once)}.")
    return once


def keywords(text: str) -> list[str]:
    """Return the words to look for, each once: stop words only when there is nothing else.

    A letter of a script without spaces stands for all words that begin with it.
    """
    unique = list(dict.fromkeys(part for word in tokenize(text) for part in parts(word)))
    words = [word for word in unique if word not in STOP_WORDS] or unique
    begun = dict.fromkeys(islice(filter(is_letter, words), MAX_TERMS))  # each may be the beginning of what is meant
    return [f"{word}*" if word in begun else word for word in words if word in begun or not is_letter(word)]


def plain_words(written: Iterable[str]) -> list[str]:
    """Return the words, each once, that are only letters, of which but the first is a capital one.

    Others are names, numbers, or of scripts whose words cannot be told apart.
    """
    whole = (bare(word) for word in written if not PREFIX.fullmatch(word))
    words = (word.lower() for word in whole if WORD.fullmatch(word) and word[1:].islower())
    return [word for word in dict.fromkeys(words) if is_plain(word)]


def is_plain(word: str) -> bool:
    """Return whether a word is not too long to be one, and says something about what a text is about."""
    return len(word) <= LONGEST and word not in FUNCTION_WORDS and not has_run(word)


def exclusions(text: str) -> list[str]:
    """Return the words that no result may have: each has a dash before it, and nothing else follows.

    Within a sentence or a command a dash is something else, and so it is before a name or a stop word.
    """
    words = text.split()
    behind = takewhile(is_exclusion, reversed(words))
    return [word[1:] for word in behind][::-1]


def is_exclusion(word: str) -> bool:
    """Return whether this is a dash and a word of letters, none of them a capital one, that is no stop word."""
    letters = word[1:]
    if RUN.fullmatch(letters):
        return word.startswith("-")
    return (
        word.startswith("-")
        and len(letters) >= MIN_EXCLUDED
        and letters == letters.lower()
        and letters not in STOP_WORDS
        and all(is_word_character(letter) and not letter.isnumeric() for letter in letters)
        and letters[0].isalpha()
    )


def beginnings(text: str) -> list[str]:
    """Return what words shall begin with, each with its star."""
    return [f"{beginning.lower()}*" for beginning in PREFIX.findall(text) if tokenize(beginning)]


def with_spellings(words: Iterable[str]) -> list[str]:
    """Return the words, and behind each how else it is typed."""
    return list(dict.fromkeys(spelling for word in words for spelling in (word, *spellings(word))))


def compounds(text: str) -> list[str]:
    """Return what is written in one, such as file names, versions, numbers and addresses: its parts follow each other.

    Words that only a hyphen joins are none: others write them apart. An ISBN and a number are there in their other
    spellings as well, and a name such as getUserById in its words.
    """
    typed = [word.rstrip("*") for word in text.split()]
    written = [word.lower() for word in typed]
    compound_words = [
        word
        for word in written
        if 1 < len(tokenize(word)) <= MAX_PARTS and not (JOINED.fullmatch(word) or has_run(word))
    ]
    compound_words += [
        word[1:] if word.startswith("v") else f"v{word}" for word in compound_words if VERSION.fullmatch(word)
    ]
    compound_words += [word for word in apostrophized(text) if not (is_possessive(word) or is_contraction(word))]
    compound_words += [form for number in grouped_numbers(text) for form in number_forms(number)]
    compound_words += [words for word in typed if (words := in_words(bare(word)))]
    compound_words += [variant for word in written if (variant := with_apostrophe(bare(word)))]
    return compound_words + [other for word in written for other in other_spellings(bare(word))]


def contractions(text: str) -> list[str]:
    """Return the words such as don't, which are looked for where there is nothing else."""
    return [word for word in apostrophized(text) if is_contraction(word)]


def apostrophized(text: str) -> list[str]:
    """Return the words with an apostrophe in them."""
    return [word[0].lower() for word in WITH_APOSTROPHE.finditer(text)]


def grouped_numbers(text: str) -> list[re.Match[str]]:
    """Return the numbers of a text that may be written in several ways."""
    return [
        match for match in numbers.NUMBER.finditer(text) if len(number_forms(match)) > 1 or numbers.is_grouped(match)
    ]


def number_forms(match: re.Match[str]) -> list[str]:
    """Return how a number that was typed may stand in a text."""
    number = numbers.parse_number(match)
    if numbers.is_year(number) and not numbers.is_grouped(match):
        return [number.whole]
    return numbers.spellings(number)


def without_grouped_numbers(text: str) -> str:
    """Return a text without the numbers whose parts say nothing by themselves, such as the 1 of 1,872.00."""
    return numbers.NUMBER.sub(lambda match: " " if numbers.is_grouped(match) else match[0], text)


def bare(word: str) -> str:
    """Return a word without the marks around it; a dot that begins a name is part of it."""
    word = word.rstrip(MARKS_AROUND)
    begun = word.lstrip(MARKS_BEFORE_DOT)
    return begun if NAMED_BY_DOT.match(begun) else word.lstrip(MARKS_AROUND)


def units(text: str, phrases: Iterable[str]) -> list[Unit]:
    """Return what was typed, each once: the words in quotes, and the words that say something by themselves."""
    by_text = {phrase: Unit(phrase, (phrase,), is_literal=True) for phrase in phrases}
    parted = [number[0] for number in numbers.NUMBER.finditer(text) if len(number[0].split()) > 1]
    for word in dict.fromkeys([*map(bare, text.split()), *parted]):
        if word not in by_text and (unit := make_unit(word)):
            by_text[word] = unit
    return list(by_text.values())


def make_unit(word: str) -> Unit | None:
    """Return what a word that was typed stands for; None if it says nothing by itself."""
    lower = word.lower()
    if signs := emojis(word) if not tokenize(word) else []:
        return Unit(word, tuple(dict.fromkeys(signs)), is_literal=True)
    if not tokenize(word) or lower in STOP_WORDS or (WITH_APOSTROPHE.fullmatch(word) and is_contraction(word)):
        return None
    if WITH_APOSTROPHE.fullmatch(word) and is_possessive(word):
        return Unit(word, tuple(with_spellings(tokenize(apart(word)))), is_literal=False)
    number = numbers.NUMBER.fullmatch(word.strip(numbers.AROUND))
    forms = [lower, *number_forms(number)] if number else with_spellings([lower])
    is_joined = len(tokenize(word)) > 1 or CAMEL.search(word) is not None or any(map(str.isdigit, word))
    is_signed = not all(map(is_word_character, word))
    others = [*other_spellings(lower), *([lower.removeprefix("v")] if VERSION.fullmatch(lower) else [])]
    is_literal = is_joined or is_signed or lower != folded(lower)
    return Unit(word, tuple(dict.fromkeys([*forms, *others])), is_literal=is_literal)


def without_parted_isbns(text: str) -> str:
    """Return the text without the ISBNs that have hyphens: a part of one, such as 978, says nothing by itself."""
    return " ".join(word for word in text.split() if len(tokenize(word)) == 1 or not _is_isbn(word))


def tokenize(text: str) -> list[str]:
    """Return the words of a text: letters and digits with their marks, without regard to case.

    What the full-text index makes of the marks it does by itself: it drops some, and parts words at others.
    """
    if text.isascii():  # most are, and this is many times faster
        return ASCII_WORD.findall(text.lower())
    characters = unicodedata.normalize("NFC", text).lower()
    return "".join(character if is_word_character(character) else " " for character in characters).split()


def is_word_character(character: str) -> bool:
    """Return whether a character is a letter, a digit or a mark on one."""
    return character.isalnum() or unicodedata.category(character).startswith("M")


def _is_isbn(word: str) -> bool:
    return bool(other_spellings(bare(word).lower()))
