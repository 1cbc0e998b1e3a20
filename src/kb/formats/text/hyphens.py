"""Words broken at a line end, joined again with or without their hyphen."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

BREAK: Final = "\ufffe"  # PDFium's character for a hyphen at the end of a line

_LONGEST_WORD: Final = 64
_WORD_START: Final = re.compile(rf"\w{{0,{_LONGEST_WORD}}}")
_WORD_END: Final = re.compile(rf"\w{{0,{_LONGEST_WORD}}}\Z")
_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
# Second halves that nearly always follow a hyphen, and first halves that nearly always precede one.
_COMPOUND_ENDS: Final = frozenset(
    {
        *("aware", "based", "centric", "controlled", "dependent", "derived", "driven", "enabled", "free", "friendly"),
        *("generated", "independent", "induced", "like", "mediated", "only", "oriented", "powered", "related", "sized"),
        *("specific", "term", "wide"),
    }
)
_COMPOUND_STARTS: Final = frozenset({"self", "non"})
# Small words within compounds of several words, such as mother-in-law, state-of-the-art and tête-à-tête.
_WITHIN: Final = frozenset(
    {
        *("a", "all", "an", "and", "as", "at", "be", "by", "do", "for", "from", "go", "if", "in", "is", "it", "me"),
        *("my", "no", "not", "of", "off", "on", "or", "out", "per", "so", "the", "to", "up", "us", "with", "you"),
        *("à", "au", "aux", "de", "des", "du", "en", "la", "le", "les", "lès", "sous", "sur", "am", "an", "im", "und"),
    }
)
_PREFIXES: Final = frozenset({"inter", "over", "under"})  # longer than a syllable, but not words before a hyphen


class KnownWords(NamedTuple):
    """The unbroken words of a document with their counts, and the last parts of its hyphenated compounds."""

    words: Counter[str]
    ends: frozenset[str]


def collect_words(pages: list[str]) -> KnownWords:
    words = Counter(word for page in pages for word in _WORD.findall(_without_broken_words(page.lower())))
    ends = {word.rpartition("-")[2] for word in words if "-" in word}
    return KnownWords(words, _COMPOUND_ENDS.union(end for end in ends if len(end) > 3))


def _without_broken_words(page: str) -> str:
    first, *rest = page.split(BREAK)
    pieces = [first]
    for part in rest:
        pieces[-1] = pieces[-1].removesuffix(_last_word(pieces[-1]))
        pieces.append(part.removeprefix(_first_word(part)))
    return " ".join(pieces)


def join_words(page: str, vocabulary: KnownWords) -> str:
    first, *rest = page.split(BREAK)
    joined = [first]
    for part in rest:
        left, right = _last_word(joined[-1]), _first_word(part)
        is_hyphenated = _is_in_chain(joined[-1], part, left, right) or _keeps_hyphen(left, right, vocabulary)
        joined.append(f"-{part}" if is_hyphenated else part)
    return f"{''.join(joined)}\n\n" if page else ""


def _first_word(text: str) -> str:
    match = _WORD_START.match(text)
    return match[0] if match else ""


def _last_word(text: str) -> str:
    match = _WORD_END.search(text[-_LONGEST_WORD:])
    return match[0] if match else ""


def _is_in_chain(before: str, after: str, left: str, right: str) -> bool:
    """Return whether the hyphen is in a compound of more than two words, next to a small word between hyphens."""
    is_left = left.lower() in _WITHIN and before.removesuffix(left).endswith("-")
    is_right = right.lower() in _WITHIN and after.removeprefix(right).startswith("-")
    return (is_left or is_right) and right.islower()


def _keeps_hyphen(left: str, right: str, vocabulary: KnownWords) -> bool:
    """Return whether a word broken at a line end keeps its hyphen, judging by the document's other words."""
    words, whole, compound = vocabulary.words, (left + right).lower(), f"{left}-{right}".lower()
    if words[whole] or words[compound]:
        return words[compound] > words[whole]
    is_capital = left.isupper() and right.isupper()
    if not is_capital and not (left.isalpha() and left[1:].islower() and right.islower() and len(right) > 1):
        return True
    return _is_compound(left.lower(), right.lower(), vocabulary)


def _is_compound(left: str, right: str, vocabulary: KnownWords) -> bool:
    """Return whether two halves look like separate words, not like syllables of one."""
    is_left, is_right = left in vocabulary.words, right in vocabulary.words
    if left in _COMPOUND_STARTS and len(right) > 3:
        return True
    if right in vocabulary.ends and (is_left or len(left) > 3) and left not in _PREFIXES:
        return True
    return is_left and ((is_right and len(left) > 2 and len(right) > 3) or (len(left) > 3 and len(right) > 4))
