"""The parsed query: the words for the full-text leg and the text for the model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import NamedTuple

from kb.api.errors import Invalid
from kb.index.words.apostrophes import (
    WITH_APOSTROPHE,
    apart,
    is_contraction,
    is_possessive,
    with_apostrophe,
)
from kb.index.words.edit_distance import LONGEST
from kb.index.words.emoji import emojis
from kb.index.words.function_words import FUNCTION_WORDS, STOP_WORDS
from kb.index.words.joined_words import joined_word
from kb.index.words.segmentation import LETTER_MARKS, TWIN, folded, has_run, is_letter, parts
from kb.index.words.stems import stemmed
from kb.index.words.unicode_forms import compatible
from kb.index.words.word_variants import CAMEL, in_words, spellings
from kb.search import long_numbers, measures, numbers
from kb.search.numbers import other_spellings
from kb.search.operators import PHRASE, as_read, exclusions, within_quotes
from kb.store.rows import Filter

MAX_TERMS = 64
"""The maximum number of distinct words of a query that the full-text leg looks up."""

MAX_PARTS = 8
"""The maximum number of parts of an identifier or a phrase that is also looked up as a whole."""

MAX_CONDITIONS = 32
"""The maximum number of required phrases in a query, and of excluded ones."""

MAX_PHRASE_WORDS = 64
"""A document is compared with this number of words of a phrase. The time for more grows with their square."""

MAX_QUOTED_WORDS = 256
"""The maximum number of words that are compared of all phrases of a query."""

EXCLUDED = "excluded words and phrases"

LEAST_PAIRS = 0.25
"""An answer contains more than this share of the letter pairs of a question in a script without spaces."""

JOINED = re.compile(r"\W*[^\W\d_]+(?:[-'’\u2010-\u2015][^\W\d_]+)+\W*")
VERSION = re.compile(r"v?\d+(?:\.\d+)+")
"""Texts write a version with or without the v."""

HAS_DIGIT = re.compile(r"\d|[½-⅞¼-¾]")
SHORT_PART = 2
WORD = re.compile(r"[^\W\d_]+")
ASCII_WORD = re.compile(r"[a-z0-9]+")
PUNCTUATION = ((0x21, 0xC0), (0x55A, 0x700), (0x964, 0x971), (0x2010, 0x2060), (0x3001, 0x30FC), (0xFE10, 0xFF66))
"""The code points of the punctuation that languages write around words."""

OF_NAMES = "#%&/@\\_-"
"""Marks that names begin or end with."""

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
    """One thing that the user typed: a word, a name with signs in it, a number, or words in quotes.

    Args:
        text: the typed text, without the marks around it.
        forms: the words that the full-text leg looks up for it, the typed form first; any of them matches.
        is_literal: whether its signs, digits or quotes ask for an exact match.
        related: its forms that are another word: a compound with the word, or a name in another script.
    """

    text: str
    forms: tuple[str, ...]
    is_literal: bool
    related: tuple[str, ...] = ()

    def with_form(self, form: str) -> Unit:
        return replace(self, forms=tuple(dict.fromkeys([*self.forms, form])))

    def with_related(self, words: Sequence[str]) -> Unit:
        others = tuple(word for word in words if word not in self.forms)
        return replace(self, forms=(*self.forms, *others), related=others) if others else self

    def respelled(self, instead: Mapping[str, str]) -> Unit:
        """Return the unit with its replacement from `instead`, if it has one."""
        other = instead.get(self.text.lower())
        return Unit(other, (other,), is_literal=False) if other else self

    def stemmed(self, stems: Mapping[str, Sequence[str]]) -> Unit:
        """Return the unit with the stems of its words added."""
        others = [stem for form in self.forms for stem in stems.get(form, ())]
        return replace(self, forms=tuple(dict.fromkeys([*self.forms, *others])))


class DistinctiveWords(NamedTuple):
    """A word that carries meaning: its forms, and the share of them that a passage with the word must exceed."""

    forms: tuple[str, ...]
    least: float


@dataclass(frozen=True, slots=True)
class Query:
    """The words and the text to search for, and the filter. A leg with nothing to search for does not run.

    Args:
        text: for the vector leg.
        words: for the full-text leg, each once; a word that ends in a star is a prefix.
        where: the filter.
        exact: whether the vector leg must compare every vector.
        plain: the words that may be misspelled: neither names nor in quotes.
        units: the typed units with their words, without the units that carry no meaning.
        whole: the whole typed text, without marks around it.
        inflected: the words whose stems also match; words in quotes are not among them.
        stems: these stems, in the languages of the database.
        only_filters: whether nothing is left to search for, so that the newest documents within the filter are meant.
        related: the compounds with its words, and its names in other scripts.
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
    only_filters: bool = False
    related: tuple[str, ...] = ()

    @classmethod
    def parse(
        cls,
        text: str,
        where: Filter,
        *,
        full_text: bool = True,
        vectors: bool = True,
        exact: bool = False,
        has_operators: bool = False,
    ) -> Query:
        """Return the query for the requested legs; with `has_operators`, it may consist of nothing but exclusions.

        A document must contain the phrases in quotes, and must not contain `-"some words"`, nor `-word` at the end of
        the query. `begin*` matches every word with this prefix.

        Raises:
            Invalid: the query has more phrases, or exclusions, than `MAX_CONDITIONS`.
        """
        text = as_read(text)
        quoted = [match for match in PHRASE.finditer(text) if tokenize(within_quotes(match))]
        phrases = [shortened(within_quotes(match)) for match in quoted if not match["lacking"]]
        unwanted = [shortened(within_quotes(match)) for match in quoted if match["lacking"]]
        rest = PHRASE.sub(lambda match: " " if match["lacking"] else f" {within_quotes(match)} ", text)
        if excluded := exclusions(PHRASE.sub(lambda match: " " if match["lacking"] else ' " ', text)):
            unwanted += excluded
            rest = " ".join(rest.split()[: -len(excluded)])
        if not tokenize(rest):  # nothing but exclusions
            if has_operators and not emojis(rest):
                return cls(None, (), replace(where, lacking=conditions(unwanted, EXCLUDED)), only_filters=True)
            phrases, unwanted, rest = [], [], text
        where = replace(where, holding=conditions(phrases, "phrases in quotes"), lacking=conditions(unwanted, EXCLUDED))
        phrases = [phrase for phrase in phrases if word_count(phrase) <= MAX_PARTS]
        unquoted = PHRASE.sub(" ", text)
        words = sought_words(rest, beginnings(unquoted)[:MAX_TERMS], phrases)
        typed = unquoted.split()
        typed = typed[: len(typed) - len(excluded)]
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
        """The words to look up: at most `MAX_TERMS`, plus the stems and related words."""
        return (*self.words[:MAX_TERMS], *self.stems, *self.related)

    @property
    def shown(self) -> tuple[str, ...]:
        return (*self.words, *self.stems, *self.related)

    def single_words(self) -> Iterator[str]:
        """Yield the words without quotes that consist of letters, as typed."""
        typed = (unit.text for unit in self.units if unit.text not in self.where.holding)
        return (word for word in typed if WORD.fullmatch(word) and word.lower() in self.words and not has_run(word))

    def with_related(self, by_word: Mapping[str, Sequence[str]]) -> Query:
        """Return the query with words that also match some of its words, unless it has a prefix."""
        if not by_word or any(word.endswith("*") for word in self.words):
            return self
        units = tuple(unit.with_related(by_word.get(unit.text, ())) for unit in self.units)
        return replace(self, units=units, related=tuple(dict.fromkeys(chain.from_iterable(by_word.values()))))

    def stemmed(self, languages: Collection[str]) -> Query:
        """Return the query with the stems of its words in these languages, which then also match."""
        by_word = {word: stemmed([folded(word)], languages) for word in self.inflected if word in self.words}
        if not any(by_word.values()) or any(word.endswith("*") for word in self.words):  # FTS5 then counts each
            return self
        stems = tuple(dict.fromkeys(chain.from_iterable(by_word.values())))
        return replace(self, units=tuple(unit.stemmed(by_word) for unit in self.units), stems=stems)

    def respelled(self, instead: Mapping[str, str]) -> Query:
        """Return the query with the words in `instead` replaced."""
        words = dict.fromkeys(instead.get(word, word) for word in self.words)
        text = self.text
        if text is not None:
            text = WORD.sub(lambda word: instead.get(word[0].lower(), word[0]), unicodedata.normalize("NFC", text))
        units = (unit.respelled(instead) for unit in self.units)
        inflected = tuple(dict.fromkeys(instead.get(word, word) for word in self.inflected))
        return replace(self, text=text, words=tuple(words), plain=(), units=tuple(units), inflected=inflected)

    @property
    def telling(self) -> tuple[DistinctiveWords, ...]:
        """The words that carry meaning; in a script without spaces, an unbroken run is one word."""
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
        """The query without required phrases; exclusions still apply."""
        return replace(self, where=replace(self.where, holding=()))


