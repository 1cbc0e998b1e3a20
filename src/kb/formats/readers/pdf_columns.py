"""Columns and facing pages of a PDF that are drawn row by row, read one after the other.

PDFium returns text in the order of drawing, and joins texts at one height. Columns and tables differ in their geometry:
text that runs on fills its lines, so that the first word of a line had no room on the line before.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from statistics import median
from typing import Final
from unicodedata import bidirectional, east_asian_width

from kb.formats.readers.pdf_box import TextBox
from kb.formats.text.hyphens import BREAK

BoxOf = Callable[[int], TextBox | None]
"""Returns the box of the character at a position; None if it has none, or is rotated."""

_TEXT_LINE: Final = re.compile(r"[^\r\n]+")
_SAMPLE, _BESIDE, _LONG = 8, 4, 8
"""The most lines to examine first, how many of them there may be per line with two texts, and their least length."""

_WORD: Final = re.compile(rf"[^\s{BREAK}]+{BREAK}?")
_DIGIT: Final = re.compile(r"\d")
_FEWEST_ROWS: Final = 4
_MOST_COLUMNS: Final = 16
_GAP: Final = 0.9
"""The least width of a gap between columns, in heights of a line; justified lines have narrower ones between words."""

_LETTERS, _DIGITS = 0.7, 0.15
"""The least share of letters in running text, and the most of digits."""

_LINE: Final = 12
"""The least number of letters in half of the lines of a column."""

_FULL: Final = 0.6
"""The least share of lines without room for the first word of the next line."""

_GOES_ON: Final = 0.3
"""The least share of lines that go on with a small letter, or with one of a script without capitals."""

_WIDE_GAPS: Final = 0.3
"""The maximum share of lines with a wide gap inside; most lines of a table have one."""

_CLOSE, _STEP = 0.75, 1.4
"""The least share of lines of a text that are at the usual distance from the next one, times a tolerance."""

_FAR: Final = 3

_SIGNS: Final = 1.5
"""The width of a word in heights of a line, in scripts without spaces."""

_SPACE: Final = 0.2
_SENTENCE_END: Final = tuple(".!?…:。\uff01\uff1f")
_HYPHENS: Final = f"-\u2010{BREAK}"
_CLOSED: Final = "\"'”’)]»"


@dataclass(slots=True)
class Run:
    """Words on a line without a wide gap: `text[start:end]`, their box, and the width of the first word."""

    start: int
    end: int
    box: TextBox
    first: float


def may_have_columns(text: str, box_of: BoxOf) -> bool:
    """Return whether enough of some lines of a page have two long texts side by side: boxes of all words cost much."""
    lines = list(_TEXT_LINE.finditer(text))
    if len(lines) < _FEWEST_ROWS or len(_DIGIT.findall(text)) >= _DIGITS * len(text):
        return False
    sample = lines[:: -(-len(lines) // _SAMPLE)]
    beside = sum(_has_two(_runs(text, box_of, *line.span())) for line in sample if len(line[0]) > 2 * _LONG)
    return _BESIDE * beside >= len(sample)


def _has_two(runs: Iterator[Run]) -> bool:
    long = (run for run in runs if run.end - run.start >= _LONG)
    return next(islice(long, 1, None), None) is not None


def in_columns(text: str, box_of: BoxOf) -> list[range]:
    """Return the parts of a page's text, as PDFium returns it, in reading order; one if the order stays the same."""
    runs = list(_runs(text, box_of))
    ordered = list(_ordered(runs, text))
    if ordered == runs:
        return [range(len(text))]
    order = {id(run): place for place, run in enumerate(runs)}
    parts = list[range]()
    for run in ordered:
        place = order[id(run)]
        is_next = parts and place and parts[-1].stop == runs[place - 1].end and runs[place - 1].end <= run.start
        start = parts.pop().start if is_next else run.start
        parts.append(range(start, run.end))
    return parts


def _runs(text: str, box_of: BoxOf, start: int = 0, end: int = sys.maxsize) -> Iterator[Run]:
    run: Run | None = None
    for word in _WORD.finditer(text, start, end):
        first, last = box_of(word.start()), box_of(word.end() - 1 - word[0].endswith(BREAK))
        box = first.around(last) if first and last else first or last
        if run and (box is None or _goes_on(run, word, box, text)):
            run.end = word.end()
            run.box = run.box.around(box) if box else run.box
        elif box:
            if run:
                yield run
            run = Run(word.start(), word.end(), box, box.right - box.left)
    if run:
        yield run


def _goes_on(run: Run, word: re.Match[str], box: TextBox, text: str) -> bool:
    """Return whether a word continues a run, on either side of it."""
    if text[run.end - 1] == BREAK or text.find("\n", run.end, word.start()) >= 0 or not run.box.shares_line(box):
        return False
    gap = max(box.left - run.box.right, run.box.left - box.right)
    return gap <= 0 or gap <= _GAP * min(run.box.height, box.height)


def _ordered(runs: Sequence[Run], text: str) -> Iterator[Run]:
    gutter = _gutter(runs)
    if gutter is None:
        yield from runs
        return
    for is_across, stretch in groupby(runs, lambda run: _crosses(run, gutter)):
        part = list(stretch)
        yield from part if is_across else _by_columns(part, text)


