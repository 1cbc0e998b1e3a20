"""From a text with its structure to chunks that the model can read whole (requirement N-1)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING

from kb.store.rows import NewChunk, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kb.embed.protocol import Embedder
    from kb.formats.extracted import Extracted, Section

CHUNK_TOKENS = 200
"""How long a chunk may be; the rest of the model's window is for what the chunk stands under."""

SHORTEST_SECTION = 16
"""A section of fewer tokens, such as a lone heading, goes together with the one that follows."""

TOKEN_CHARS = 20
"""What a token may hold: the model reads a word of any length as one token, and knows nothing of it then."""

SPECIAL_TOKENS = 2
"""[CLS] and [SEP], which the model puts around each text."""

SPACE = re.compile(r"[ \t\r\n]")

BLOCK_CHARS = 1 << 16
"""How much text is tokenised at a time."""

# Where a text may be cut, the best places first: paragraphs, lines, sentences, clauses, words. Only white space that
# separates words for the model, too: then the tokens on both sides stay what they were.
BREAKS = [
    re.compile(pattern)
    for pattern in (
        r"\n[ \t\r]*\n[ \t\r\n]*",
        r"\n[ \t\r]*",
        r"[.!?…][\"'”’)\]]*[ \t]+",
        r"[,;:–—)\]][ \t]+",
        r"[ \t]+",
    )
]


def cut(extracted: Extracted, title: str | None, embedder: Embedder) -> Iterator[tuple[NewChunk, str]]:
    """The text cut at its structure: each chunk, and what the model shall read of it. Joined, they give the text back.

    The model reads all of a chunk's text, and as much of its header as then fits its window.

    Args:
        extracted: the text.
        title: what someone named the document; part of the header of each chunk.
        embedder: counts tokens, and says how many fit.
    """
    tokens = _Tokens(extracted.text, embedder)
    lines = _Lines(extracted.text)
    for section in _with_body(extracted, tokens):
        header = " › ".join(dict.fromkeys([title, *section.heading] if title else section.heading))
        start = section.start
        while start < section.end:
            end = tokens.cut_after(start, section.end)
            chunk = NewChunk(extracted.text[start:end], header, lines.place(start, end, section))
            room = embedder.window - SPECIAL_TOKENS - tokens.between(start, end)
            yield chunk, f"{_fitting(header, room, embedder)}\n{chunk.text}".strip()
            start = end


def _with_body(extracted: Extracted, tokens: _Tokens) -> Iterator[Section]:
    """The sections, too short ones joined with the next on the same page."""
    waiting: Section | None = None
    for each in extracted.sections:
        joined = waiting is not None and waiting.page == each.page
        if waiting and not joined:
            yield waiting
        section = replace(each, start=waiting.start) if waiting and joined else each
        waiting = section if tokens.between(section.start, section.end) < SHORTEST_SECTION else None
        if waiting is None:
            yield section
    if waiting:
        yield waiting


def _fitting(header: str, room: int, embedder: Embedder) -> str:
    """As much of the header as has at most `room` tokens, cut before a word."""
    starts = embedder.token_starts(header)
    if len(starts) <= room:
        return header
    return header[: starts[room]].rpartition(" ")[0]


class _Tokens:
    """Where the model's tokens begin in a text."""

    def __init__(self, text: str, embedder: Embedder) -> None:
        self._text = text
        self._embedder = embedder
        self._starts: list[int] = []
        start = 0
        while start < len(text):
            end = start + BLOCK_CHARS
            if end < len(text):
                end = text.rfind(" ", start + 1, end) + 1 or end
            self._starts += (start + offset for offset in embedder.token_starts(text[start:end]))
            start = end

    def between(self, start: int, end: int) -> int:
        """How many tokens `text[start:end]` has."""
        return bisect_left(self._starts, end) - bisect_left(self._starts, start)

    def cut_after(self, start: int, end: int) -> int:
        """Where the chunk that begins at `start` ends: at `end` if it can, else at the best place before.

        What is left is cut into even parts, for a short rest would make a poor chunk.
        """
        size = max(self.between(start, end), -(-(end - start) // TOKEN_CHARS))
        parts = -(-size // CHUNK_TOKENS)
        if parts <= 1:
            return end
        aim, latest = self._after(start, -(-size // parts)), self._after(start, CHUNK_TOKENS)
        for pattern in BREAKS:
            places = [match.end() for match in pattern.finditer(self._text, start, latest)]
            fair = [place for place in places if 2 * (place - start) >= aim - start]
            if fair:
                return min(fair, key=lambda place: abs(place - aim))
        return self._cut_word(start, latest)

    def _after(self, start: int, tokens: int) -> int:
        """The character after so many tokens."""
        index = bisect_left(self._starts, start) + tokens
        by_tokens = self._starts[index] if index < len(self._starts) else len(self._text)
        return min(by_tokens, start + tokens * TOKEN_CHARS)

    def _cut_word(self, start: int, end: int) -> int:
        """The last place before `end` that leaves a chunk of the right size.

        The two parts of a word have other tokens than the whole: the first is counted again here, and the tokens of
        what follows are found again.
        """
        while len(self._embedder.token_starts(self._text[start:end])) > CHUNK_TOKENS:
            end = start + (end - start) * 9 // 10
        end = max(end, start + 1)
        word_end = min(end + TOKEN_CHARS * CHUNK_TOKENS, self._end_of_word(end))
        again = [end + offset for offset in self._embedder.token_starts(self._text[end:word_end])]
        self._starts[bisect_left(self._starts, end) : bisect_left(self._starts, word_end)] = again
        return end

    def _end_of_word(self, position: int) -> int:
        space = SPACE.search(self._text, position)
        return space.start() if space else len(self._text)


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
