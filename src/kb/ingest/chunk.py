"""From a text with its structure to chunks that the model can read whole (requirement N-1)."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import semchunk

from kb.store.base import NewChunk, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kb.ingest.extract import Extracted, Section

    CountTokens = Callable[[str], int]

CHUNK_TOKENS = 200
"""How long a chunk may be; the rest of the model's window is for what the chunk stands under."""

SHORTEST_SECTION = 16
"""A section of fewer tokens, such as a lone heading, goes together with the one that follows."""

CHARS_PER_TOKEN = 20
"""What a token may hold: the model reads a word of any length as one token, and knows nothing of it then."""

SPECIAL_TOKENS = 2
"""[CLS] and [SEP], which the model puts around each text."""


def cut(extracted: Extracted, title: str | None, count_tokens: CountTokens) -> Iterator[NewChunk]:
    """The text cut at its structure. Joined, the chunks give the text back.

    Args:
        extracted: the text.
        title: what someone named the document; part of the header of each chunk.
        count_tokens: the model's own count for a text, special tokens included.
    """
    lines = _Lines(extracted.text)
    for section in _with_body(extracted, count_tokens):
        header = " › ".join(dict.fromkeys([title, *section.heading] if title else section.heading))
        for start, end in _spans(extracted.text, section, count_tokens):
            yield NewChunk(extracted.text[start:end], header, lines.place(start, end, section))


def embedding_input(chunk: NewChunk, count_tokens: CountTokens, window: int) -> str:
    """What the model reads of a chunk: all of its text, and as much of its header as then fits the window."""
    room = window - count_tokens(chunk.text)
    header = semchunk.chunk(chunk.header, room, _counter(count_tokens), memoize=False) if room > 0 else []
    return "\n".join([*header[:1], chunk.text.strip()])


def _with_body(extracted: Extracted, count_tokens: CountTokens) -> Iterator[Section]:
    """The sections, too short ones joined with the next on the same page."""
    waiting: Section | None = None
    for section in extracted.sections:
        if waiting and waiting.page == section.page:
            section = replace(section, start=waiting.start)
        elif waiting:
            yield waiting
        short = count_tokens(extracted.text[section.start : section.end]) < SHORTEST_SECTION
        waiting = section if short else None
        if not short:
            yield section
    if waiting:
        yield waiting


def _spans(text: str, section: Section, count_tokens: CountTokens) -> Iterator[tuple[int, int]]:
    """Where to cut a section; the white space between two chunks belongs to the first."""
    inside = text[section.start : section.end]
    _, offsets = semchunk.chunk(inside, CHUNK_TOKENS, _counter(count_tokens), memoize=False, offsets=True)
    inner_starts = [section.start + start for start, _ in offsets[1:]]
    return pairwise([section.start, *inner_starts, section.end])


def _counter(count_tokens: CountTokens) -> CountTokens:
    def count(text: str) -> int:
        return max(count_tokens(text) - SPECIAL_TOKENS, -(-len(text) // CHARS_PER_TOKEN))

    return count


class _Lines:
    """Where the lines of a text begin."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, start: int, end: int, section: Section) -> Place:
        """The place of `text[start:end]`; lines are those of its words, without the white space around them."""
        inside = self._text[start:end]
        first = start + len(inside) - len(inside.lstrip())
        last = start + max(len(inside.rstrip()) - 1, 0)
        return Place(
            line_start=bisect_right(self._starts, min(first, last)),
            line_end=bisect_right(self._starts, last),
            char_start=start,
            char_end=end,
            heading=section.heading,
            page=section.page,
        )
