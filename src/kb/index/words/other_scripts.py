"""Names in other scripts by their Latin letters: *Tanaka* is 田中, *Beijing* 北京, *Moskva* Москва.

A word is spelled in the scripts of the database's languages, in every way that is transliterated like it. The caller
keeps the spellings that occur. Scripts that leave out vowels, such as Arabic and Hebrew, are not among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice, pairwise, product
from typing import Final, NamedTuple

from kb.index.words.stems import stemmed

Known = Callable[[Sequence[str]], Collection[str]]
"""Returns the tokens, among some, that occur in the database."""

LATIN: Final = re.compile("[A-Za-zĀŌŪĒĪāōūēī]{4,24}")
SHORTEST_COMMON: Final = 5
"""The minimum number of letters of a name in lower case: shorter ones are too often English words."""

MOST, MOST_STEMMED = 1000, 30
"""The maximum number of spellings that are compared with the words of the database, and of those with their stems."""


class Script(NamedTuple):
    """The letters of a script, as ranges of code points, and whether each is a syllable."""

    ranges: tuple[range, ...]
    is_syllabic: bool = False


_RUSSIAN: Final = range(0x0430, 0x0450)
_SERBIAN: Final = (range(0x0430, 0x0439), range(0x043A, 0x0449), range(0x0452, 0x0460))
BY_LANGUAGE: Final = {
    "bg": Script((_RUSSIAN,)),
    "ru": Script((_RUSSIAN,)),
    "be": Script((range(0x0430, 0x0438), range(0x0439, 0x0450), range(0x0456, 0x0457), range(0x045E, 0x045F))),
    "uk": Script(
        (
            range(0x0430, 0x044B),
            range(0x044C, 0x044D),
            range(0x044E, 0x0450),
            range(0x0454, 0x0458),
            range(0x0491, 0x0492),
        )
    ),
    "sr": Script(_SERBIAN),
    "mk": Script(_SERBIAN),
    "el": Script((range(0x03B1, 0x03CA),)),
    "hy": Script((range(0x0561, 0x0588),)),
    "ka": Script((range(0x10D0, 0x10F1),)),
    "zh": Script((range(0x4E00, 0xA000),), is_syllabic=True),
    "ko": Script((range(0xAC00, 0xD7A4),), is_syllabic=True),
}
LANGUAGES: Final = frozenset((*BY_LANGUAGE, "ja"))
BLOCK: Final = 0x100
"""The size of the blocks of letters by which scripts are recognized."""

LAST_LATIN: Final = "\u024f\uffff"
FIRST_PAIR: Final = "\u3000"
"""Scripts from here on are indexed in pairs of letters, which may be in different blocks."""

_HAN: Final = dict.fromkeys(range(0x4E, 0xA0), ("zh", "ja"))
_OF_BLOCK: Final = {3: ("el",), 4: ("ru", "uk"), 5: ("hy",), 0x10: ("ka",), 0x30: ("ja",), **_HAN} | dict.fromkeys(
    range(0xAC, 0xD8), ("ko",)
)
KANA: Final = Script((range(0x3041, 0x3097),))

_USUAL: Final = (
    *((r"tch", "ch"), (r"ck", "k"), (r"x", "ks"), (r"ph", "f"), (r"w", "v"), (r"(?<=[aeo])i", "y"), (r"ky$", "kiy")),
    *((r"i$", "iy"), (r"(?<=[aeiou])ye", "e")),
)
"""Other usual romanizations of letters."""

_SOFT: Final = re.compile("[бвдзлмнпрст]")
SOFT_SIGN: Final = "ь"
"""It has no Latin letter in most romanizations."""

_LONG: Final = str.maketrans({"ā": "aa", "ī": "ii", "ū": "uu", "ē": "ei", "ō": "ou"})
_SHORT: Final = (
    (r"ou|oo|oh(?![aeiou])", "o"),
    (r"uu", "u"),
    (r"ei|ee", "e"),
    (r"aa", "a"),
    (r"ii", "i"),
    (r"m(?=[bmp])", "n"),
)
"""Japanese long vowels and nasals, which people write in several ways, in a single form."""


def blocks_of(tokens: Iterable[str]) -> set[int]:
    """Return the blocks in which words begin: not single letters, and not words of letters of several scripts."""
    begun = {token[:3] for token in tokens if token > LAST_LATIN}
    return {ord(token[0]) // BLOCK for token in begun if token > FIRST_PAIR or _is_word(token)}


def _is_word(token: str) -> bool:
    return len({ord(letter) // BLOCK for letter in token}) == 1 and len(token) > 2


def languages_in(blocks: Collection[int]) -> set[str]:
    """Return languages whose letters are in these blocks, for texts of which nobody knows the language."""
    return {language for block in blocks for language in _OF_BLOCK.get(block, ())}


def spelled(word: str, languages: Collection[str], known: Known) -> list[str]:
    """Return the words of a database in these languages that are transliterated as a word."""
    if not LATIN.fullmatch(word):
        return []
    lower = word.lower()
    found = dict[str, None]()
    for language, script in BY_LANGUAGE.items():
        if language not in languages:
            continue
        if not script.is_syllabic:
            found |= dict.fromkeys(_in_letters(lower, language, known))
        elif word[0].isupper():
            found |= dict.fromkeys(each for rows in _syllables(lower, script) for each in _chained(rows, known))
    if "ja" in languages and (word[0].isupper() or len(word) >= SHORTEST_COMMON):
        found |= dict.fromkeys(name for name in _japanese(lower) if _is_known(name, known))
    return list(found)


def _in_letters(word: str, language: str, known: Known) -> list[str]:
    """Return the words of a language that are transliterated as a word, and their stems, as far as they occur."""
    for is_soft in (False, True):
        every = (
            each for form in _romanizations(word) for each in _written(form, BY_LANGUAGE[language], is_soft=is_soft)
        )
        written = list(islice(every, MOST))
        words = [form for each in written[:MOST_STEMMED] for form in stemmed([each], [language])] + written
        if found := list(known(words)):
            return found
    return []


def _romanizations(word: str) -> list[str]:
    """Return a word in plain letters, and with other usual romanizations replaced."""
    plain = word.translate(_LONG)
    other = plain
    for pattern, letters in _USUAL:
        other = re.sub(pattern, letters, other)
    return [plain] if other == plain else [plain, other]


def _written(word: str, script: Script, *, is_soft: bool = False) -> Iterator[str]:
    """Yield the words in a script that are transliterated as a word, with or without soft signs."""
    letters = _letters(script, is_soft=is_soft)
    longest = max(map(len, letters))
    begun = [("", 0)]
    while begun:
        text, place = begun.pop()
        if place == len(word):
            yield text
        begun += [
            (text + letter, end)
            for end in range(place + 1, min(place + longest, len(word)) + 1)
            for letter in letters.get(word[place:end], ())
        ]


def _syllables(word: str, script: Script) -> Iterator[list[list[str]]]:
    """Yield the possible signs of each syllable of a word, for each way to divide it into syllables."""
    letters = _letters(script)
    begun: list[tuple[list[list[str]], int]] = [([], 0)]
    while begun:
        rows, place = begun.pop()
        if place == len(word) and len(rows) > 1:
            yield rows
        ends = (end for end in range(place + 1, len(word) + 1) if word[place:end] in letters)
        begun += [([*rows, letters[word[place:end]]], end) for end in ends]


def _chained(rows: Sequence[Sequence[str]], known: Known) -> list[str]:
    """Return the runs of one sign of each row whose pairs are all known, because such scripts are indexed in pairs."""
    runs = list(rows[0])
    for before, row in pairwise(rows):
        pairs = known([one + other for one, other in product(before, row)])
        runs = [run + other for run in runs for other in row if run[-1] + other in pairs]
    return runs


def _is_known(name: str, known: Known) -> bool:
    pairs = [one + other for one, other in pairwise(name)]
    return bool(pairs) and set(pairs) <= set(known(pairs))


def _japanese(word: str) -> list[str]:
    """Return the spellings of a Japanese name: in kana, and in the characters that the list of names has."""
    kana = islice((each for form in _romanizations(word) for each in _written(form, KANA)), MOST)
    return [*_names().get(_short(word), ()), *dict.fromkeys(kana)]


def _short(name: str) -> str:
    for pattern, letters in _SHORT:
        name = re.sub(pattern, letters, name.translate(_LONG))
    return name


@cache
def _letters(script: Script, *, is_soft: bool = False) -> dict[str, list[str]]:
    """Return the letters of a script by their transliteration; if `is_soft`, also with a soft sign."""
    from anyascii import anyascii  # reads the tables of a script when first asked

    letters = dict[str, list[str]]()
    for code in (code for each in script.ranges for code in each):
        if latin := anyascii(chr(code)).lower():
            letters.setdefault(latin, []).append(chr(code))
            letters[latin] += [f"{chr(code)}{SOFT_SIGN}"] if is_soft and _SOFT.fullmatch(chr(code)) else []
    return letters


@cache
def _names() -> dict[str, list[str]]:
    """Return the spellings of family names and given names by their Latin letters."""
    from japanese_personal_name_dataset import load_dataset  # slow to read, and few databases need it

    *given, families = load_dataset(include_last_names=True)
    names = dict[str, list[str]]()
    for family, entry in families.items():
        names.setdefault(_short(entry["en"]), []).append(family)
    for entries in given:
        for name in entries.values():
            names.setdefault(_short(name["en"]), []).extend(each for each in name["kanji"] if len(each) > 1)
    return names