def conditions(words: Iterable[str], kind: str) -> tuple[str, ...]:
    """Return the phrases, each once. Raises `Invalid` if they are more than `MAX_CONDITIONS`."""
    once = tuple(dict.fromkeys(words))
    if len(once) > MAX_CONDITIONS:
        raise Invalid(f"query: at most {MAX_CONDITIONS} {kind} are allowed; this query has {len(once)}.")
    total = sum(word_count(phrase) for phrase in once)
    if total > MAX_QUOTED_WORDS:
        raise Invalid(f"query: {kind} may have at most {MAX_QUOTED_WORDS} words in total; this query has {total}.")
    return once


def shortened(phrase: str) -> str:
    """Return the first words of a phrase, at most `MAX_PHRASE_WORDS`."""
    if len(phrase) <= MAX_PHRASE_WORDS:
        return phrase
    kept, left = list[str](), MAX_PHRASE_WORDS
    for word in phrase.split():
        left -= max(1, word_count(word))
        if left < 0:
            break
        kept.append(word)
    return " ".join(kept) or phrase[:MAX_PHRASE_WORDS]


def word_count(phrase: str) -> int:
    """Return the number of words that a search for a phrase looks up."""
    return sum(len(parts(word)) for word in tokenize(phrase))


def sought_words(text: str, begun: Iterable[str], phrases: Iterable[str]) -> list[str]:
    """Return the words of a text for the full-text leg, with its prefixes and phrases."""
    telling = compatible(apart(without_grouped_numbers(without_parted_isbns(text))))
    telling_words = keywords(telling) if tokenize(telling) else []
    words = list(dict.fromkeys([*begun, *with_spellings(telling_words), *emojis(text), *phrases, *compounds(text)]))
    return words or contractions(text) or keywords(text)


