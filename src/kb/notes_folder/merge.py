"""A three-way merge of texts by lines, with the rules of diff3: changes that touch each other conflict."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final, NamedTuple

MOST_LINES: Final = 20_000
"""Longer texts are not merged: finding their common lines may take minutes."""


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
    changes = sorted({*_changes(lines, mine), *_changes(lines, theirs)})
    if any(later.start <= earlier.end for earlier, later in pairwise(changes)):
        return None
    result, at = list[str](), 0
    for change in changes:
        result += [*lines[at : change.start], *change.lines]
        at = change.end
    return "".join([*result, *lines[at:]])


def _changes(base: list[str], text: str) -> list[Change]:
    lines = text.splitlines(keepends=True)
    matcher = SequenceMatcher(None, base, lines, autojunk=False)
    return [
        Change(start, end, tuple(lines[first:last]))
        for kind, start, end, first, last in matcher.get_opcodes()
        if kind != "equal"
    ]
