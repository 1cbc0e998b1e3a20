"""Differences between two texts, word by word."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

DiffKind = Literal["equal", "insert", "delete"]

TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
MAX_EDITS = 400
"""Texts with more changed words count as entirely different, between a common beginning and end."""


class DiffPart(NamedTuple):
    """A stretch of text that is in both texts, or only in one of them."""

    kind: DiffKind
    text: str


def diff(before: str, after: str) -> list[DiffPart]:
    """Return the stretches of both texts in order; those without insertions form the old text.

    Those without deletions form the new text.
    """
    old, new = TOKEN.findall(before), TOKEN.findall(after)
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    middle = _edits(old[start : len(old) - end], new[start : len(new) - end])
    tail = [DiffPart("equal", token) for token in old[len(old) - end :]]
    return list(_joined([DiffPart("equal", token) for token in old[:start]] + middle + tail))


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many tokens both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _joined(changes: Sequence[DiffPart]) -> Iterator[DiffPart]:
    for kind, group in groupby(changes, key=lambda change: change.kind):
        yield DiffPart(kind, "".join(change.text for change in group))


def _edits(old: Sequence[str], new: Sequence[str]) -> list[DiffPart]:
    """Return the fewest changes from one to the other (Myers 1986), if they are at most `MAX_EDITS`."""
    ends = {1: 0}
    """How many old tokens the furthest path on each diagonal has passed.

    A diagonal is the number of old tokens passed less the number of new ones.
    """
    trace: list[dict[int, int]] = []
    for edits in range(min(len(old) + len(new), MAX_EDITS) + 1):
        trace.append(dict(ends))
        for diagonal in range(-edits, edits + 1, 2):
            x = _next(ends, diagonal, edits)
            y = x - diagonal
            while x < len(old) and y < len(new) and old[x] == new[y]:
                x, y = x + 1, y + 1
            ends[diagonal] = x
            if x >= len(old) and y >= len(new):
                return _walked(trace, old, new)
    return [DiffPart("delete", token) for token in old] + [DiffPart("insert", token) for token in new]


def _next(ends: dict[int, int], diagonal: int, edits: int) -> int:
    """Return the start of a path on a diagonal: it comes from above by an insertion, or from below by a deletion."""
    if diagonal == -edits or (diagonal != edits and ends[diagonal - 1] < ends[diagonal + 1]):
        return ends[diagonal + 1]
    return ends[diagonal - 1] + 1


def _walked(trace: Sequence[dict[int, int]], old: Sequence[str], new: Sequence[str]) -> list[DiffPart]:
    """Return the changes of the path that reached the end."""
    x, y, changes = len(old), len(new), list[DiffPart]()
    for edits in range(len(trace) - 1, -1, -1):
        diagonal, ends = x - y, trace[edits]
        is_insertion = diagonal == -edits or (diagonal != edits and ends[diagonal - 1] < ends[diagonal + 1])
        entry = _next(ends, diagonal, edits)
        while x > entry:
            x, y = x - 1, y - 1
            changes.append(DiffPart("equal", old[x]))
        if edits and is_insertion:
            y -= 1
            changes.append(DiffPart("insert", new[y]))
        elif edits:
            x -= 1
            changes.append(DiffPart("delete", old[x]))
    return changes[::-1]
