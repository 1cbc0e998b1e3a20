"""What the readers share: a text put together line by line, and sections that follow its headings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from kb.formats.extracted import Extracted, Section
from kb.formats.text.encoding import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONGEST_HEADING: Final = 300  # more is a paragraph that only looks like a heading


class Heading(NamedTuple):
    """A heading that begins at `start` of a text; a lower level stands above a higher one."""

    start: int
    level: int
    title: str


def sections_under(text: str, headings: Sequence[Heading]) -> tuple[Section, ...]:
    """Return the partition of `text` in which each section begins at one of its headings, given in order."""
    return tuple(_sections(text, headings))


def lone_title(headings: Sequence[Heading]) -> str | None:
    """Return the heading that stands above all others, if there is one."""
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
        yield Section(heading.start, end, tuple(each.title for each in above))


def paged(title: str | None, pages: Sequence[TextBuilder]) -> Extracted:
    """Return a document of numbered pages or slides, each put together by itself."""
    texts, sections, start = list[str](), list[Section](), 0
    for number, page in enumerate(pages, start=1):
        built = page.build()
        if built.text:
            texts.append(f"{built.text}\n")
            ends = [section.end for section in built.sections[:-1]] + [len(texts[-1])]
            sections += [
                replace(section, start=start + section.start, end=start + end, page=number)
                for section, end in zip(built.sections, ends, strict=True)
            ]
            start += len(texts[-1])
    return Extracted(title, "".join(texts), tuple(sections))


class TextBuilder:
    """Puts a text together from lines, paragraphs and headings."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._wants_blank = False
        self.headings: list[Heading] = []

    def line(self, text: str) -> None:
        """Add `text` on a line of its own, or on several if it has newlines."""
        if self._wants_blank and self._pieces:
            self._append("\n")
        self._wants_blank = False
        self._append(clean(text) + "\n")

    def blank(self) -> None:
        """See to an empty line before whatever comes next."""
        self._wants_blank = True

    def paragraph(self, text: str) -> None:
        """Add `text` with an empty line before and after."""
        self.blank()
        self.line(text)
        self.blank()

    def heading(self, level: int, text: str) -> None:
        """Add a heading, at which a section begins."""
        title = one_line(clean(text))
        self.paragraph(title)
        if len(title) <= LONGEST_HEADING:
            self.headings.append(Heading(self._length - len(title) - 1, level, title))

    def headed_row(self, level: int, row: str) -> None:
        """Add the row that names a table's columns: the rows below it stand under it, as under a heading."""
        self.line(row)
        title = one_line(clean(row))
        start = self._length - len(clean(row)) - 1
        self.headings.append(Heading(start, level, title[:LONGEST_HEADING]))

    def build(self, title: str | None = None) -> Extracted:
        """Return the document so far."""
        text = "".join(self._pieces)
        return Extracted(title, text, sections_under(text, self.headings))

    def _append(self, piece: str) -> None:
        self._pieces.append(piece)
        self._length += len(piece)
