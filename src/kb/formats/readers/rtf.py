"""Rich text (.rtf): the words, one line per paragraph."""

from __future__ import annotations

import re
from typing import Final

from striprtf.striprtf import font_table_group, rtf_to_text

from kb.api.errors import Unreadable
from kb.formats.text.builder import TextBuilder
from kb.formats.text.extracted import Extracted
from kb.formats.text.titles import meaningful

_TITLE: Final = re.compile(r"\{\\title ((?:[^{}\\]|\\[^\n]){1,500})\}")
_BEYOND_ASCII: Final = re.compile(r"[\x80-\xff]")
_CODE_PAGE: Final = re.compile(r"\\ansicpg(\d+)")
_LINK: Final = re.compile(
    r"""(?i)\{\\field\{\s{0,9}\\\*\\fldinst\s{0,9}\{[^\n"]{0,99}HYPERLINK\s("[^\n"]{0,2000}")[^\n{}]{0,99}\}{2}"""
    r"""\s{0,9}\{[^\n]{0,999}?\}{2,3}"""
)
_LINK_WORD: Final = re.compile(r"(?i)(HYPERLINK)(?=\s\")")
_OBJECT: Final = "\\objdata"
_SHOWN: Final = re.compile(
    r"\{\\(?:\*\\shpinst|object|result|shp|shptxt|footnote|\*\\annotation|header[flr]?|footer[flr]?)(?![a-z])"
)
_DELETED: Final = re.compile(r"(?<!\\)\{(?>[^{}]*?\\deleted(?![a-z\d]))(?:(?!\\deleted0|\\plain)[^{}])*+\}")
"""A group of words that are deleted under revision; other groups may have words behind them that are not."""
_PARAGRAPH: Final = "\\par"
_NOTE_OR_END: Final = re.compile(r"\{\\(?:footnote|\*\\annotation)(?![a-z])|\\par(?![a-z\d])")
_BRACE: Final = re.compile(r"\\[\\{}]|[{}]")
_FONT: Final = re.compile(r"\\f(\d{1,9})(?!\d)|\\fcharset(\d{1,9})")


def read(data: bytes) -> Extracted:
    source = data.decode("latin-1")
    text = TextBuilder()
    for line in decode_rtf(source).split("\n"):
        if words := _row(line.strip(" \0\r")):
            text.line(words)
        else:
            text.blank()
    if objects := source.count(_OBJECT):
        text.omit("objects", objects)
    title = _TITLE.search(source)
    header = _CODE_PAGE.search(source)
    page = header[0] if header else ""
    return text.build(meaningful(decode_rtf(rf"{{\rtf1\ansi{page} {title[1]}}}")) if title else None)


def decode_rtf(source: str) -> str:
    """Return the words of rich text, given with one character per byte.

    Raises:
        Unreadable: it does not follow the format.
    """
    # Unescaped bytes beyond ASCII use the code page, like escaped ones.
    escaped = source if "\\bin" in source else _BEYOND_ASCII.sub(lambda match: f"\\'{ord(match[0]):02x}", source)
    try:
        shown = _SHOWN.sub(
            r"{\\plain", _with_notes_behind(escaped)
        )  # text in place of an object, in a text box or a note
        shown = _DELETED.sub("", shown)
        text: str = rtf_to_text(_with_short_fonts(_with_links(shown)), errors="replace")
    except (ValueError, LookupError, OverflowError) as error:
        raise Unreadable("the rich text is damaged") from error
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _with_notes_behind(source: str) -> str:
    """Return rich text whose notes and comments, which may be in the middle of a word, follow their paragraphs."""
    pieces, notes, place = list[str](), list[str](), 0
    for found in _NOTE_OR_END.finditer(source):
        if found.start() < place:  # in a note
            continue
        pieces.append(source[place : found.start()])
        if found[0] == _PARAGRAPH:
            place = found.end()
            pieces += [_PARAGRAPH, *notes]
            notes.clear()
        else:
            place = _end_of_group(source, found.start())
            notes.append(f" {source[found.start() : place]}{_PARAGRAPH}")
    last = source.rfind("}", place)
    end = last if last >= 0 else len(source)
    return "".join([*pieces, source[place:end], _PARAGRAPH if notes else "", *notes, source[end:]])


def _end_of_group(source: str, start: int) -> int:
    depth = 0
    for found in _BRACE.finditer(source, start):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            return found.end()
    return len(source)


def _with_links(source: str) -> str:
    """Return rich text with the addresses of its links after them, in time linear in its size."""
    shown = _LINK.sub(r"\g<0>(\1)", source)
    return _LINK_WORD.sub(r"\1{}", shown)  # an empty group, so that striprtf does not search for a link


def _with_short_fonts(source: str) -> str:
    """Return rich text whose table of fonts contains only the fonts' character sets, one font per line."""
    table = font_table_group(source)
    fonts, number = list[str](), ""
    for match in _FONT.finditer(table):
        number = match[1] or number
        if match[2] and number:
            fonts.append(rf"{{\f{number}\fcharset{match[2]} x;}}")
    lines = "\n".join(fonts)
    return source.replace(table, rf"{{\fonttbl{lines}}}", 1) if table else source


def _row(line: str) -> str:
    """Return a line, or the cells of a table's row, each of which ends with a bar."""
    return " | ".join(cell.strip() for cell in line[:-1].split("|")) if line.endswith("|") else line
