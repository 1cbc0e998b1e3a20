"""Split a structured text into chunks that the model can read whole (requirement N-1)."""

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
from kb.index.words.document_names import HEADING_MARK
from kb.store.rows import Chunk, ChunkPosition, NewChunk

CHUNK_TOKENS = 200
"""The maximum length of a chunk if the window is large enough; the rest is for the chunk's header."""

HEADER_SHARE = 5
"""A long header may use one part in this many of the window."""

SHORTEST_SECTION = 16
"""A section with fewer tokens, such as a lone heading, is merged with the next one."""

CHUNK_BYTES, STORED_BYTES, INDEXED_BYTES = 1700, 2, 1
"""Sizes in bytes in the database: a chunk without its text, a stored character, an indexed character."""

SECTIONS_SHARE, SECTIONS_FREE = 12, 1 << 19
"""The limit for all sections besides the text: bytes per character of the text, plus a constant."""

JOINED_CHARS = 800
"""The minimum length of a section if sections must be merged to use less space."""

TOKEN_CHARS = 20
"""The maximum length of a token: the model reads a word of any length as one token without meaning."""

RANGE = " \u2013 "
"""The text between the headings of the first and last section of a passage."""

LONGEST_RANGE = 300
SPACE = re.compile(r"[ \t\r\n]")

RECOUNTED = 2
"""After a cut within a word, tokens are recounted in this many times the text of a chunk."""

SENTENCE_END = r"[.!?…。\uff01\uff1f][\"'”’)\]」』]*"
SHORT_LINE = 45
"""A line of at most this many characters was ended by its author, not wrapped."""

BLOCK_CHARS = 1 << 16
"""The number of characters tokenised at a time."""

# Places to cut a text, best ones first: paragraphs, lines that end a sentence, short or marked lines, sentences, other
# lines, which may be wrapped within a sentence, clauses, words. Only at white space that also separates words for the
# model, so that the tokens on both sides stay the same.
BREAKS = [
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"\n[ \t\r]*\n[ \t\r\n]*",
        rf"(?:{SENTENCE_END}|[\]}}:;])[ \t\r]*\n[ \t\r]*",
        rf"^[^\n]{{0,{SHORT_LINE}}}\n[ \t\r]*|\n[ \t\r]*(?=[-*+#|>•·–—]|\d+[.)][ \t])",
        rf"{SENTENCE_END}[ \t]+",
        r"\n[ \t\r]*",
        r"[,;:–—)\]][ \t]+",
        r"[ \t]+",
    )
]


class Chunker:
    """Splits texts into chunks that a model reads whole, each with as much of its header as fits the window.

    The work grows only with the length of the text. `checkpoint` is called regularly and may stop it by raising an
    error.
    """

    def __init__(self, tokenizer: Tokenizer, checkpoint: Callable[[], None] = lambda: None) -> None:
        spec = tokenizer.spec
        self._tokenizer = tokenizer
        self._checkpoint = checkpoint
        self._window, self._prefix = spec.window, spec.passage_prefix
        self._room = spec.window - tokenizer.count_tokens(spec.passage_prefix)

    def split(self, extracted: Extracted, title: str | None) -> Iterator[tuple[NewChunk, str]]:
        """Split a text at its structure: yield each chunk and the model's input for it.

        Joined, the chunks are the text.

        Args:
            title: the title that somebody gave the document; part of the header of each chunk.
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

    def split_edited(self, text: str, title: str | None, before: Sequence[Chunk]) -> Iterator[tuple[NewChunk, str]]:
        """Split a text without structure that was edited; only passages at a change are cut again.

        Joined, the chunks are the text. The input of a passage that stays is empty.

        Args:
            text: the text after the edit.
            title: as in `split`.
        """
        header = self._header(Section(0, 0), title).text
        first, last = kept_ends(before, text) if all(chunk.header == header for chunk in before) else (0, 0)
        end = len(before) - last
        start = sum(len(chunk.text) for chunk in before[:first])
        stop = len(text) - sum(len(chunk.text) for chunk in before[end:])
        for chunk in before[:first]:
            yield NewChunk(chunk.text, header, chunk.place), ""
        lines = text.count("\n", 0, start)
        for new, passage in self.split(Extracted.of_text(text[start:stop]), title):
            yield replace(new, place=new.place.moved(lines, start)), passage
        lines = text.count("\n", start, stop) - sum(chunk.text.count("\n") for chunk in before[first:end])
        characters = len(text) - sum(len(chunk.text) for chunk in before)
        for chunk in before[end:]:
            yield NewChunk(chunk.text, header, chunk.place.moved(lines, characters)), ""

    def passage(self, header: str, text: str) -> str:
        """Return the model's input for an existing chunk, the same as from `split`."""
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
        """Return the end of the chunk that begins at `start`, and the model's input for it.

        A part may have more tokens than it had within the whole: then the header is cut, and finally the text.
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


def kept_ends(before: Sequence[Chunk], text: str) -> tuple[int, int]:
    """Return how many chunks at the beginning and at the end of an edited text stay.

    The ones next to a change are cut again, together with it: only the new words may be a poor chunk.
    """
    start, end = 0, len(text)
    first = last = 0
    for chunk in before:
        if not text.startswith(chunk.text, start):
            break
        start += len(chunk.text)
        first += 1
    for chunk in reversed(before[first:]):
        if not text.endswith(chunk.text, start, end):
            break
        end -= len(chunk.text)
        last += 1
    return max(0, first - 1), max(0, last - 1)


class _Cited(NamedTuple):
    """A section to split, whose heading is searched; chunks of several sections are cited under another heading.

    Args:
        section: the section, with the short ones before it.
        heading: the citation heading of chunks that begin in the short ones.
        single: the end of the short ones.
    """

    section: Section
    heading: tuple[str, ...]
    single: int


def _merged(extracted: Extracted, tokens: _Tokens, title: str) -> Sequence[_Cited]:
    """Return the sections to split, with only the shortest merged, unless that takes too much space for the text."""
    merged = list(_merge_short(extracted, tokens))
    headers = sum(len(title) + sum(map(len, cited.section.heading)) for cited in merged)
    takes = CHUNK_BYTES * len(merged) + (STORED_BYTES + INDEXED_BYTES) * headers
    if takes <= SECTIONS_SHARE * len(extracted.text) + SECTIONS_FREE:
        return merged
    joined = _join(cited.section for cited in merged)
    return [_Cited(section, section.heading, section.start) for section in joined]


def _join(sections: Iterable[Section]) -> list[Section]:
    """Merge sections on the same page until each is as long as a chunk; the headings that they share remain."""
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
    """Return the common beginning of two heading paths."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple(heading for heading, _ in pairs)