def keywords(text: str) -> list[str]:
    """Return the words to search for, each once; stop words only if the text has no other words.

    A letter of a script without spaces becomes a prefix.
    """
    unique = list(dict.fromkeys(part for word in tokenize(text) for part in parts(word)))
    words = [word for word in unique if word not in STOP_WORDS] or unique
    begun = dict.fromkeys(islice(filter(is_letter, words), MAX_TERMS))  # each may begin the intended word
    return [f"{word}*" if word in begun else word for word in words if word in begun or not is_letter(word)]


def plain_words(written: Iterable[str]) -> list[str]:
    """Return the words, each once, that consist of letters and have no capital after the first letter.

    The others are names, numbers, or in scripts without spaces between words.
    """
    whole = (bare(word) for word in written if not PREFIX.fullmatch(word))
    words = (word.lower() for word in whole if WORD.fullmatch(word) and word[1:].islower())
    return [word for word in dict.fromkeys(words) if is_plain(word)]


def is_plain(word: str) -> bool:
    """Whether a word is short enough for the spelling index and carries meaning."""
    return len(word) <= LONGEST and word not in FUNCTION_WORDS and not has_run(word)


def beginnings(text: str) -> list[str]:
    """Return the prefixes of the query, each with its star."""
    return [f"{beginning.lower()}*" for beginning in PREFIX.findall(text) if tokenize(beginning)]


def with_spellings(words: Iterable[str]) -> list[str]:
    """Return the words, each followed by its other spellings."""
    return list(dict.fromkeys(spelling for word in words for spelling in (word, *spellings(word))))


def compounds(text: str) -> list[str]:
    """Return words with several parts, such as file names, versions, numbers and addresses; the parts must be adjacent.

    Of words joined only by a hyphen, only the form without it is in the list, because other texts write them as two
    words. The list also contains the other spellings of ISBNs and numbers, and the words of a name such as getUserById.
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
    compound_words += [form for word in typed if not word.isalpha() for form in unsigned(bare(word))]
    compound_words += [form for _, form in joined_forms(text)]
    return compound_words + [other for word in written for other in other_spellings(bare(word))]


def unsigned(word: str) -> list[str]:
    """Return the forms of a word without its punctuation, and with or without spaces between letters and digits."""
    return [*measures.apart(word), *measures.in_other_signs(word)] if HAS_DIGIT.search(word) else unhyphenated(word)


def unhyphenated(word: str) -> list[str]:
    """Return a word without its sign if a part is short, as in *e-mail*; long parts are searched for alone."""
    whole = joined_word(word)
    return [whole] if whole and min(map(len, tokenize(word)), default=0) <= SHORT_PART else []


def contractions(text: str) -> list[str]:
    """Return contractions such as don't, which a search uses only if the query has no other words."""
    return [word for word in apostrophized(text) if is_contraction(word)]


