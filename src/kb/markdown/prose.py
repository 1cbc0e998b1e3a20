"""The parts of a Markdown text that are neither code nor comments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_FENCE: Final = re.compile(r"^[ >]*(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)
_TICKS: Final = re.compile(r"`+")
_COMMENT: Final = re.compile(r"(?<![\d\\%])%%(?!%).{0,20000}?%%", re.DOTALL)
"""A comment of Obsidian; `100%%` is a number."""

Ranges = Iterable[tuple[int, int]]


def prose(text: str) -> str:
    """Return a text without code, as `without_code`, with blanks in place of comments."""
    text = without_code(text)
    if "<!--" in text:
        text = masked(text, _between(text, "<!--", "-->"))
    return masked(text, _comments(text)) if "%%" in text else text


def comments(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of Obsidian's comments, which it does not show."""
    return _comments(without_code(text)) if "%%" in text else iter(())


def _comments(text: str) -> Iterator[tuple[int, int]]:
    return (comment.span() for comment in _COMMENT.finditer(text))


def without_code(text: str) -> str:
    """Return a text of the same length with blanks in place of code blocks, and backticks in place of code spans."""
    if "```" in text or "~~~" in text:
        text = masked(text, _code_blocks(text))
    return masked(text, _code_spans(text), "`") if "`" in text else text


def masked(text: str, ranges: Ranges, sign: str = " ") -> str:
    """Return a text with a sign in place of each character of some ranges, except line ends."""
    pieces, at = list[str](), 0
    for begin, end in ranges:
        pieces += [text[at:begin], "\n".join(sign * len(line) for line in text[begin:end].split("\n"))]
        at = end
    return "".join([*pieces, text[at:]])


def _code_blocks(text: str) -> Iterator[tuple[int, int]]:
    opening: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        if opening is None:
            opening = line if line["fence"][0] == "~" or "`" not in line["info"] else None
        elif line["fence"].startswith(opening["fence"]) and not line["info"].strip():
            yield opening.start(), line.end()
            opening = None
    if opening is not None:
        yield opening.start(), len(text)


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of each paragraph, which end with as many backticks as they begin with."""
    runs, end = list[tuple[int, int]](), -1
    for run in _TICKS.finditer(text):
        if run.start() > end >= 0:
            yield from _spans(runs, text)
            runs = []
        if not runs:
            end = text.find("\n\n", run.end())
        runs.append(run.span())
    yield from _spans(runs, text)


def _spans(runs: list[tuple[int, int]], text: str) -> Iterator[tuple[int, int]]:
    later: dict[int, list[int]] = {}
    for index, (begin, end) in reversed(list(enumerate(runs))):
        later.setdefault(end - begin, []).append(index)
    index = 0
    while index < len(runs):
        begin, end = runs[index]
        begin += _is_escaped(text, begin)
        closing = later.get(end - begin, [])
        while closing and closing[-1] <= index:
            closing.pop()
        if closing:
            index = closing[-1]
            yield begin, runs[index][1]
        index += 1


def _is_escaped(text: str, at: int) -> bool:
    """Return whether a backslash before a character makes it plain text."""
    if text[at - 1 : at] != "\\":
        return False
    before = text[max(0, at - 100) : at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _between(text: str, opening: str, closing: str) -> Iterator[tuple[int, int]]:
    at = 0
    while (begin := text.find(opening, at)) >= 0 and (stop := text.find(closing, begin + len(opening))) >= 0:
        at = stop + len(closing)
        yield begin, at
