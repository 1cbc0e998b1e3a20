"""The lines of calendars (RFC 5545) and contacts (RFC 6350): folded, escaped, each a name and a value.

kb does not use icalendar or vobject, because they fail on the many files that break a rule, and do not read the older
formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from quopri import decodestring
from typing import Final, NamedTuple

from kb.api.errors import Unreadable
from kb.formats.text.encoding import as_utf8, clean, decode

# A line continues on the next if that begins with a space; the break may be anywhere, even within a character.
_FOLDS: Final = (b"\r\n ", b"\r\n\t", b"\n ", b"\n\t")
_LINE: Final = re.compile(
    r"(?:(?P<group>[\w-]{1,60})\.)?(?P<name>[A-Za-z0-9-]{1,60})"
    r"(?P<parameters>(?:;(?:[^\":;]|\"[^\"]*\")*+)*+):(?P<value>.*)",
    re.DOTALL,
)
_PARAMETER: Final = re.compile(r";(?P<name>[^=;\"]*)(?:=(?P<value>(?:[^\";]|\"[^\"]*\")*+))?")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_OWN: Final = re.compile(r"^X-(?:(?:MS|EVOLUTION|KADDRESSBOOK|PHONETIC)-)?(?=.)")
_SEMICOLON: Final = re.compile(r"(?<!\\);")


class ContentLine(NamedTuple):
    """A property: `group` ties it to others, `parameters` are by their names in capitals."""

    group: str
    name: str
    parameters: Mapping[str, str]
    value: str

    @property
    def text(self) -> str:
        return unescaped(self.value)

    @property
    def parts(self) -> list[str]:
        return [unescaped(part) for part in _SEMICOLON.split(self.value)]

    @property
    def is_base64(self) -> bool:
        return self.parameters.get("ENCODING", "").upper() in ("B", "BASE64") or ";base64," in self.value[:200].lower()


def content_lines(data: bytes) -> Iterator[ContentLine]:
    """Yield the properties of a file; a line that does not begin a property continues the previous value.

    Raises:
        Unreadable: the bytes are not text.
    """
    data = as_utf8(data)
    for fold in _FOLDS:
        data = data.replace(fold, b"")
    begun, written = None, list[str]()
    for line in decode(data).split("\n"):
        match = None if begun and _goes_on(begun, written[-1]) else _LINE.match(line)
        if not match:
            written.append(line)
            continue
        if begun:
            yield _content_line(begun, written)
        begun, written = match, [match["value"]]
    if begun:
        yield _content_line(begun, written)


def _goes_on(begun: re.Match[str], written: str) -> bool:
    """Return whether a quoted-printable value continues on the next line."""
    return written.endswith("=") and "QUOTED-PRINTABLE" in begun["parameters"].upper()


def _content_line(begun: re.Match[str], written: Sequence[str]) -> ContentLine:
    value, parameters = "\n".join(written), _joined(_parameters(begun["parameters"]))
    if len(written) > 1:
        value = value.rstrip()
    if parameters.get("ENCODING", "").upper() == "QUOTED-PRINTABLE":
        value = _quoted(value, parameters.get("CHARSET"))
    return ContentLine(begun["group"] or "", begun["name"].upper(), parameters, value)


def spoken_name(name: str) -> str:
    """Return a readable name for a property without a label: X-SPOUSE becomes Spouse."""
    return _OWN.sub("", name).replace("-", " ").capitalize()


def unescaped(value: str) -> str:
    return _ESCAPE.sub(lambda match: "\n" if match[1] in "nN" else match[1], value)


def _joined(parameters: Iterator[tuple[str, str]]) -> dict[str, str]:
    """Return parameters by their names; repeated ones have their values joined by commas."""
    joined = dict[str, list[str]]()
    for name, value in parameters:
        joined.setdefault(name, []).append(value)
    return {name: ",".join(values) for name, values in joined.items()}


def _parameters(written: str) -> Iterator[tuple[str, str]]:
    """Yield the parameters; in older files, some are only values."""
    for match in _PARAMETER.finditer(written):
        name, value = match["name"].strip().upper(), (match["value"] or "").strip('"')
        if match["value"] is not None:
            yield name, value
        elif name in ("QUOTED-PRINTABLE", "BASE64"):
            yield "ENCODING", name
        elif name:
            yield "TYPE", name


def _quoted(value: str, charset: str | None) -> str:
    try:
        return clean(decode(decodestring(value.encode()), charset))
    except Unreadable:
        return value