def apostrophized(text: str) -> list[str]:
    """Return the words with an apostrophe."""
    return [word[0].lower() for word in WITH_APOSTROPHE.finditer(text)]


def grouped_numbers(text: str) -> list[re.Match[str]]:
    """Return the numbers in a text that have several spellings."""
    return [
        match for match in numbers.NUMBER.finditer(text) if len(number_forms(match)) > 1 or numbers.is_grouped(match)
    ]


def number_forms(match: re.Match[str]) -> list[str]:
    """Return the spellings of a typed number."""
    number = numbers.parse_number(match)
    if numbers.is_year(number) and not numbers.is_grouped(match):
        return [number.whole]
    return numbers.spellings(number)


def without_grouped_numbers(text: str) -> str:
    """Return a text without the numbers whose parts carry no meaning, such as the 1 of 1,872.00."""
    return numbers.NUMBER.sub(lambda match: " " if numbers.is_grouped(match) else match[0], text)


def bare(word: str) -> str:
    """Return a word without the marks around it; a dot that begins a name is part of the name."""
    word = word.rstrip(MARKS_AROUND)
    begun = word.lstrip(MARKS_BEFORE_DOT)
    return begun if NAMED_BY_DOT.match(begun) else word.lstrip(MARKS_AROUND)


def units(text: str, phrases: Iterable[str]) -> list[Unit]:
    """Return the typed units, each once: the phrases in quotes, and the words that carry meaning."""
    by_text = {phrase: Unit(phrase, (phrase,), is_literal=True) for phrase in phrases}
    quoted = set(map(bare, by_text))
    parted = [number[0] for number in numbers.NUMBER.finditer(text) if len(number[0].split()) > 1]
    parted += long_numbers.in_text(text) if HAS_DIGIT.search(text) else ()
    for word in dict.fromkeys([*map(bare, text.split()), *parted]):
        if word not in quoted and (unit := make_unit(word)):
            by_text[word] = unit
    for words, form in joined_forms(text):
        by_text |= {word: by_text[word].with_form(form) for word in words if word in by_text}
    return list(by_text.values())


def joined_forms(text: str) -> Iterator[tuple[Sequence[str], str]]:
    """Yield typed words that may be one word, with its form."""
    if not HAS_DIGIT.search(text):
        return
    typed = [bare(word) for word in text.split()]
    for places, form in measures.joined(typed):
        yield typed[places.start : places.stop], form
    for written, forms in long_numbers.in_text(text).items():
        yield from ((written.split(), form) for form in forms)


def make_unit(word: str) -> Unit | None:
    """Return the unit of a typed word; None if the word carries no meaning."""
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
    if not word.isalpha():
        others += [*filter(None, [joined_word(word)]), *unsigned(word), *long_numbers.other_forms(word)]
    is_literal = is_joined or is_signed or lower != folded(lower) or TWIN.search(word) is not None
    return Unit(word, tuple(dict.fromkeys([*forms, *others])), is_literal=is_literal)


def without_parted_isbns(text: str) -> str:
    """Return the text without hyphenated ISBNs, because their parts, such as 978, carry no meaning."""
    return " ".join(word for word in text.split() if len(tokenize(word)) == 1 or not _is_isbn(word))


def tokenize(text: str) -> list[str]:
    """Return the lower-cased words of a text: letters and digits with their marks.

    The full-text index treats marks in its own way: it drops some and splits words at others.
    """
    if text.isascii():  # most are, and this is many times faster
        return ASCII_WORD.findall(text.lower())
    characters = unicodedata.normalize("NFC", text).lower()
    return "".join(character if is_word_character(character) else " " for character in characters).split()


def is_word_character(character: str) -> bool:
    """Whether a character is a letter, a digit or a mark on one."""
    return character.isalnum() or unicodedata.category(character).startswith("M")


def _is_isbn(word: str) -> bool:
    return bool(other_spellings(bare(word).lower()))
