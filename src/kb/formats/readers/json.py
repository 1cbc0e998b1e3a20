"""JSON as it was written; JSON on one line is laid out for reading, and escapes are replaced by their characters."""

from __future__ import annotations

import json
import re
from typing import Final

from kb.formats.readers.agent_sessions import read_agent_session
from kb.formats.readers.chats import read_chats
from kb.formats.readers.geojson import read_geojson
from kb.formats.text.encoding import clean, decode
from kb.formats.text.extracted import Extracted
from kb.formats.text.terminal import without_terminal_signs

_INDENTS: Final = (2, 0)
_LONGEST_LAYOUT: Final = 4
"""The maximum length of a layout, as a multiple of its source; deeply nested values get less or no indentation."""
_ESCAPE: Final = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|r\\n|.)")
_SPACES: Final = {"r\\n": "\n", "n": "\n", "r": "\n", "t": "\t", "b": " ", "f": " "}


def read(data: bytes) -> Extracted:
    """Read a JSON file, even one with a value on each line, or text that only looks like JSON."""
    source = decode(data)
    if session := read_agent_session(source):
        return session
    if chats := read_chats(source):
        return chats
    if places := read_geojson(source):
        return places
    text = _laid_out(source) if "\n" not in source.strip() or "\\u" in source else source
    return Extracted.of_text(clean(without_terminal_signs(_ESCAPE.sub(_unescaped, text))))


def _unescaped(escape: re.Match[str]) -> str:
    """Return the character of an escape that would merge with the next word; quotes and backslashes stay escaped."""
    code = escape[0][1:]
    if len(code) > 4:
        return str(json.loads(f'"{escape[0]}"'))
    return _SPACES.get(code, escape[0])


def _laid_out(source: str) -> str:
    try:
        value = json.loads(source)
        layouts = (_layout(value, indent, _LONGEST_LAYOUT * len(source)) for indent in _INDENTS)
        return clean(next(filter(None, layouts), source))
    except (ValueError, RecursionError):
        return source


def _layout(value: object, indent: int, longest: int) -> str | None:
    """Return the value with each of its parts on a line; None if the result is longer than `longest`."""
    pieces = []
    for piece in json.JSONEncoder(indent=indent, ensure_ascii=False).iterencode(value):
        longest -= len(piece)
        if longest < 0:
            return None
        pieces.append(piece)
    return "".join(pieces)