def _by_columns(runs: list[Run], text: str) -> list[Run]:
    columns = _columns(runs)
    if len(columns) < 2 or not all(_is_running(column, text) for column in columns):
        return runs
    if _is_right_to_left(text[runs[0].start : runs[-1].end]):
        columns.reverse()
    return [run for column in columns for run in column]


def _columns(runs: list[Run], most: int = _MOST_COLUMNS) -> list[list[Run]]:
    """Return runs, which are drawn row by row, by their columns from left to right."""
    gutter = _gutter(runs) if most > 1 else None
    if gutter is None or any(_crosses(run, gutter) for run in runs):
        return [runs]
    left, right = ([run for run in runs if (run.box.right > gutter) is is_right] for is_right in (False, True))
    return [*_columns(left, most // 2), *_columns(right, most // 2)]


def _crosses(run: Run, gutter: float) -> bool:
    return run.box.left < gutter < run.box.right


def _gutter(runs: Sequence[Run]) -> float | None:
    """Return the middle of the gap that most neighbours in a row have in common."""
    edges = list[tuple[float, int]]()
    for one, other in pairwise(runs):
        if gap := _gap(one.box, other.box):
            edges += [(gap[0], 1), (gap[1], -1)]
    edges.sort()
    most = depth = 0
    begin = end = 0.0
    for index, (place, step) in enumerate(edges):
        depth += step
        if depth > most:
            most, begin, end = depth, place, edges[index + 1][0]
    return (begin + end) / 2 if most >= _FEWEST_ROWS else None


def _gap(one: TextBox, other: TextBox) -> tuple[float, float] | None:
    """Return the wide gap between two texts on a line; or None."""
    left, right = (one, other) if one.left <= other.left else (other, one)
    gap = right.left - left.right
    is_wide = gap > 0 and gap > _GAP * min(one.height, other.height)
    return (left.right, right.left) if is_wide and one.shares_line(other) else None


def _is_running(column: Sequence[Run], text: str) -> bool:
    """Return whether the lines of a column are one text, and not the cells of a table."""
    lines = _body(list(_lines(column)))
    words = [text[line[0].start : line[-1].end].strip() for line in lines]
    signs = "".join("".join(words).split())
    if len(lines) < _FEWEST_ROWS or median(map(len, words)) < _LINE or not signs:
        return False
    if sum(map(str.isalpha, signs)) < _LETTERS * len(signs) or sum(map(str.isdigit, signs)) > _DIGITS * len(signs):
        return False
    if sum(len(line) > 1 for line in lines) > _WIDE_GAPS * len(lines) or not _are_close(lines):
        return False
    full = sum(_are_full(lines, text))
    goes_on = sum(_is_continued(above, below) for above, below in pairwise(words))
    pairs = len(lines) - 1
    return full >= _FULL * pairs and goes_on >= _GOES_ON * pairs


def _body(lines: list[list[Run]]) -> list[list[Run]]:
    """Return the lines of a column without a heading and a page number far above and below."""
    steps = _steps(lines)
    far = _FAR * median(steps or [0.0])
    start, end = (1 if steps and steps[at] > far else 0 for at in (0, -1))
    return lines[start : len(lines) - end]


def _steps(lines: Sequence[list[Run]]) -> list[float]:
    return [abs(above[0].box.top - below[0].box.top) for above, below in pairwise(lines)]


def _are_close(lines: Sequence[list[Run]]) -> bool:
    """Return whether most lines follow each other at one distance; lines of short cells do not."""
    steps = _steps(lines)
    return sum(step <= _STEP * median(steps) for step in steps) >= _CLOSE * len(steps)


def _are_full(lines: Sequence[list[Run]], text: str) -> Iterator[bool]:
    """Yield for each line but the last whether the first word of the next line has no room on it."""
    is_leftward = _is_right_to_left(text[lines[0][0].start : lines[-1][-1].end])
    ends = [max(-run.box.left if is_leftward else run.box.right for run in line) for line in lines]
    edge = sorted(ends)[3 * len(ends) // 4]
    for end, (above, below) in zip(ends, pairwise(lines), strict=False):
        height = above[0].box.height
        is_ideograph = east_asian_width(text[below[0].start]) == "W"
        first = min(below[0].first, _SIGNS * height) if is_ideograph else below[0].first
        is_broken = text[above[-1].end - 1] in _HYPHENS
        yield is_broken or end + _SPACE * height + first > edge


def _lines(column: Sequence[Run]) -> Iterator[list[Run]]:
    line = list[Run]()
    for run in column:
        if line and not line[-1].box.shares_line(run.box):
            yield line
            line = []
        line.append(run)
    if line:
        yield line


def _is_continued(above: str, below: str) -> bool:
    first = below[0]
    is_small = first.isalpha() and not first.isupper()
    return is_small and not _ends_sentence(above)


def _ends_sentence(text: str) -> bool:
    return text.rstrip(_CLOSED).endswith(_SENTENCE_END)


def _is_right_to_left(text: str) -> bool:
    letters = [bidirectional(letter) for letter in text if letter.isalpha()]
    return 2 * sum(kind in {"R", "AL"} for kind in letters) > len(letters)
