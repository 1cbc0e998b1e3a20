# ruff: noqa: RUF001 - these characters are intended
"""Characters of symbol fonts: Word stores such a symbol as the number of a character in its font."""

from __future__ import annotations

from typing import Final

_PRIVATE: Final = 0xF000
_GREEK: Final = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ",
        strict=True,
    )
)
_SYMBOL: Final = _GREEK | dict(
    zip(
        "\xa3\xa5\xab\xac\xad\xae\xaf\xb0\xb1\xb3\xb4\xb5\xb6\xb7\xb8\xb9"
        "\xba\xbb\xc6\xc7\xc8\xce\xd0\xd1\xd2\xd3\xd4\xd6\xd7\xde\xe5\xf2",
        "≤∞↔←↑→↓°±≥×∝∂•÷≠≡≈∅∩∪∈∠∇®©™√·⇒∑∫",
        strict=True,
    )
)
_WINGDINGS: Final = dict(
    zip(
        "\xfc\xfe\xfd\xfb\xa8oqx\xe0\xdf\xe1\xe2(*Jlnv",
        "✓☑☒✗☐☐☐☒→←↑↓☎✉☺●■❖",
        strict=True,
    )
)
_FONTS: Final = {"symbol": _SYMBOL, "wingdings": _WINGDINGS}


def symbol(font: str, code: str) -> str:
    """Return a font's character from its hexadecimal code; empty if it is only an ornament."""
    try:
        number = int(code, 16)
    except ValueError:
        return ""
    if _PRIVATE <= number <= _PRIVATE + 0xFF:
        sign = chr(number - _PRIVATE)
        table = _FONTS.get(font.lower())
        return table.get(sign, sign if table is _SYMBOL and sign.isascii() else "") if table else ""
    return chr(number) if 0x20 <= number < 0xD800 else ""
