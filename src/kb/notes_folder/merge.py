"""A three-way merge of texts by lines, with the rules of diff3: changes that touch each other conflict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final, NamedTuple

MOST_LINES: Final = 20_000
"""Longer texts are not merged: finding their common lines may take minutes."""

MOST_PAIRS: Final = 5_000_000
"""Texts that repeat lines, such as empty ones, more often are not merged: each pair of equal lines takes time."""


MOST_STEPS: Final = 20_000_000
"""Texts are not merged if their changed lines times their pairs or lines are more: the time grows with that."""


class Change(NamedTuple):
    """The lines from `start` to `end`, excluding `end`, are replaced by others."""

    start: int
    end: int
    lines: Sequence[str]


def merged(base: str, mine: str, theirs: str) -> str | None:
    """Return a text with the changes of both sides; None if they conflict."""
    if theirs in (base, mine):
        return mine
    if mine == base:
        return theirs
    lines = base.splitlines(keepends=True)
    if max(len(lines), mine.count("\n"), theirs.count("\n")) > MOST_LINES:
        return None
    sides = [_Difference.between(lines, text.splitlines(keepends=True)) for text in (mine, theirs)]
    if any(side.pairs > MOST_PAIRS or side.steps > MOST_STEPS for side in sides):
        return None
    changes = sorted({change for side in sides for change in side.changes()})
    if any(later.start <= earlier.end for earlier, later in pairwise(changes)):
        return None
    result, at = list[str](), 0
    for change in changes:
        result += [*lines[at : change.start], *change.lines]
        at = change.end
    return "".join([*result, *lines[at:]])


class _Difference(NamedTuple):
    """The lines of two texts from the first difference to the last; `start` is the number of lines before them."""

    start: int
    before: list[str]
    after: list[str]

    @classmethod
    def between(cls, base: list[str], lines: list[str]) -> _Difference:
        most = min(len(base), len(lines))
        start = next((at for at in range(most) if base[at] != lines[at]), most)
        behind = next((at for at in range(most - start) if base[-1 - at] != lines[-1 - at]), most - start)
        return cls(start, base[start : len(base) - behind], lines[start : len(lines) - behind])

    @property
    def pairs(self) -> int:
        """The number of pairs of equal lines."""
        before, after = Counter(self.before), Counter(self.after)
        return sum(count * after[line] for line, count in before.items())

    @property
    def steps(self) -> int:
        """The number of changed lines, times the pairs of equal lines or all lines."""
        before, after = Counter(self.before), Counter(self.after)
        changed = (before - after).total() + (after - before).total()
        return changed * max(self.pairs, len(self.before), len(self.after))

    def changes(self) -> Iterator[Change]:
        matcher = SequenceMatcher(None, self.before, self.after, autojunk=False)
        for kind, start, end, first, last in matcher.get_opcodes():
            if kind != "equal":
                yield Change(self.start + start, self.start + end, tuple(self.after[first:last]))
