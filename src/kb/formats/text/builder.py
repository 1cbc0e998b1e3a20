"""Shared tools of the readers: a text built line by line, and sections that follow its headings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from kb.api.omissions import together
from kb.formats.text.encoding import clean, one_line
from kb.formats.text.extracted import Extracted, Picture, Section
from kb.formats.text.titles import names_chapter

LONGEST_HEADING: Final = 300  # longer ones are paragraphs that only look like headings
_BELOW_HEADINGS: Final = 10
_CLAUSE_NAME: Final = re.compile(r"(?s).{1,80}?(?:(?=[.:;]\s)|$)|.{1,60}\b")
_LONGEST_OPENING: Final = 200  # of a letterhead, a date or an author before the title


class Heading(NamedTuple):
    """A heading at `start` of a text; lower levels contain higher ones. One without a title ends another."""

    start: int
    level: int
    title: str


def sections_under(text: str, headings: Sequence[Heading]) -> tuple[Section, ...]:
    """Return the partition of `text` in which each section begins at one of its headings, given in order."""
    return tuple(_sections(text, headings))


def lone_title(headings: Sequence[Heading]) -> str | None:
    """Return the only heading of the top level, if it is the first heading; otherwise None."""
    highest = min((heading.level for heading in headings), default=0)
    titles = [heading.title for heading in headings if heading.level == highest]
    return titles[0] if len(titles) == 1 and headings[0].level == highest else None


def _sections(text: str, headings: Sequence[Heading]) -> Iterator[Section]:
    ends = [heading.start for heading in headings[1:]] + [len(text)]
    preamble = headings[0].start if headings else len(text)
    if preamble:
        yield Section(0, preamble)
    above: list[Heading] = []
    for heading, end in zip(headings, ends, strict=False):
        above = [higher for higher in above if higher.level < heading.level] + [heading]
        yield Section(heading.start, end, tuple(heading.title for heading in above if heading.title))


def paged(
    title: str | None, pages: Sequence[TextBuilder], date: str | None = None, *, last: TextBuilder | None = None
) -> Extracted:
    """Return a document of numbered pages or slides, each built separately, and `last` without a number."""
    texts, sections, pictures, start = list[str](), list[Section](), list[Picture](), 0
    omitted = Counter[str]()
    for number, page in (*enumerate(pages, start=1), *([(None, last)] if last else [])):
        built = page.build()
        omitted.update(built.omitted)
        pictures += [picture._replace(place=start + picture.place, page=number) for picture in built.pictures]
        if built.text:
            texts.append(f"{built.text}\n")
            ends = [section.end for section in built.sections[:-1]] + [len(texts[-1])]
            sections += [
                replace(section, start=start + section.start, end=start + end, page=number)
                for section, end in zip(built.sections, ends, strict=True)
            ]
            start += len(texts[-1])
    return Extracted(
        title, "".join(texts), tuple(sections), date=date, pictures=tuple(pictures), omitted=together(omitted)
    )


class TextBuilder:
    """Builds a text from lines, paragraphs and headings."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._wants_blank = False
        self._closed: int | None = None
        self.headings: list[Heading] = []
        self._pictures: list[Picture] = []
        self._omitted: Counter[str] = Counter()

    def line(self, text: str) -> None:
        """Add `text` on its own line, or on several if it contains newlines."""
        if self._wants_blank and self._pieces:
            self._append("\n")
        if self._closed is not None:
            self.headings.append(Heading(self._length, self._closed, ""))
        self._wants_blank, self._closed = False, None
        self._append(clean(text) + "\n")

    def blank(self) -> None:
        """Add an empty line before the next line."""
        self._wants_blank = True

    def close(self, level: int) -> None:
        """End the section under a heading of that level: the next line is not part of it."""
        self._closed = level

    def paragraph(self, text: str) -> None:
        """Add `text` with an empty line before and after."""
        self.blank()
        self.line(text)
        self.blank()

    def heading(self, level: int, text: str) -> None:
        title = one_line(clean(text))
        if len(title) <= LONGEST_HEADING:
            self._closed = None
        self.paragraph(title)
        if len(title) <= LONGEST_HEADING:
            self.headings.append(Heading(self._length - len(title) - 1, level, title))

    def headed_rows(self, level: int, title: str, rows: Sequence[str]) -> None:
        """Add the header rows of a table; the next lines belong under them, as under a heading `title`."""
        first, *others = rows
        self._closed = None
        self.line(first)
        self.headings.append(
            Heading(self._length - len(clean(first)) - 1, level, one_line(clean(title))[:LONGEST_HEADING])
        )
        for row in others:
            self.line(row)

    def clause(self, depth: int, number: str, words: str) -> None:
        """Add a clause of a contract; the next lines belong to it, under its number and its name or first words.

        People refer to a clause by its number, so each gets its own section.
        """
        name = _CLAUSE_NAME.match(words)
        title = f"{number} {name[0] if name else ''}".strip()
        self.headed_rows(_BELOW_HEADINGS + depth, title, [f"{'  ' * depth}{number} {words}"])

    def listed(self, heading: str, lines: Iterable[str]) -> None:
        """Add the non-empty lines as a list under their own heading."""
        for number, line in enumerate(filter(None, lines)):
            if number == 0:
                self.heading(1, heading)
            self.line(f"- {line}")

    def speaker_notes(self, lines: Iterable[str]) -> None:
        if notes := "\n".join(filter(None, lines)):
            self.paragraph(f"Notes:\n{notes}")

    def picture(self, read: Callable[[], bytes] | None, name: str = "") -> None:
        if read:
            self._pictures.append(Picture(self._length, None, name, read))

    def omit(self, kind: str, count: int = 1) -> None:
        """Count things that are not read, of a kind in `kb.api.omissions`."""
        self._omitted[kind] += count

    def omit_all(self, counts: Mapping[str, int]) -> None:
        self._omitted.update(counts)

    def opening_title(self) -> str | None:
        """Return the first heading of a high level if the document begins with it, or nearly."""
        first = next((heading for heading in self.headings if heading.level <= 1 and heading.title), None)
        is_title = first and first.start <= _LONGEST_OPENING and not names_chapter(first.title)
        return first.title if first and is_title else None

    def build(self, title: str | None = None, date: str | None = None) -> Extracted:
        text = "".join(self._pieces)
        sections = sections_under(text, self.headings)
        return Extracted(
            title, text, sections, date=date, pictures=tuple(self._pictures), omitted=together(self._omitted)
        )

    def _append(self, piece: str) -> None:
        self._pieces.append(piece)
        self._length += len(piece)
