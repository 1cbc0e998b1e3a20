r"""TeX and BibTeX: the source itself, but with letters in place of their spellings, such as `{\"a}` and `\o`.

kb does not use pylatexenc or latexcodec, because these also change white space and commands: the line numbers would
differ from the file's.
"""

from __future__ import annotations

import re
from typing import Final
from unicodedata import normalize

from kb.formats.text.encoding import decode
from kb.formats.text.extracted import Extracted

_ACCENTS: Final = {
    **dict(zip("`'^~\"=.", "\u0300\u0301\u0302\u0303\u0308\u0304\u0307", strict=True)),
    **dict(zip("uvHrckdb", "\u0306\u030c\u030b\u030a\u0327\u0328\u0323\u0331", strict=True)),
}
_LETTERS: Final = {
    **dict(zip("oOlLij", "øØłŁ\u0131\u0237", strict=True)),
    "ss": "ß",
    "SS": "ẞ",
    "aa": "å",
    "AA": "Å",
    "ae": "æ",
    "AE": "Æ",
    "oe": "œ",
    "OE": "Œ",
    "dh": "ð",
    "DH": "Ð",
    "dj": "đ",
    "DJ": "Đ",
    "ng": "ŋ",
    "NG": "Ŋ",
    "th": "þ",
    "TH": "Þ",
}
_DOTLESS: Final = {"\\i": "i", "\\j": "j", "\u0131": "i", "\u0237": "j"}
_BASE: Final = r"\\[ij](?![A-Za-z])|[^\W\d_]"
_ACCENTED: Final = re.compile(
    r"(?<!\\)\\(?:(?P<sign>[`'^~\"=.])|(?P<name>[uvHrckdb])(?![A-Za-z]))[ \t]{0,9}"
    rf"(?:\{{[ \t]{{0,9}}(?P<braced>{_BASE})[ \t]{{0,9}}\}}|(?P<bare>{_BASE})(?:(?<=\\[ij])(?:\{{\}}|[ \t]))?)"
)
_NAMED: Final = re.compile(rf"(?<!\\)\\({'|'.join(_LETTERS)})(?![A-Za-z])(?:\{{\}}|[ \t]+)?")
_BRACED: Final = re.compile(r"\\[A-Za-z@]+\*?[ \t]{0,9}\{|(?P<groups>(?:\{[^\W_]+(?:[-'’][^\W_]+)*\})+)")
_OF_FORMULAS: Final = frozenset("_^}]")
"""The signs before a brace that is not part of a word."""


def read(data: bytes) -> Extracted:
    return Extracted.of_text(with_letters(decode(data)))


def with_letters(source: str) -> str:
    """Return a source with the letters that commands and braces spell, on the same lines."""
    text = source
    if "\\" in text:
        text = _NAMED.sub(lambda match: _LETTERS[match[1]], _ACCENTED.sub(_accented, text))
    return _BRACED.sub(_unbraced, text) if "{" in text else text


def _accented(match: re.Match[str]) -> str:
    base = match["braced"] or match["bare"]
    return normalize("NFC", _DOTLESS.get(base, base) + _ACCENTS[match["sign"] or match["name"]])


def _unbraced(match: re.Match[str]) -> str:
    """Return groups without their braces if they are parts of a word, whose capitals they protect."""
    groups, (start, end), text = match["groups"], match.span(), match.string
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    is_part = before not in _OF_FORMULAS and (before.isalnum() or after.isalnum() or "}{" in match[0])
    return groups.replace("{", "").replace("}", "") if groups and is_part else match[0]
