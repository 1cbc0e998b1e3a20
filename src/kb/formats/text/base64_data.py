"""Pictures and other files inside a text as base64: each is replaced by a few words, on as many lines as before."""

from __future__ import annotations

import re
from typing import Final

_CHARACTER: Final = r"(?:[A-Za-z0-9+/_-]|%2[BbFf]|\\/)"
_WRAP: Final = r"(?:\r?\n|\\r\\n|\\n|&#10;|&#xA;|=\r?\n)[ \t>]*+"
"""The line ends within base64, which JSON, XML and mail write in different ways."""

_LAST: Final = rf"{_WRAP}{_CHARACTER}++(?=\s*+(?:[)>\"'\]<=]|%3[Dd]|\Z)|[ \t]*+\r?\n[ \t]*+\r?\n)"
_MORE: Final = rf"(?:{_WRAP}{_CHARACTER}{{40,}}+)*+(?:{_LAST})?+(?:=|%3[Dd]){{0,2}}+"
_ADDRESS: Final = re.compile(
    r"(?P<link>(?<=\])\(\s{0,9})?(?P<angle><)?"
    r"(?i:data):(?P<type>[\w.+-]{1,80}\\?/[\w.+-]{1,100})?(?:;[\w.+-]{1,40}=[^;,\s\"'<>()]{0,100}){0,4}"
    rf"(?:;\s?base64,\s?(?P<base64>{_CHARACTER}{{24,}}+{_MORE})"
    r"|(?:;[\w-]{1,40})?,(?P<drawing>[^\s\"'()<>]{64,}+|\s{0,9}<svg[^>]{0,9999}>(?:(?!</?svg).)*+</svg>))"
    r"(?(angle)>?)(?(link)(?:(?:\s{1,9}(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'))?\s{0,9}\))?)",
    re.DOTALL,
)
_SIGNATURES: Final = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "SUkqA": "image/tiff",
    "TU0AK": "image/tiff",
    "JVBERi0": "application/pdf",
    "UEsDB": "application/zip",
    "0M8R4KGx": "application/x-ole-storage",
    "H4sIA": "application/gzip",
}
"""The beginning of base64 for files that are often embedded without an address that gives their type."""

_BARE: Final = re.compile(
    rf"(?<![A-Za-z0-9+/=_-])(?P<signature>{'|'.join(map(re.escape, _SIGNATURES))}){_CHARACTER}{{50,}}+{_MORE}"
)
_DATA: Final = re.compile("[dD][aA][tT][aA]:")
_BEFORE_DATA: Final = re.compile(r"(?:(?<=\])\(\s{0,9})?<?\Z")
_MOST_BEFORE_DATA: Final = 11
_LEAST_BARE: Final = 200
_BLOB: Final = re.compile(r"(?<![A-Za-z0-9+/=_\\-])(?:[A-Za-z0-9+/]|\\/){1000,}+={0,2}")
_PIECE_LENGTH: Final = 500
_PIECE: Final = re.compile(rf"[A-Za-z0-9+/\\]{{{_PIECE_LENGTH}}}")
_CLASSES: Final = (re.compile("[A-Z]"), re.compile("[a-z]"), re.compile("[0-9]"))
_NAMES: Final = {"image": "picture", "audio": "sound", "video": "video", "font": "font"}
_LEAST: Final = {"image": 24}
_LEAST_OF_OTHERS: Final = 64
_SAID: Final = re.compile(r"(\[(?:picture|sound|video|font|file): [^\s,\]]+), (\d[\d.]* [kMG]?B\])")
_DRAWING: Final = "image/svg+xml"
_NO_DATA: Final = re.compile(r"(?:[\s=]|\\[nr]?)+")


def without_embedded(text: str) -> str:
    """Return a text with `[picture: image/png, 2 MB]` in place of a picture; the line numbers stay the same."""
    # Quick checks come first, because few texts contain any of these.
    text = _without_addresses(text)
    if any(signature in text for signature in _SIGNATURES):
        text = _BARE.sub(_bare, text)
    if any(_PIECE.match(text, start) for start in range(0, len(text), _PIECE_LENGTH)):
        text = _BLOB.sub(_blob, text)
    return text


def without_embedded_bytes(data: bytes, separator: str = ", ") -> bytes:
    """Return the bytes of a text in any ASCII-compatible encoding, with the same replacements.

    `separator` is put between type and size, because a comma would split the cells of a table.
    """
    text = data.decode("latin-1")
    if (without := without_embedded(text)) == text:
        return data
    return (without if separator == ", " else _SAID.sub(rf"\1{separator}\2", without)).encode("latin-1")


def size_text(count: int) -> str:
    """Return a number of bytes in readable form: 2 MB, 1.4 MB, 12 kB."""
    size, units = float(count), iter(("B", "kB", "MB", "GB"))
    unit = next(units)
    while size >= 999.5 and (larger := next(units, "")):
        size, unit = size / 1000, larger
    shown = f"{size:.1f}".removesuffix(".0") if size < 10 else f"{size:.0f}"
    return f"{shown} {unit}"


def embedded_text(media_type: str, count: int) -> str:
    kind = _NAMES.get(media_type.partition("/")[0], "file")
    return f"[{kind}: {media_type}, {size_text(count)}]"


def _without_addresses(text: str) -> str:
    parts, end = list[str](), 0
    for data in _DATA.finditer(text):
        if data.start() < end:
            continue
        before = _BEFORE_DATA.search(text, max(end, data.start() - _MOST_BEFORE_DATA), data.start())
        if match := _ADDRESS.match(text, before.start() if before else data.start()):
            parts += [text[end : match.start()], _address(match)]
            end = match.end()
    return "".join([*parts, text[end:]]) if parts else text


def _address(match: re.Match[str]) -> str:
    media_type = (match["type"] or "text/plain").lower().replace("\\", "")
    payload = match["base64"] or match["drawing"]
    is_short = len(payload) < _LEAST.get(media_type.partition("/")[0], _LEAST_OF_OTHERS)
    if is_short or (match["drawing"] and media_type != _DRAWING):
        return match[0]
    size = _decoded_size(payload) if match["base64"] else len(payload)
    return embedded_text(media_type, size) + _line_ends(match[0])


def _bare(match: re.Match[str]) -> str:
    if len(match[0]) < _LEAST_BARE:
        return match[0]
    return embedded_text(_SIGNATURES[match["signature"]], _decoded_size(match[0])) + _line_ends(match[0])


def _blob(match: re.Match[str]) -> str:
    is_data = all(pattern.search(match[0]) for pattern in _CLASSES)
    return f"[data: {size_text(_decoded_size(match[0]))}]" if is_data else match[0]


def _decoded_size(base64: str) -> int:
    return 3 * len(_NO_DATA.sub("", base64)) // 4


def _line_ends(text: str) -> str:
    return "\n" * text.count("\n")
