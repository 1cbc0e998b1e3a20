"""The lines that calendars (RFC 5545) and contacts (RFC 6350) are made of: folded, escaped, each a name and a value.

Not icalendar or vobject: they raise on the many files that break a rule, and leave the older formats unread.
"""

from __future__ import annotations

import re
from quopri import decodestring
from typing import TYPE_CHECKING, Final, NamedTuple

from kb.api.errors import Unreadable
from kb.formats.text.encoding import clean, decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# A line goes on in the next one that begins with a space, wherever that cuts it: within a character, too.
_FOLDS: Final = (b"\r\n ", b"\r\n\t", b"\n ", b"\n\t")
_LINE: Final = re.compile(
    r"(?:(?P<group>[\w-]{1,60})\.)?(?P<name>[A-Za-z0-9-]{1,60})"
    r"(?P<parameters>(?:;(?:[^\":;]|\"[^\"]*\")*+)*+):(?P<value>.*)",
    re.DOTALL,
)
_PARAMETER: Final = re.compile(r";(?P<name>[^=;\"]*)(?:=(?P<value>(?:[^\";]|\"[^\"]*\")*+))?")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_SEMICOLON: Final = re.compile(r"(?<!\\);")


class ContentLine(NamedTuple):
    """A property: `group` ties it to others, `parameters` are by their names in capitals."""

    group: str
    name: str
    parameters: Mapping[str, str]
    value: str

    @property
    def text(self) -> str:
        """The value as people read it."""
        return unescaped(self.value)

    @property
    def parts(self) -> list[str]:
        """The parts of a value between semicolons."""
        return [unescaped(part) for part in _SEMICOLON.split(self.value)]

    @property
    def is_base64(self) -> bool:
        return self.parameters.get("ENCODING", "").upper() in ("B", "BASE64") or ";base64," in self.value[:200]


def content_lines(data: bytes) -> Iterator[ContentLine]:
    """Yield the lines of a file, those that are none left out.

    Raises:
        Unreadable: the bytes are not text.
    """
    for fold in _FOLDS:
        data = data.replace(fold, b"")
    lines = iter(decode(data).split("\n"))
    for line in lines:
        found = _LINE.match(line)
        if not found:
            continue
        value, parameters = found["value"], _joined(_parameters(found["parameters"]))
        if parameters.get("ENCODING", "").upper() == "QUOTED-PRINTABLE":
            while value.endswith("=") and (following := next(lines, None)) is not None:
                value = value[:-1] + following
            value = _quoted(value, parameters.get("CHARSET"))
        yield ContentLine(found["group"] or "", found["name"].upper(), parameters, value)


def unescaped(value: str) -> str:
    """Return a value without its escapes."""
    return _ESCAPE.sub(lambda found: "\n" if found[1] in "nN" else found[1], value)


def _joined(parameters: Iterator[tuple[str, str]]) -> dict[str, str]:
    """Return parameters by their names; those given several times have their values in one, with commas between."""
    joined = dict[str, str]()
    for name, value in parameters:
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _parameters(written: str) -> Iterator[tuple[str, str]]:
    """Yield the parameters; in older files some are values alone."""
    for found in _PARAMETER.finditer(written):
        name, value = found["name"].strip().upper(), (found["value"] or "").strip('"')
        if found["value"] is not None:
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
