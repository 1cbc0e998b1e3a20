"""From a text with its structure to chunks that the model can read whole (requirement N-1)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kb.store.rows import NewChunk, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kb.embed.protocol import Tokenizer
    from kb.formats.extracted import Extracted, Section

CHUNK_TOKENS = 200
"""How long a chunk may be where the window is large enough; the rest is for what the chunk stands under."""

HEADER_SHARE = 5
"""One part in so many of what the model reads is kept for a chunk's header, if it is as long as that."""

SHORTEST_SECTION = 16
"""A section of fewer tokens, such as a lone heading, goes together with the one that follows."""

TOKEN_CHARS = 20
"""What a token may hold: the model reads a word of any length as one token, and knows nothing of it then."""

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


class Chunker:
    """Splits texts into chunks that a model reads whole, each under as much of its header as then fits the window."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        spec = tokenizer.spec
        self._tokenizer = tokenizer
        self._window, self._prefix = spec.window, spec.passage_prefix
        self._room = spec.window - tokenizer.count_tokens(spec.passage_prefix)

    def split(self, extracted: Extracted, title: str | None) -> Iterator[tuple[NewChunk, str]]:
        """Split a text at its structure: each chunk, and what the model reads of it. Joined, chunks give the text back.

        Args:
            extracted: the text.
            title: what someone named the document; part of the header of each chunk.
        """
        tokens = _Tokens(extracted.text, self._tokenizer)
        lines = _Lines(extracted.text)
        for section in _merge_short(extracted, tokens):
            header = self._header(section, title)
            start = section.start
            while start < section.end:
                end, passage = self._next_passage(tokens, header, start, section.end)
                yield NewChunk(extracted.text[start:end], header.text, lines.place(start, end, section)), passage
                start = end

    def passage(self, header: str, text: str) -> str:
        """Return what the model reads of a chunk that was cut before, as `split` gives it."""
        stands_under = _Header(header, self._tokenizer.token_starts(header))
        room = self._room - len(self._tokenizer.token_starts(text))
        while True:
            shown = stands_under.truncate(room)
            passage = f"{shown}\n{text}".strip()
            excess = self._tokenizer.count_tokens(self._prefix + passage) - self._window
            if excess <= 0 or not shown:
                return passage
            room -= excess

    def _header(self, section: Section, title: str | None) -> _Header:
        text = " › ".join(dict.fromkeys([title, *section.heading] if title else section.heading))
        return _Header(text, self._tokenizer.token_starts(text))

    def _next_passage(self, tokens: _Tokens, header: _Header, start: int, limit: int) -> tuple[int, str]:
        """Return where the chunk that begins at `start` ends, and what the model reads of it.

        A part may have more tokens than it had within the whole: then the header gives way, and at last the text.
        """
        size = min(CHUNK_TOKENS, self._room - min(len(header.starts), self._room // HEADER_SHARE))
        reserve = 0
        while True:
            end = tokens.chunk_end(start, limit, size)
            shown = header.truncate(self._room - tokens.count(start, end) - reserve)
            passage = f"{shown}\n{tokens.text[start:end]}".strip()
            excess = self._tokenizer.count_tokens(self._prefix + passage) - self._window
            if excess <= 0 or size == 1:
                return end, passage
            if shown:
                reserve += excess
            else:
                size = max(1, size - excess)


def _merge_short(extracted: Extracted, tokens: _Tokens) -> Iterator[Section]:
    """Yield the sections, too short ones joined with the next on the same page."""
    pending: Section | None = None
    for each in extracted.sections:
        joined = pending is not None and pending.page == each.page
        if pending and not joined:
            yield pending
        section = replace(each, start=pending.start) if pending and joined else each
        pending = section if tokens.count(section.start, section.end) < SHORTEST_SECTION else None
        if pending is None:
            yield section
    if pending:
        yield pending


@dataclass(frozen=True, slots=True)
class _Header:
    """What a chunk stands under, and where its tokens begin."""

    text: str
    starts: list[int]

    def truncate(self, tokens: int) -> str:
        """Return as much as has at most so many tokens, cut before a word; nothing of what has none."""
        if not self.starts:
            return ""
        if len(self.starts) <= tokens:
            return self.text
        return self.text[: self.starts[tokens]].rpartition(" ")[0] if tokens > 0 else ""


class _Tokens:
    """Where the model's tokens begin in a text."""

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        self.text = text
        self._tokenizer = tokenizer
        self._starts: list[int] = []
        start = 0
        while start < len(text):
            end = start + BLOCK_CHARS
            if end < len(text):
                end = text.rfind(" ", start + 1, end) + 1 or end
            self._starts += (start + offset for offset in tokenizer.token_starts(text[start:end]))
            start = end

    def count(self, start: int, end: int) -> int:
        """Return how many tokens `text[start:end]` has."""
        return bisect_left(self._starts, end) - bisect_left(self._starts, start)

    def chunk_end(self, start: int, end: int, size: int) -> int:
        """Return where the chunk of up to `size` tokens that begins at `start` ends: at `end` or the best place before.

        What is left is cut into even parts, for a short rest would make a poor chunk.
        """
        tokens = max(self.count(start, end), -(-(end - start) // TOKEN_CHARS))
        parts = -(-tokens // size)
        if parts <= 1:
            return end
        target, latest = self._advance(start, -(-tokens // parts)), self._advance(start, size)
        for pattern in BREAKS:
            places = [match.end() for match in pattern.finditer(self.text, start, latest)]
            fair = [place for place in places if 2 * (place - start) >= target - start]
            if fair:
                return min(fair, key=lambda place: abs(place - target))
        return self._split_word(start, latest, size)

    def _advance(self, start: int, tokens: int) -> int:
        """Return the character after so many tokens."""
        index = bisect_left(self._starts, start) + tokens
        by_tokens = self._starts[index] if index < len(self._starts) else len(self.text)
        return min(by_tokens, start + tokens * TOKEN_CHARS)

    def _split_word(self, start: int, end: int, size: int) -> int:
        """Return the last place before `end` that leaves a chunk of the right size.

        The two parts of a word have other tokens than the whole: the first is counted again here, and the tokens of
        what follows are found again.
        """
        while len(self._tokenizer.token_starts(self.text[start:end])) > size:
            end = start + (end - start) * 9 // 10
        end = max(end, start + 1)
        word_end = min(end + TOKEN_CHARS * CHUNK_TOKENS, self._word_end(end))
        again = [end + offset for offset in self._tokenizer.token_starts(self.text[end:word_end])]
        self._starts[bisect_left(self._starts, end) : bisect_left(self._starts, word_end)] = again
        return end

    def _word_end(self, position: int) -> int:
        space = SPACE.search(self.text, position)
        return space.start() if space else len(self.text)


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