def _merge_short(extracted: Extracted, tokens: _Tokens) -> Iterator[_Cited]:
    """Yield the sections, with too short ones merged with the next on the same page."""
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
    """Return several sections as one, under the heading of the last."""
    last = sections[-1]
    is_short = tokens.count(last.start, last.end) < SHORTEST_SECTION
    # The shared path of short sections, else the first and last heading. One that contains the next does not count.
    paths = [section.heading for section in sections]
    ends = [path for path, later in pairwise(paths) if later[: len(path)] != path]
    shared = reduce(_shared, [*ends, paths[-1]])
    cited = shared if shared and is_short else _range(ends[0] if ends else paths[-1], paths[-1])
    return _Cited(replace(last, start=sections[0].start), cited, last.start)


def _range(first: tuple[str, ...], last: tuple[str, ...]) -> tuple[str, ...]:
    shared = _shared(first, last)
    name = RANGE.join([*first[len(shared) :][:1], *last[len(shared) :][:1]])
    return (*shared, name) if RANGE in name and len(name) <= LONGEST_RANGE else last


@dataclass(frozen=True, slots=True)
class _Header:
    """The header of a chunk, and where its tokens begin."""

    text: str
    starts: list[int]

    def truncate(self, tokens: int) -> str:
        """Return a beginning of the header with at most `tokens` tokens, cut before a word; empty without tokens."""
        if not self.starts:
            return ""
        if len(self.starts) <= tokens:
            return self.text
        return self.text[: self.starts[tokens]].rpartition(" ")[0] if tokens > 0 else ""


def _blocks(extracted: Extracted) -> Iterator[tuple[int, int]]:
    """Yield the start and end of the blocks to tokenise; no token crosses their ends."""
    text, start = extracted.text, 0
    # A section may begin within a word and so change its tokens, but not at the start of a line.
    edges = (section.start for section in extracted.sections if section.start and text[section.start - 1] != "\n")
    for edge in (*edges, len(text)):
        while start < edge:
            end = min(start + BLOCK_CHARS, edge)
            if end < edge:
                end = text.rfind(" ", start + 1, end) + 1 or end
            yield start, end
            start = end


class _Tokens:
    """The token starts of a text that is cut from its beginning to its end.

    After a cut within a word, the tokens differ from the tokens of the whole text: the new ones are in `_recounted`,
    which replaces all starts between the cut and `_recounted_end`.
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
        """Return the number of tokens of `text[start:end]`. Text before the last cut can no longer be requested."""
        recounted = bisect_left(self._recounted, end) - bisect_left(self._recounted, start)
        return recounted + max(0, bisect_left(self._starts, end) - self._first_after(start))

    def chunk_end(self, start: int, end: int, size: int) -> int:
        """Return the end of the chunk from `start` with at most `size` tokens: `end`, or the best place before it.

        The rest of the text is cut into even parts, because a short last chunk would be a poor one.
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
        following = self._recounted[bisect_left(self._recounted, start) :]
        index = self._first_after(start) + tokens - len(following)
        if tokens < len(following):
            by_tokens = following[tokens]
        else:
            by_tokens = self._starts[index] if index < len(self._starts) else len(self.text)
        return min(by_tokens, start + tokens * TOKEN_CHARS)

    def _first_after(self, start: int) -> int:
        """Return the index in `_starts` of the first token at or after `start` that was not recounted."""
        return bisect_left(self._starts, max(start, self._recounted_end))

    def _split_word(self, start: int, end: int, size: int) -> int:
        """Return the last position before `end` that leaves a chunk of the right size.

        The two parts of a word have other tokens than the whole word. The first part is recounted here, and so is the
        text after it, as far as the next chunks reach.
        """
        while len(starts := self._tokenizer.token_starts(self.text[start:end])) > size:
            end = start + min(starts[size], (end - start) * 9 // 10)
        end = max(end, start + 1)
        most = min(RECOUNTED * (end - start), TOKEN_CHARS * CHUNK_TOKENS)
        limit = min(end + most, len(self.text))
        space = SPACE.search(self.text, end, limit)
        self._recounted_end = space.start() if space else limit
        again = self._tokenizer.token_starts(self.text[end : self._recounted_end])
        self._recounted = [end + offset for offset in again]
        return end


class _Lines:
    """Counts the lines of a text, from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._line = 1

    def place(self, start: int, end: int, heading: tuple[str, ...], page: int | None) -> ChunkPosition:
        """Return the position of `text[start:end]`; its lines ignore the surrounding white space."""
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
        """Return the line of a character at or after the last one requested."""
        self._line += self._text.count("\n", self._position, position)
        self._position = position
        return self._line
