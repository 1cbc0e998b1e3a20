"""A single form for signs that Unicode encodes in several ways, such as full-width digits, ligatures and units."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

RANGES: Final = (
    (0x00A0, 0x3131),
    (0x3190, 0x3400),
    (0xFB00, 0xFB50),
    (0xFB50, 0xFE00),
    (0xFE30, 0xFFA0),
    (0xFFE0, 0xFFF0),
)
"""The ranges of such signs, without single Korean letters, which would join their neighbours."""

BEYOND: Final = "\U0001d400-\U0001d7ff\U0001f100-\U0001f169"
"""Mathematical letters, and letters in circles and squares, as ranges because a pattern tests single ones in turn."""

AS_WRITTEN: Final = frozenset("™℠")
"""Signs at the end of a name, which would otherwise become letters of the name."""

SUPERSCRIPTS: Final = "¹²³⁰⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉"
"""They are digits after a letter, as in m² and H₂O; after a digit they would make another number."""

DIGITS: Final = {
    code: ord("0") + unicodedata.decimal(chr(code))
    for code in (*range(0x80, 0xFF00), *range(0x104A0, 0x1E960))
    if unicodedata.category(chr(code)) == "Nd"
}
"""The digits of other scripts, with the ASCII digits. `compatible` replaces full-width and mathematical ones."""

SOFT_HYPHEN: Final = "\u00ad"
VOICED: Final = "\uff9e\uff9f"
"""The voicing marks that follow half-width katakana; other katakana are composed with them."""


def _is_same(character: str) -> bool:
    """Whether a character has no other form that could replace it within a word."""
    form = unicodedata.normalize("NFKC", character)
    is_mark_by_itself = form.startswith(" ") or "\u2044" in form
    return form == unicodedata.normalize("NFC", character) or is_mark_by_itself or character in AS_WRITTEN


_CHANGED: Final = "".join(
    character
    for start, end in RANGES
    for character in map(chr, range(start, end))
    if character not in SUPERSCRIPTS and not _is_same(character)
)
_SIGNS: Final = f"{SOFT_HYPHEN}{re.escape(_CHANGED)}{BEYOND}"
_SUSPECT: Final = re.compile(f"[{_SIGNS}{SUPERSCRIPTS}]")
_COMPATIBLE: Final = re.compile(rf"[{_SIGNS}][{VOICED}]?|(?<=[^\W\d_])[{SUPERSCRIPTS}]+")

LANGUAGES: Final = re.compile(
    r"(?<![^\W_])(?:(?P<plus>[A-Za-z])\+\+(?!\+)|(?P<sharp>[A-Za-z])[#\u266f](?![#+]))|(?<![\w.])\.(?P<net>net)\b",
    re.IGNORECASE,
)
"""Names that only a sign distinguishes: C++, C#, .NET. Longer words, such as index++, keep their own tokens."""


def compatible(text: str) -> str:
    """Return a text with each sign in the form used to compare words."""
    if not text.isascii() and _SUSPECT.search(text):
        text = _COMPATIBLE.sub(_compatible, text)
    return LANGUAGES.sub(_spelled, text) if has_names(text) else text


def has_names(text: str) -> bool:
    """Whether a text may contain such names; the check is fast."""
    return "#" in text or "++" in text or "\u266f" in text or ".net" in text or ".N" in text


def _compatible(match: re.Match[str]) -> str:
    return "" if match[0].startswith(SOFT_HYPHEN) else unicodedata.normalize("NFKC", match[0])


def _spelled(match: re.Match[str]) -> str:
    """Return such a name in letters, as many people write it."""
    if match["plus"]:
        return f"{match['plus']}plusplus "
    return f"{match['sharp']}sharp " if match["sharp"] else "dotnet"
