"""Texts as indexed: FTS5's tokenizer splits at marks and treats an unbroken run of letters as one word.

Letters are composed, because macOS decomposes file names. Marks that do not distinguish words are removed, as FTS5
itself does for Latin. Marks that do, such as the vowel signs of Devanagari, become private characters. Scripts without
spaces are indexed as overlapping pairs of letters, plus the last letter on its own, so that each letter begins a token.
Korean uses spaces, but its particles would hide words in the same way.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from operator import add
from typing import Final

from kb.api.stream_safe import composed
from kb.index.words.stems import stems_in
from kb.index.words.unicode_forms import DIGITS, LANGUAGES, SOFT_HYPHEN, SUPERSCRIPTS, VOICED, compatible, has_names
from kb.index.words.word_variants import variants

LETTERS: Final = (
    "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46"  # Thai
    "\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf"  # Lao
    "\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e"  # Burmese
    "\u1780-\u17b3\u17d7\u17dc"  # Khmer
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff\uff66-\uff9f"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Chinese and Japanese
    "\uac00-\ud7a3"  # Korean
)
MARKED: Final = (*range(0x0E00, 0x0F00), *range(0x1000, 0x10A0), *range(0x1780, 0x1800))
"""The scripts whose letters have marks."""

MARKS: Final = "".join(chr(code) for code in MARKED if unicodedata.category(chr(code)).startswith("M"))
UNSEEN: Final = "\u200b-\u200d\u2060"
"""They allow line breaks and are not part of the text."""

PRIVATE: Final = {ord(mark): ord(mark) + 0xE000 for mark in MARKS} | dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060))

POINTS: Final = (0x0640, *range(0x0332, 0x0370), *range(0x0483, 0x0488), *range(0x0591, 0x0780), *range(0x07EB, 0x0800))
"""Marks above, below or within words in Greek, Cyrillic, Hebrew, Arabic and related scripts, seldom typed."""

VOWEL_SIGNS: Final = (*range(0x0780, 0x07C0), *range(0x0900, 0x0E00), *range(0x0F00, 0x1000))
"""Thaana, the scripts of India, and Tibetan: without their marks, words change."""

ACCENTED: Final = (*range(0x0370, 0x0400), *range(0x1F00, 0x2000), *map(ord, "ЀЁЍѐёѝآأؤإئٱۀۂۓ"))
"""Letters that are equal without their marks: the Greek ones and a few more. The letters й and ї are not among them."""

TATWEEL, FINAL_SIGMA, SIGMA = 0x0640, 0x03C2, 0x03C3

TWINS: Final = str.maketrans(
    "\u06a9\u06aa\u0649\u06cc\u06cd\u0629\u06c0\u06c1\u06c2\u06c3", "\u0643" * 2 + "\u064a" * 3 + "\u0647" * 5
)
"""Letters of Arabic, Persian and Urdu keyboards that are one letter to most people: a kaf, a yeh and a heh."""

TWIN: Final = re.compile(f"[{''.join(chr(code) for pair in TWINS.items() for code in pair)}]")
"""Such a letter, of either keyboard."""

KANA: Final = {code: code - 0x60 for code in (*range(0x30A1, 0x30F7), 0x30FD, 0x30FE)}
"""Katakana, with the hiragana of the same sound: ラーメン is also written らーめん."""

UPTURNS: Final = str.maketrans("ґҐ", "гГ")
"""A Ukrainian letter that many keyboards lack."""

UNSEEN_WITHIN: Final = (0x200B, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF)
"""Breaks, joins and directions that nobody sees within a word."""

NUKTAS: Final = (0x093C, 0x0A3C, 0x0ABC, 0x0B3C)
"""The dot below letters of Devanagari, Gurmukhi, Gujarati and Odia, which people often leave out; in Bengali, it makes
other letters."""


def _is_mark(code: int) -> bool:
    return unicodedata.category(chr(code)).startswith("M")


def _base(code: int) -> int:
    return ord(unicodedata.normalize("NFD", chr(code))[0])


FOLDED: Final[dict[int, int | None]] = {
    FINAL_SIGMA: SIGMA,
    **{code: _base(code) for code in ACCENTED if chr(code).isalpha() and _base(code) != code},
    **{code: code + 0xE000 for code in VOWEL_SIGNS if _is_mark(code)},
    **dict.fromkeys((*NUKTAS, *UNSEEN_WITHIN)),
    **TWINS,
    **KANA,
    **UPTURNS,
    **DIGITS,
    **{code: None for code in POINTS if _is_mark(code) or code == TATWEEL},
}
FOLDABLE: Final = re.compile(f"[{''.join(chr(code) for code in FOLDED if code < 0x10000)}\U000104a0-\U0001e95f]")
"""The range has the other digits and some letters: a pattern would test many single ones in turn."""

LETTER_MARKS: Final = "".join(chr(code) for code in range(0x0300, 0x3100) if _is_mark(code) or 0x1160 <= code < 0x1200)
LETTER_WITH_MARKS: Final = re.compile(
    f"{LANGUAGES.pattern}|.[{LETTER_MARKS}{SOFT_HYPHEN}{SUPERSCRIPTS}{VOICED}]*", re.DOTALL | re.IGNORECASE
)
"""A letter with everything that may compose with it; in Korean, a syllable."""

LETTER: Final = re.compile(f"[{LETTERS}]")
WITH_MARKS: Final = re.compile(f"[{LETTERS}][{MARKS}{UNSEEN}]*")
RUN: Final = re.compile(f"[{LETTERS}][{LETTERS}{MARKS}{UNSEEN}]*")
SIGNS: Final = re.compile(r"\W*")
"""Signs after a run that do not begin another word."""


def folded(text: str) -> str:
    """Return a text with each letter in its indexed form."""
    if text.isascii():
        return compatible(text) if has_names(text) else text
    written = composed(compatible(text))
    return written.translate(FOLDED) if FOLDABLE.search(written) else written


def aligned(text: str) -> tuple[str, Sequence[int]]:
    """Return a folded text, and the original position of each of its characters, followed by the original's length."""
    if folded(text) == text:
        return text, range(len(text) + 1)
    letters, starts = list[str](), list[int]()
    for letter in LETTER_WITH_MARKS.finditer(text):
        letters.append(folded(letter[0]))
        is_as_long = len(letters[-1]) == len(letter[0])
        starts += range(letter.start(), letter.end()) if is_as_long else [letter.start()] * len(letters[-1])
    return "".join(letters), [*starts, len(text)]


