"""Numbers of sheets with the text that their format shows around them: 12 kg, 5%, $7. They keep all digits."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)(?:-[^\]]*)?\]|\[(?P<bracket>[^\]]*)\]'
    r"|(?P<space>[_*].)|(?P<number>General|[0#?.,]+)|(?P<end>;)|(?P<other>.)",
    re.DOTALL,
)
_COLOUR: Final = re.compile(r"(?i)black|blue|cyan|green|magenta|red|white|yellow|color ?\d+|dbnum\d")
_NOT_PLAIN: Final = frozenset("yYmMdDhHsSeEgGbB/@")  # dates, fractions, powers of ten, texts
_SPACES: Final = str.maketrans({"\xa0": " ", "\u202f": " "})
_SIGNS: Final = str.maketrans(dict.fromkeys("+-()\N{MINUS SIGN}"))
_SHOWN: Final = re.compile(r"(\D*)(\d(?:[\d.,\s'\u2019\u066b\u066c]*\d)?)(\D*)")
_LONGEST: Final = 60
_ROUNDED: Final = 0.5 + 1e-6


class NumberUnit(NamedTuple):
    """The text before and after a number; `is_share` if the number is shown times 100."""

    before: str
    after: str
    is_share: bool

    def around(self, value: float) -> str:
        number = value * 100 if self.is_share else value
        digits = f"{Decimal(f'{abs(number):.15g}'):f}"
        return f"{'-' if number < 0 else ''}{self.before}{digits}{self.after}"


def unit_of_format(code: str) -> NumberUnit | None:
    """Return the text that an Excel number format shows around a plain number; None if it has none.

    Also None if it shows thousands or millions, such as 1.5M for 1500000, because the unit belongs to the number shown.
    """
    before, after, numbers, share = "", "", 0, False
    for match in _TOKEN.finditer(code[:1000]):
        kind, text = match.lastgroup, match[match.lastgroup or 0]
        if kind == "end":
            break
        if (kind == "bracket" and not _COLOUR.fullmatch(text)) or (kind == "other" and text in _NOT_PLAIN):
            return None
        if kind == "number" and any(part.endswith(",") for part in text.split(".")):
            return None
        share = share or (kind == "other" and text == "%")
        if kind == "number":
            numbers += 1
        elif kind not in {"bracket", "space"}:
            before, after = (before, after + text) if numbers else (before + text, after)
    return _unit(before, after, is_share=share) if numbers == 1 else None


def unit_of_text(shown: str, value: float, *, is_share: bool) -> NumberUnit | None:
    """Return the text around a number in a cell's text; None if it has none, or shows a different number."""
    match = _SHOWN.fullmatch(shown.strip())
    if not match or not _is_rounded(match[2], abs(value) * (100 if is_share else 1)):
        return None
    before, after = (affix.translate(_SIGNS) if value < 0 else affix for affix in (match[1], match[3]))
    return _unit(before, after, is_share=is_share)


def says_more(shown: str) -> bool:
    """Return whether a shown number contains letters, a percent or a currency sign."""
    return any(
        character.isalpha() or character == "%" or unicodedata.category(character) == "Sc" for character in shown
    )


def _is_rounded(written: str, number: float) -> bool:
    """Return whether digits with separators are the rounded number, for any decimal separator."""
    *groups, last = re.split(r"\D+", written)
    whole, parted = "".join((*groups, last)), f"{''.join(groups)}.{last}"
    is_whole = abs(float(whole) - number) <= _ROUNDED
    return is_whole or (bool(groups) and abs(float(parted) - number) <= _ROUNDED * 10.0 ** -len(last))


def _unit(before: str, after: str, *, is_share: bool) -> NumberUnit | None:
    before, after = before.translate(_SPACES).lstrip()[:_LONGEST], after.translate(_SPACES).rstrip()[:_LONGEST]
    return NumberUnit(before, after, is_share) if says_more(before + after) else None
