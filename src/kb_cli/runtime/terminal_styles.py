"""Styled text for a terminal. Rich does more, but takes longer to load than a whole search."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, groupby, pairwise
from typing import Final, NamedTuple
from unicodedata import category, combining, east_asian_width

ESCAPE: Final = "\x1b"
PLAIN_TERMINALS: Final = {"dumb", "unknown"}
COLOURS: Final = range(30, 50)
WORD: Final = re.compile(r"\S+\s*|\s+")
ELLIPSIS: Final = "…"


class Style(NamedTuple):
    """The style of a character: terminal codes, and the target of a link."""

    numbers: tuple[int, ...] = ()
    link: str = ""


PLAIN: Final = Style()
BOLD: Final = Style((1,))
DIM: Final = Style((2,))
GREEN: Final = Style((32,))
CYAN: Final = Style((36,))
MATCH: Final = Style((1, 31))


class Styled:
    def __init__(self, text: str = "", style: Style = PLAIN) -> None:
        self.text = text
        self.styles = [style] * len(text)

    def __add__(self, other: Styled | str) -> Styled:
        return Styled.join((self, other if isinstance(other, Styled) else Styled(other)))

    def __getitem__(self, part: slice) -> Styled:
        cut = Styled()
        cut.text, cut.styles = self.text[part], self.styles[part]
        return cut

    @classmethod
    def join(cls, parts: Iterable[Styled], separator: str = "") -> Styled:
        joined = cls()
        texts: list[str] = []
        for number, part in enumerate(parts):
            if number and separator:
                joined.styles += [PLAIN] * len(separator)
            texts.append(part.text)
            joined.styles += part.styles
        joined.text = separator.join(texts)
        return joined

    def stylize(self, start: int, end: int, style: Style) -> None:
        self.styles[start:end] = [style] * len(self.styles[start:end])

    def replaced(self, texts: Mapping[int, str]) -> Styled:
        if not texts:
            return self
        pieces = (
            (texts.get(at, character), style)
            for at, (character, style) in enumerate(zip(self.text, self.styles, strict=True))
        )
        return Styled.join(Styled(text, style) for text, style in pieces if text)

    def wrap(self, width: int) -> list[Styled]:
        """Return the text as lines of at most `width` columns, without trailing white space."""
        ends = accumulate(len(line) + 1 for line in self.text.split("\n"))
        starts = [0, *ends]
        lines = (self[start : end - 1] for start, end in pairwise(starts))
        return [part for line in lines for part in line.wrap_line(width)]

    def wrap_line(self, width: int) -> Iterator[Styled]:
        """Yield one line as lines of at most `width` columns."""
        start = position = columns = 0
        for word in WORD.finditer(self.text):
            needed = text_width(word[0].rstrip())
            if columns and columns + needed > width:
                yield self.stripped(start, position)
                start, columns = position, 0
            for character in word[0] if needed > width else ():  # a word that is wider than a line
                if columns and columns + text_width(character) > width:
                    yield self.stripped(start, position)
                    start, columns = position, 0
                columns += text_width(character)
                position += 1
            if needed <= width:
                columns += text_width(word[0])
            position = word.end()
        yield self.stripped(start, len(self.text))

    def stripped(self, start: int, end: int) -> Styled:
        return self[start : start + len(self.text[start:end].rstrip())]

    def render(self) -> str:
        """Return the text for standard output, without styles unless it is a terminal."""
        if not is_styled():
            return self.text
        position, pieces = 0, list[str]()
        for style, group in groupby(self.styles):
            end = position + sum(1 for _ in group)
            pieces.append(paint(self.text[position:end], style))
            position = end
        return "".join(pieces)


def paint(text: str, style: Style) -> str:
    numbers = [number for number in style.numbers if number not in COLOURS or not os.environ.get("NO_COLOR")]
    if numbers:
        text = f"{ESCAPE}[{';'.join(map(str, numbers))}m{text}{ESCAPE}[0m"
    return f"{ESCAPE}]8;;{style.link}{ESCAPE}\\{text}{ESCAPE}]8;;{ESCAPE}\\" if style.link else text


def is_styled() -> bool:
    """Return whether standard output is a terminal that supports styles."""
    if os.name == "nt" and not ("WT_SESSION" in os.environ or "TERM" in os.environ):
        return False
    return sys.stdout.isatty() and os.environ.get("TERM", "").lower() not in PLAIN_TERMINALS


def width_of_terminal() -> int:
    return shutil.get_terminal_size().columns


def text_width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(map(character_width, text))


def character_width(character: str) -> int:
    if combining(character) or category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in ("W", "F") else 1


def shorten(text: str, width: int) -> str:
    """Return a text cut or padded to exactly `width` columns."""
    if text_width(text) > width:
        while text and text_width(text) > width - 1:
            text = text[:-1]
        text += ELLIPSIS
    return text + " " * (width - text_width(text))


def shorten_start(text: str, width: int) -> str:
    """Return the end of a text that fits in `width` columns."""
    if text_width(text) <= width:
        return text
    while text and text_width(text) >= width:
        text = text[1:]
    return ELLIPSIS + text