def has_run(text: str) -> bool:
    """Whether a text contains one of these scripts."""
    return not text.isascii() and LETTER.search(text) is not None


def segmented(text: str) -> str | None:
    """Return a text as indexed; None if it does not change."""
    written = folded(text)
    if has_run(written):
        return RUN.sub(lambda run: f" {' '.join(_tokens(run[0]))} ".translate(PRIVATE), written)
    return written if written != text else None


def varied(text: str, language: str | None = None) -> str | None:
    """Return the words to index after a text: other forms of its words, and their stems; None without such words."""
    written = folded(text)
    if language is None:
        return variants(written)
    stems = dict.fromkeys(stem.text for stem in stems_in(written, language))
    return " ".join(filter(None, (variants(written), *stems))) or None


def as_phrase(text: str, *, begins: bool = False) -> str:
    """Return the indexed form of a text as a phrase.

    With `begins`, a final letter gets a star: a token begins with it.
    """
    # A pattern for the last run would try every end of every run, which takes minutes in a text of many letters.
    written = folded(text)
    runs = [*RUN.finditer(written)] if has_run(written) else []
    if not runs or not SIGNS.fullmatch(written, runs[-1].end()):
        return segmented(text) or text
    before, tokens = written[: runs[-1].start()], _tokens(runs[-1][0])
    last = " ".join(tokens[:-1]) or (f"{tokens[0]}*" if begins else tokens[0])
    return f"{segmented(before) or before} {last.translate(PRIVATE)}".lstrip()


def parts(word: str) -> list[str]:
    """Return the words to search for instead of a word: its pairs of letters, and its parts in other scripts."""
    if not has_run(word):
        return [word]
    rows, end = list[str](), 0
    for run in RUN.finditer(word):
        tokens = _tokens(run[0])
        rows += [word[end : run.start()], *(tokens[:-1] or tokens)]
        end = run.end()
    return [part for part in (*rows, word[end:]) if part]


def is_letter(word: str) -> bool:
    """Whether a word is a single letter, which may be only the beginning of the intended word."""
    return WITH_MARKS.fullmatch(word) is not None


def places(run: str) -> Iterator[tuple[int, int, str]]:
    """Yield the tokens of a run of letters, each with its start and end."""
    starts = [letter.start() for letter in WITH_MARKS.finditer(run)]
    ends = [*starts[2:], len(run), len(run)]
    for start, end, token in zip(starts, ends, _tokens(run), strict=False):  # a single letter has one end too many
        yield start, end, token.translate(PRIVATE)


def _tokens(run: str) -> list[str]:
    letters: list[str] = WITH_MARKS.findall(run)
    return [*map(add, letters, letters[1:]), letters[-1]]
