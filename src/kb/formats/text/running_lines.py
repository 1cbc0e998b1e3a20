"""The lines above and below the text of each page: they are part of the document once, and of no sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import Final, NamedTuple
from unicodedata import east_asian_width

from kb.formats.text.encoding import one_line
from kb.formats.text.headers_footers import PAGE_NAMES, is_page_number
from kb.formats.text.hyphens import BREAK

MOST_LINES: Final = 4
"""The maximum number of lines of a header or a footer."""

_FEWEST_NUMBERED: Final = 3
"""The least number of pages on which a line with other words has a page number."""

_LONGEST_LINE: Final = 200
_FARTHEST: Final = 30
"""The largest difference between a page and its number in such a line."""

_DIVIDERS: Final = tuple("|·•—–/")
_ENDINGS: Final = f"\n{BREAK}"
_LINE: Final = re.compile(rf"[^{_ENDINGS}]*[{_ENDINGS}]|[^{_ENDINGS}]+\Z")
_NUMBER: Final = re.compile(r"(?<![\w.,-])\d{1,4}(?![\w,]|\.\d|-\w)|(?<=-)\d{1,4}(?=-)")
_SENTENCE: Final = re.compile(r"[.!?…][\"'”’)\]]*(?=\s+[^\sa-z])|[。\uff01\uff1f][」』]*")
_ENDS: Final = re.compile(r"[.!?…:;。\uff01\uff1f][\"'”’)\]」』]*\Z")
_HYPHENS: Final = f"-\u2010{BREAK}"
_LONGEST_REST: Final = 600
_FULL_LINE: Final = 0.7
_FEWEST_LINES: Final = 2
"""The least number of lines that show how long lines are."""
_LEAST_FULL, _LEAST_WIDE = 20, 10
"""The least length of most lines of a text, in characters, and in wide ones."""

_LEAST_LINE: Final = 16
"""The least length of a line that a sentence goes on from, in characters."""


class Sheet(NamedTuple):
    """The text of a page, and which of its lines are in the margins."""

    text: str
    margins: frozenset[str] = frozenset()


def without_running_lines(sheets: Sequence[Sheet]) -> tuple[list[str], list[str]]:
    """Return the texts of the pages without the headers and footers that repeat, and these, each once."""
    sheets = [sheet if _has_body(sheet) else Sheet(sheet.text) for sheet in sheets]
    counts = Counter(key for page, sheet in enumerate(sheets) for key in set(_edge_keys(page, sheet)))
    texts, found = list[str](), dict[str, None]()
    for page, sheet in enumerate(sheets):
        lines, repeats = _LINE.findall(sheet.text), partial(_repeats, page, sheet, counts)
        top = list(takewhile(repeats, lines))
        rest = lines[len(top) :]
        bottom = list(takewhile(repeats, reversed(rest)))
        found |= dict.fromkeys(_shown(page, line, counts) for line in (*top, *reversed(bottom)) if line.strip())
        text = "".join(rest[: len(rest) - len(bottom)]).strip("\n")
        texts.append(f"{text[:-1]}-" if text.endswith(BREAK) else text)
    return texts, [line for line in found if line]


def _has_body(sheet: Sheet) -> bool:
    return any(line.strip() and line.rstrip(_ENDINGS) not in sheet.margins for line in _LINE.findall(sheet.text))


def _edge_keys(page: int, sheet: Sheet) -> Iterator[str]:
    lines = [line.rstrip(_ENDINGS) for line in _LINE.findall(sheet.text) if line.strip()]
    for line in (*lines[:MOST_LINES], *lines[-MOST_LINES:]):
        if line in sheet.margins:
            yield from _keys(page, line)


def _keys(page: int, line: str) -> Iterator[str]:
    """Yield a line unchanged, and with each of its numbers as its distance from the number of the page."""
    line = one_line(line.rstrip(_ENDINGS))
    yield line
    for number in _NUMBER.finditer(line) if len(line) <= _LONGEST_LINE else ():
        yield f"{line[: number.start()]}\0{int(number[0]) - page - 1}\0{line[number.end() :]}"


def _key(page: int, line: str, counts: Counter[str]) -> str:
    """Return the form of a line that repeats; empty if none does."""
    for key in _keys(page, line):
        before, distance, after = key.split("\0") if "\0" in key else (key, "", "")
        is_number = bool(distance) and is_page_number(before + after)
        least = _FEWEST_NUMBERED if distance and not is_number else 2
        if counts[key] >= least and (not distance or is_number or _is_apart(before, int(distance), after)):
            return key
    return ""


def _is_apart(before: str, distance: int, after: str) -> bool:
    """Return whether a number in a line is a page number, and not the number of a figure or an invoice on each page."""
    words = re.split(r"\W+", before.rstrip(" .:"))
    is_named = words[-1].casefold() in PAGE_NAMES
    is_divided = (not after and before.rstrip()[-1:] in _DIVIDERS) or (not before and after.lstrip()[:1] in _DIVIDERS)
    return abs(distance) <= _FARTHEST and (is_named or is_divided)


def _repeats(page: int, sheet: Sheet, counts: Counter[str], line: str) -> bool:
    return not line.strip() or (line.rstrip(_ENDINGS) in sheet.margins and bool(_key(page, line, counts)))


def _shown(page: int, line: str, counts: Counter[str]) -> str:
    """Return a line without the number of its page; empty if that was all."""
    before, *others = _key(page, line, counts).split("\0")
    shown = one_line(before + others[-1]) if others else before
    return "" if is_page_number(shown) else shown


def with_whole_sentences(pages: Sequence[str]) -> list[str]:
    """Return the texts of pages, with the rest of a sentence that began on the page before moved to that page."""
    whole = list(pages)
    for place in range(1, len(whole)):
        before, after = whole[place - 1], whole[place]
        if before and after and _goes_on(before, after):
            end = _end_of_sentence(after)
            is_broken = before[-1] in _HYPHENS and before[-2:-1].isalpha() and after[0].islower()
            joint = before[:-1] + BREAK if is_broken else f"{before}\n"
            whole[place - 1] = joint + after[:end].rstrip()
            whole[place] = after[end:].lstrip()
    return whole


def _goes_on(before: str, after: str) -> bool:
    """Return whether a page begins within a sentence, by the small letter or else by the full lines around its edge."""
    last, first = before.rpartition("\n")[2].rstrip(), after.partition("\n")[0]
    if _ENDS.search(last) or not first[0].isalpha() or not any(map(str.isalpha, last)):
        return False
    if first[0].islower():
        return len(last) >= _LEAST_LINE
    lengths = sorted(len(line) for line in before.split("\n") if line.strip())
    usual = lengths[3 * len(lengths) // 4]
    is_prose = usual >= (_LEAST_WIDE if east_asian_width(first[0]) == "W" else _LEAST_FULL)
    is_open = len(lengths) >= _FEWEST_LINES and (last[-1].isalpha() or last[-1] in ",\u3001\uff0c")
    return is_prose and is_open and min(len(last), len(first)) >= _FULL_LINE * usual


def _end_of_sentence(text: str) -> int:
    paragraph = text.partition("\n\n")[0]
    sentence = _SENTENCE.search(paragraph, 0, _LONGEST_REST)
    if sentence:
        return sentence.end()
    return len(paragraph) if len(paragraph) <= _LONGEST_REST else text.index("\n") + 1 if "\n" in paragraph else 0
