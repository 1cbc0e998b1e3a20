"""From a text with its structure to chunks that the model can read whole (requirement N-1)."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise, takewhile
from typing import NamedTuple

from kb.embed.protocol import Tokenizer
from kb.formats.text.extracted import Extracted, Section
from kb.lexical.document_names import HEADING_MARK
from kb.store.rows import ChunkPosition, NewChunk

CHUNK_TOKENS = 200
"""How long a chunk may be where the window is large enough; the rest is for what the chunk stands under."""

HEADER_SHARE = 5
"""One part in so many of what the model reads is kept for a chunk's header, if it is as long as that."""

SHORTEST_SECTION = 16
"""A section of fewer tokens, such as a lone heading, goes together with the one that follows."""

CHUNK_BYTES, STORED_BYTES, INDEXED_BYTES = 1700, 2, 1
"""What a chunk takes in the database beside its text, a character of a header, and the same in the index."""

SECTIONS_SHARE, SECTIONS_FREE = 12, 1 << 19
"""What all sections may take, beside the text itself: so many bytes a character of it, and these."""

JOINED_CHARS = 800
"""How long sections are at least where they must be joined to take less."""

TOKEN_CHARS = 20
"""What a token may hold: the model reads a word of any length as one token, and knows nothing of it then."""

RANGE = " \u2013 "
"""What stands between the headings of the first and the last of several sections in one passage."""

LONGEST_RANGE = 300
SPACE = re.compile(r"[ \t\r\n]")

RECOUNTED = 2
"""How many times as much text as a chunk holds has its tokens counted again where a word was cut before it."""

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
    """Splits texts into chunks that a model reads whole, each under as much of its header as then fits the window.

    Its work grows with the text alone. `checkpoint` is called again and again, and may end it by raising.
    """

    def __init__(self, tokenizer: Tokenizer, checkpoint: Callable[[], None] = lambda: None) -> None:
        spec = tokenizer.spec
        self._tokenizer = tokenizer
        self._checkpoint = checkpoint
        self._window, self._prefix = spec.window, spec.passage_prefix
        self._room = spec.window - tokenizer.count_tokens(spec.passage_prefix)

    def split(self, extracted: Extracted, title: str | None) -> Iterator[tuple[NewChunk, str]]:
        """Split a text at its structure: each chunk, and what the model reads of it. Joined, chunks give the text back.

        Args:
            extracted: the text.
            title: what someone named the document; part of the header of each chunk.
        """
        tokens = _Tokens(extracted, self._tokenizer, self._checkpoint)
        lines = _Lines(extracted.text)
        for section, cited, single in _merged(extracted, tokens, title or ""):
            header = self._header(section, title)
            start = section.start
            while start < section.end:
                self._checkpoint()
                end, passage = self._next_passage(tokens, header, start, section.end)
                place = lines.place(start, end, cited if start < single else section.heading, section.page)
                yield NewChunk(extracted.text[start:end], header.text, place), passage
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
        text = HEADING_MARK.join(dict.fromkeys([title, *section.heading] if title else section.heading))
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


class _Cited(NamedTuple):
    """A section to cut, whose heading is searched; chunks of several sections are cited under another.

    Args:
        section: the section, with the short ones before it.
        heading: what chunks that begin in those are cited under.
        single: where those end.
    """

    section: Section
    heading: tuple[str, ...]
    single: int


def _merged(extracted: Extracted, tokens: _Tokens, title: str) -> Sequence[_Cited]:
    """Return the sections to cut: as they are but for the shortest, unless that takes too much for such a text."""
    merged = list(_merge_short(extracted, tokens))
    headers = sum(len(title) + sum(map(len, cited.section.heading)) for cited in merged)
    takes = CHUNK_BYTES * len(merged) + (STORED_BYTES + INDEXED_BYTES) * headers
    if takes <= SECTIONS_SHARE * len(extracted.text) + SECTIONS_FREE:
        return merged
    joined = _join(cited.section for cited in merged)
    return [_Cited(section, section.heading, section.start) for section in joined]


def _join(sections: Iterable[Section]) -> list[Section]:
    """Join sections on the same page until each is a chunk's worth; they stand under the headings they share."""
    joined: list[Section] = []
    for section in sections:
        last = joined[-1] if joined else None
        if last and last.page == section.page and last.end - last.start < JOINED_CHARS:
            heading = _shared(last.heading, section.heading)
            joined[-1] = replace(section, start=last.start, heading=heading)
        else:
            joined.append(section)
    return joined


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return the headings at which two paths begin alike."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple(heading for heading, _ in pairs)


def _merge_short(extracted: Extracted, tokens: _Tokens) -> Iterator[_Cited]:
    """Yield the sections, too short ones joined with the next on the same page."""
    pending: list[Section] = []
    for section in extracted.sections:
        if pending and pending[-1].page != section.page:
            yield _merge(pending, tokens)
            pending = []
        pending.append(section)
        if tokens.count(pending[0].start, section.end) >= SHORTEST_SECTION:
            yield _merge(pending, tokens)
            pending = []
    if pending:
        yield _merge(pending, tokens)


