"""Contacts (.vcf): each under its name, with numbers, addresses and notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kb.formats.text.base64_data import embedded_text
from kb.formats.text.builder import TextBuilder
from kb.formats.text.content_lines import ContentLine, content_lines, spoken_name
from kb.formats.text.encoding import decode, one_line
from kb.formats.text.extracted import Extracted

_FIRST: Final = (
    *("NICKNAME", "ORG", "TITLE", "ROLE", "TEL", "EMAIL", "IMPP", "X-SOCIALPROFILE", "ADR", "URL", "BDAY"),
    *("ANNIVERSARY", "RELATED", "X-ABRELATEDNAMES", "MEMBER", "CATEGORIES", "NOTE", "PHOTO", "LOGO"),
)
"""The properties that come first, in this order."""

_LABELS: Final = {
    "ORG": "Organization",
    "TEL": "Phone",
    "IMPP": "Messenger",
    "X-SOCIALPROFILE": "Profile",
    "ADR": "Address",
    "URL": "Link",
    "BDAY": "Birthday",
    "X-ABRELATEDNAMES": "Related",
}
_NOT_SHOWN: Final = {
    *("VERSION", "PRODID", "UID", "REV", "FN", "N", "KIND", "CLASS", "KEY", "SOURCE", "MAILER", "SORT-STRING"),
    *("PROFILE", "CLIENTPIDMAP", "XML", "X-ABLABEL", "X-ABADR", "X-ABSHOWAS", "X-ABUID", "X-ACCOUNT", "X-PRODID"),
    *("X-IMAGEHASH", "X-IMAGETYPE", "X-ADDRESSING-GRAMMAR", "X-SHARED-PHOTO-DISPLAY-PREF", "X-EVOLUTION-FILE-AS"),
    *("X-MOZILLA-HTML", "X-EVOLUTION-WEBDAV-ETAG", "X-EVOLUTION-WEBDAV-HREF", "X-MS-OL-DESIGN", "X-MS-CARDPICTURE"),
    *("X-MS-OL-DEFAULT-POSTAL-ADDRESS", "X-RADICALE-NAME"),
}
"""Properties that only programs need. All others are shown, under a label or their own name."""

_SAYS_NOTHING: Final = {"INTERNET", "PREF", "VOICE", "X400", ""}
_PICTURES: Final = {"avif", "bmp", "gif", "heic", "jpeg", "jpg", "png", "svg+xml", "tiff", "webp"}
_PARTS: Final = {"ADR", "ORG", "N"}


def read(data: bytes) -> Extracted:
    """Read contacts; a file without contacts is read as plain text."""
    cards = _cards(content_lines(data))
    if not cards:
        return Extracted.of_text(decode(data))
    text = TextBuilder()
    for card in cards:
        _write(card, text)
    return text.build(_name(cards[0]) or None if len(cards) == 1 else None)


def _cards(lines: Iterable[ContentLine]) -> list[list[ContentLine]]:
    cards, open_ones = list[list[ContentLine]](), list[list[ContentLine]]()
    for line in lines:
        if line.name == "BEGIN" and line.value.strip().upper() == "VCARD":
            cards.append([])
            open_ones.append(cards[-1])
        elif line.name == "END" and open_ones:
            open_ones.pop()
        elif open_ones:
            open_ones[-1].append(line)
    return [card for card in cards if card]


def _write(card: Sequence[ContentLine], text: TextBuilder) -> None:
    name = _name(card)
    text.heading(1, name or "Contact")
    if (full := _full_name(card)) and not set(full.split()) <= set(name.split()):
        text.line(f"Full name: {full}")
    labels = {line.group: line.text for line in card if line.name == "X-ABLABEL"}
    lines = dict[str, list[ContentLine]]()
    for line in card:
        if line.name not in _NOT_SHOWN:
            lines.setdefault(line.name, []).append(line)
    for kind in dict.fromkeys([*_FIRST, *lines]):
        for line in lines.get(kind, ()):
            if any(map(str.isalnum, said := _said(line))):
                more = _kind(line, labels)
                text.line(f"{_LABELS.get(kind) or spoken_name(kind)}{f' ({more})' if more else ''}: {said}")


def _name(card: Sequence[ContentLine]) -> str:
    """Return the name of a contact: the full name, or failing that, its parts, or failing that, the organization."""
    first = {line.name: line for line in reversed(card) if line.value.strip(" ;")}
    if "FN" in first:
        return one_line(first["FN"].text)
    if name := _full_name(card):
        return name
    return one_line(" ".join(first["ORG"].parts)) if "ORG" in first else ""


def _full_name(card: Sequence[ContentLine]) -> str:
    parts = next((line.parts for line in card if line.name == "N"), [])
    family, given, middle, before, after = [*parts, "", "", "", "", ""][:5]
    return one_line(" ".join((before, given, middle, family, after)))


def _said(line: ContentLine) -> str:
    if line.name in ("PHOTO", "LOGO"):
        is_inside = line.is_base64 or line.value.startswith("data:")
        written = line.parameters.get("TYPE", "").rpartition("/")[2].lower()
        kind = written if written in _PICTURES else "jpeg"
        return embedded_text(f"image/{kind}", 3 * len(line.value) // 4) if is_inside else line.value.strip()
    if line.is_base64:
        return embedded_text("application/octet-stream", 3 * len(line.value) // 4)
    if line.name in _PARTS:
        return one_line(", ".join(filter(None, (part.strip() for part in line.parts))))
    return one_line(line.text) if line.name != "NOTE" else line.text.strip()


def _kind(line: ContentLine, labels: dict[str, str]) -> str:
    if line.group in labels:
        return one_line(labels[line.group].strip("_$!<>"))
    if line.name in ("PHOTO", "LOGO"):
        return ""
    kinds = (kind.strip() for kind in line.parameters.get("TYPE", "").split(","))
    return ", ".join(kind.lower() for kind in kinds if kind.upper() not in _SAYS_NOTHING)
