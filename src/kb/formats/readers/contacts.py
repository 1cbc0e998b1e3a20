"""Contacts (.vcf): each under its name, with numbers, addresses and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kb.formats.extracted import Extracted
from kb.formats.text.builder import TextBuilder
from kb.formats.text.content_lines import ContentLine, content_lines
from kb.formats.text.embedded import embedded_text
from kb.formats.text.encoding import decode, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LABELS: Final = {
    "NICKNAME": "Nickname",
    "ORG": "Organization",
    "TITLE": "Title",
    "ROLE": "Role",
    "TEL": "Phone",
    "EMAIL": "Email",
    "IMPP": "Messenger",
    "X-SOCIALPROFILE": "Profile",
    "ADR": "Address",
    "URL": "Link",
    "BDAY": "Birthday",
    "ANNIVERSARY": "Anniversary",
    "RELATED": "Related",
    "X-ABRELATEDNAMES": "Related",
    "MEMBER": "Member",
    "CATEGORIES": "Categories",
    "NOTE": "Note",
    "PHOTO": "Photo",
    "LOGO": "Logo",
}
_SAYS_NOTHING: Final = {"INTERNET", "PREF", "VOICE", "X400", ""}
_PARTS: Final = {"ADR", "ORG", "N"}


def read(data: bytes) -> Extracted:
    """Read contacts; a file without any as the text it is."""
    cards = _cards(content_lines(data))
    if not cards:
        return Extracted.of_text(decode(data))
    text = TextBuilder()
    for card in cards:
        _write(card, text)
    return text.build(_name(cards[0]) or None if len(cards) == 1 else None)


def _cards(lines: Iterable[ContentLine]) -> list[list[ContentLine]]:
    cards, is_inside = list[list[ContentLine]](), False
    for line in lines:
        if line.name in ("BEGIN", "END") and line.value.strip().upper() == "VCARD":
            is_inside = line.name == "BEGIN"
            if is_inside:
                cards.append([])
        elif is_inside:
            cards[-1].append(line)
    return [card for card in cards if card]


def _write(card: Sequence[ContentLine], text: TextBuilder) -> None:
    text.heading(1, _name(card) or "Contact")
    labels = {line.group: line.text for line in card if line.name == "X-ABLABEL"}
    for name, label in _LABELS.items():
        for line in card:
            if line.name == name and (said := _said(line)):
                kind = _kind(line, labels)
                text.line(f"{label} ({kind}): {said}" if kind else f"{label}: {said}")


def _name(card: Iterable[ContentLine]) -> str:
    """Return what a contact is called: by its full name, else by the parts of it, else by its organization."""
    first = {line.name: line for line in reversed(list(card)) if line.value.strip(" ;")}
    if "FN" in first:
        return one_line(first["FN"].text)
    if "N" in first:
        family, given, middle, before, after = [*first["N"].parts, "", "", "", "", ""][:5]
        return one_line(" ".join((before, given, middle, family, after)))
    return one_line(" ".join(first["ORG"].parts)) if "ORG" in first else ""


def _said(line: ContentLine) -> str:
    if line.name in ("PHOTO", "LOGO"):
        is_inside = line.is_base64 or line.value.startswith("data:")
        kind = line.parameters.get("TYPE", "jpeg").rpartition("/")[2].lower()
        return embedded_text(f"image/{kind}", 3 * len(line.value) // 4) if is_inside else line.value.strip()
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