def _merge(sections: Sequence[Section], tokens: _Tokens) -> _Cited:
    """Return sections as one, under the heading of the last."""
    last = sections[-1]
    is_short = tokens.count(last.start, last.end) < SHORTEST_SECTION
    cited = _together([section.heading for section in sections], are_short=is_short)
    return _Cited(replace(last, start=sections[0].start), cited, last.start)


def _together(paths: Sequence[tuple[str, ...]], *, are_short: bool) -> tuple[str, ...]:
    """Return what several sections are cited under: what short ones share, else from which to which they go.

    A heading that the next one goes on from does not count.
    """
    ends = [path for path, later in pairwise(paths) if later[: len(path)] != path]
    shared = reduce(_shared, [*ends, paths[-1]])
    return shared if shared and are_short else _range(ends[0] if ends else paths[-1], paths[-1])


def _range(first: tuple[str, ...], last: tuple[str, ...]) -> tuple[str, ...]:
    shared = _shared(first, last)
    name = RANGE.join([*first[len(shared) :][:1], *last[len(shared) :][:1]])
    return (*shared, name) if RANGE in name and len(name) <= LONGEST_RANGE else last


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


def _blocks(extracted: Extracted) -> Iterator[tuple[int, int]]:
    """Yield where the parts begin and end that are tokenised one by one; no token reaches over their ends."""
    text, start = extracted.text, 0
    # A section may begin within a word, which then has other tokens; at the start of a line it does not.
    edges = (section.start for section in extracted.sections if section.start and text[section.start - 1] != "\n")
    for edge in (*edges, len(text)):
        while start < edge:
            end = min(start + BLOCK_CHARS, edge)
            if end < edge:
                end = text.rfind(" ", start + 1, end) + 1 or end
            yield start, end
            start = end


class _Tokens:
    """Where the model's tokens begin in a text that is cut from its beginning to its end.

    Where a word was cut, the tokens after the cut are others than those of the whole: those are in `_recounted`, which
    stands for all between the cut and `_recounted_end`.
    """

    def __init__(self, extracted: Extracted, tokenizer: Tokenizer, checkpoint: Callable[[], None]) -> None:
        self.text = extracted.text
        self._tokenizer = tokenizer
        self._starts = array("Q")
        self._recounted: list[int] = []
        self._recounted_end = 0
        for start, end in _blocks(extracted):
            checkpoint()
            self._starts.extend(start + offset for offset in tokenizer.token_starts(self.text[start:end]))

    def count(self, start: int, end: int) -> int:
        """Return how many tokens `text[start:end]` has. What stands before the last cut is not asked for any more."""
        recounted = bisect_left(self._recounted, end) - bisect_left(self._recounted, start)
        return recounted + max(0, bisect_left(self._starts, end) - self._first_after(start))

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
        following = self._recounted[bisect_left(self._recounted, start) :]
        index = self._first_after(start) + tokens - len(following)
        if tokens < len(following):
            by_tokens = following[tokens]
        else:
            by_tokens = self._starts[index] if index < len(self._starts) else len(self.text)
        return min(by_tokens, start + tokens * TOKEN_CHARS)

    def _first_after(self, start: int) -> int:
        """Return the index in `_starts` of the first token at or after `start` that was not counted again."""
        return bisect_left(self._starts, max(start, self._recounted_end))

    def _split_word(self, start: int, end: int, size: int) -> int:
        """Return the last place before `end` that leaves a chunk of the right size.

        The two parts of a word have other tokens than the whole: the first is counted again here, and so are the
        tokens of what follows, as far as the next chunks reach.
        """
        while len(starts := self._tokenizer.token_starts(self.text[start:end])) > size:
            end = start + min(starts[size], (end - start) * 9 // 10)
        end = max(end, start + 1)
        self._recounted_end = self._word_end(end, min(RECOUNTED * (end - start), TOKEN_CHARS * CHUNK_TOKENS))
        again = self._tokenizer.token_starts(self.text[end : self._recounted_end])
        self._recounted = [end + offset for offset in again]
        return end

    def _word_end(self, position: int, most: int) -> int:
        limit = min(position + most, len(self.text))
        space = SPACE.search(self.text, position, limit)
        return space.start() if space else limit


class _Lines:
    """Counts the lines of a text, from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._line = 1

    def place(self, start: int, end: int, heading: tuple[str, ...], page: int | None) -> ChunkPosition:
        """The place of `text[start:end]`; lines are those of its words, without the white space around them."""
        inside = self._text[start:end]
        first = start + len(inside) - len(inside.lstrip())
        last = start + max(len(inside.rstrip()) - 1, 0)
        return ChunkPosition(
            line_start=self._line_at(min(first, last)),
            line_end=self._line_at(last),
            char_start=start,
            char_end=end,
            heading=heading,
            page=page,
        )

    def _line_at(self, position: int) -> int:
        """Return the line of a character at or after the last one that was asked for."""
        self._line += self._text.count("\n", self._position, position)
        self._position = position
        return self._line
