"""The section of a document under a heading, which is written as in an answer or as in the text."""

import re
from collections.abc import Callable
from itertools import takewhile
from typing import Final

from kb.api.errors import Invalid
from kb.client.client import JSON, EngineClient
from kb_mcp.tools.rendering import CUT, DELIMITERS, HEADING_SEPARATOR, heading_text

HEADING_LINE: Final = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.+)$", re.MULTILINE)
NUMBER: Final = re.compile(r"(?:\d{1,3}\.){0,3}\d{1,3}[.)]? ")
EMPHASIS: Final = "*_`#:. \t"
"""Characters around the words of a heading that do not count."""


async def document_under(engine: EngineClient, document_id: int, heading: str, around: int) -> JSON:
    """Return a document with the chunks under a heading, and `around` chunks before and after them.

    Raises:
        Invalid: the document has no such heading.
    """
    meant = heading.strip(' "\n')
    name = meant.rpartition(HEADING_SEPARATOR.strip())[2].removesuffix(CUT).strip()
    if name != meant:
        whole = await engine.document(document_id)
        if span := _span_of_path(whole["chunks"], meant):
            return _part(whole, *span, around)
    try:
        return await engine.document(document_id, heading=name or heading, around=around)
    except Invalid as error:
        whole = await engine.document(document_id)
        if span := _span_of_line(whole["chunks"], name):
            return _part(whole, *span, around)
        if "has no headings" not in error.detail:
            raise
        detail = f"heading: document {document_id} has no such heading. Pass words from the section as query instead."
        raise Invalid(detail) from error


def _part(whole: JSON, first: int, end: int, around: int) -> JSON:
    return whole | {"chunks": whole["chunks"][max(0, first - around) : end + around]}


def _span_of_path(chunks: list[JSON], shown: str) -> tuple[int, int] | None:
    """Return the first chunk under a path of headings, written as in answers, and the chunk after the last."""
    heading = _folded(shown.removesuffix(CUT))
    fits: Callable[[str, str], bool] = str.startswith if shown.endswith(CUT) else str.__eq__
    for start, chunk in enumerate(chunks):
        path = chunk["place"]["heading"]
        for depth in range(1, len(path) + 1):
            if fits(_folded(heading_text(path[:depth])), heading):
                under = takewhile(lambda chunk: chunk["place"]["heading"][:depth] == path[:depth], chunks[start:])  # noqa: B023 - at once
                return start, start + len(list(under))
    return None


def _span_of_line(chunks: list[JSON], name: str) -> tuple[int, int] | None:
    """Return the first chunk of the section that begins with a line of the text, and the chunk after the last."""
    text, heading = "".join(chunk["text"] for chunk in chunks), _folded(name)
    if not heading or (place := _section(text, heading) or _line(text, heading)) is None:
        return None
    start, end = place
    inside = [
        number
        for number, chunk in enumerate(chunks)
        if chunk["place"]["char_start"] < end and chunk["place"]["char_end"] > start
    ]
    return inside[0], inside[-1] + 1


def _section(text: str, heading: str) -> tuple[int, int] | None:
    """Return the start and end of the Markdown section whose heading equals, or failing that, contains, the words."""
    lines = list(HEADING_LINE.finditer(text))
    fits: tuple[Callable[[str, str], bool], ...] = (str.__eq__, str.__contains__)
    for fit in fits:
        for number, line in enumerate(lines):
            if fit(_folded(line[2]), heading):
                after = (other.start() for other in lines[number + 1 :] if len(other[1]) <= len(line[1]))
                return line.start(), next(after, len(text))
    return None


def _line(text: str, heading: str) -> tuple[int, int] | None:
    """Return the start and end of the first line that consists of the words."""
    start = 0
    for line in text.splitlines(keepends=True):
        if heading in (folded := _folded(line), NUMBER.sub("", folded)):
            return start, start + len(line)
        start += len(line)
    return None


def _folded(words: str) -> str:
    return " ".join(words.translate(DELIMITERS).strip(EMPHASIS).casefold().split())
