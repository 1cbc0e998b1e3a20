"""A three-way merge of texts by lines, with the rules of diff3: changes that touch each other conflict.

Lines added to the end conflict neither with others there nor with a changed last line: a person and an agent may write
one diary.

The differences of two texts are found with the algorithm of E. Myers, "An O(ND) Difference Algorithm and Its
Variations" (1986): its time grows with the lines times the changes, so a limit of both is a limit of the time.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

MOST_LINES: Final = 20_000
MOST_CHANGES: Final = 1_000
"""Texts with more lines, or with more added and removed lines on one side, are not merged."""

MOST_STEPS: Final = 4_000_000
"""Texts that take more comparisons of lines, as texts that repeat their lines, are not merged."""


class Change(NamedTuple):
    """The lines from `start` to `end`, excluding `end`, are replaced by others."""

    start: int
    end: int
    lines: Sequence[str]


class TooManyChanges(Exception):
    """To find the changes would take too long."""


def merged(base: str, mine: str, theirs: str, checkpoint: Callable[[], None] = lambda: None) -> str | None:
    """Return a text with the changes of both sides; None if they conflict, or are too many.

    `checkpoint` is called regularly and may stop the work by raising an error.
    """
    if theirs in (base, mine):
        return mine
    if mine == base:
        return theirs
    if not base.endswith("\n") and any(text.startswith(f"{base}\n") for text in (mine, theirs)):
        mine, theirs = (text if text.startswith(f"{base}\n") else _ended(text) for text in (mine, theirs))
        base += "\n"
    lines = base.splitlines(keepends=True)
    sides = [text.splitlines(keepends=True) for text in (mine, theirs)]
    if max(map(len, [lines, *sides])) > MOST_LINES:
        return None
    try:
        first, second = ([*_changes(lines, side, checkpoint)] for side in sides)
    except TooManyChanges:
        return None
    changes = sorted({*first, *second})
    if changes[-2:] == sorted([*first[-1:], *second[-1:]]) and all(
        change.start == len(lines) for change in changes[-2:]
    ):
        changes[-2:] = [_joined(second[-1], first[-1])]
    if len(changes) > 1 and changes[-1].start == len(lines) and _repeats(*changes[-2:]):
        changes.pop()
    if any(
        later.start <= earlier.end and not (earlier.lines and earlier.start < later.start == len(lines))
        for earlier, later in pairwise(changes)
    ):
        return None
    result, at = list[str](), 0
    for change in changes:
        result += lines[at : change.start]
        if change.start == len(lines):
            result[-1:] = map(_ended, result[-1:])
        result += change.lines
        at = change.end
    return "".join([*result, *lines[at:]])


def _joined(one: Change, other: Change) -> Change:
    """Return one addition to the end of a text in place of two."""
    if one.lines[: len(other.lines)] == other.lines:
        return one
    added, others = "".join(one.lines), "".join(other.lines)
    if others.startswith(added):
        return other
    return one._replace(lines=(_ended(added), others))


def _repeats(earlier: Change, later: Change) -> bool:
    """Return whether one side added the same lines below a last line that it changed."""
    added = [*map(_ended, later.lines)]
    return earlier.end == later.start and [*map(_ended, earlier.lines)][-len(added) :] == added


def _ended(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def _changes(base: list[str], lines: list[str], checkpoint: Callable[[], None]) -> Iterator[Change]:
    """Yield the changes that make some lines of others, in order.

    Raises:
        TooManyChanges: they exceed a limit.
    """
    most = min(len(base), len(lines))
    start = next((at for at in range(most) if base[at] != lines[at]), most)
    behind = next((at for at in range(most - start) if base[-1 - at] != lines[-1 - at]), most - start)
    before, after = base[start : len(base) - behind], lines[start : len(lines) - behind]
    x = y = 0
    for to_x, to_y in [*_common(before, after, checkpoint), (len(before), len(after))]:
        if (x, y) != (to_x, to_y):
            yield Change(start + x, start + to_x, tuple(after[y:to_y]))
        x, y = to_x + 1, to_y + 1


def _common(before: list[str], after: list[str], checkpoint: Callable[[], None]) -> list[tuple[int, int]]:
    """Return the positions of lines that two texts have in common, as many as possible, in order."""
    rounds = _rounds(before, after, checkpoint)
    x, y, common = len(before), len(after), list[tuple[int, int]]()
    for number in range(len(rounds) - 1, -1, -1):
        diagonal = x - y
        is_added, from_x = _step(rounds[number - 1], number, diagonal) if number else (False, -1)
        while x > (from_x if is_added else from_x + 1):
            x, y = x - 1, y - 1
            common.append((x, y))
        x, y = from_x, from_x - (diagonal + 1 if is_added else diagonal - 1)
    return common[::-1]


def _rounds(before: list[str], after: list[str], checkpoint: Callable[[], None]) -> list[array[int]]:
    """Return how far each diagonal leads with 0, 1, ... added and removed lines, until one leads to the end.

    A diagonal is the position in one text less the position in the other. In round `d`, they are -d, 2 - d, ..., d.
    """
    rounds: list[array[int]] = []
    steps = 0
    for number in range(min(len(before) + len(after), MOST_CHANGES) + 1):
        checkpoint()
        reached = array("l")
        for diagonal in range(-number, number + 1, 2):
            is_added, x = _step(rounds[-1], number, diagonal) if number else (True, 0)
            start = x = x if is_added else x + 1
            y = x - diagonal
            while x < len(before) and y < len(after) and before[x] == after[y]:
                x, y = x + 1, y + 1
            steps += 1 + x - start
            reached.append(x)
            if x >= len(before) and y >= len(after):
                return [*rounds, reached]
        if steps > MOST_STEPS:
            break
        rounds.append(reached)
    raise TooManyChanges


def _step(last: array[int], number: int, diagonal: int) -> tuple[bool, int]:
    """Return whether a line is added, not removed, to reach a diagonal in a round, and the position before that."""
    at = (diagonal + number) // 2  # of the diagonal above, in the last round
    is_added = at == 0 or (at < number and last[at - 1] < last[at])
    return is_added, last[at] if is_added else last[at - 1]
