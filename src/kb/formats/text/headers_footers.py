"""The text above and below the body of each page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kb.formats.text.encoding import one_line

if TYPE_CHECKING:
    from kb.formats.text.builder import TextBuilder

_LETTERS: Final = re.compile(r"[^\W\d_]+")
_ROMAN: Final = re.compile(r"(?i)[ivxlc]+")
PAGE_NAMES: Final = frozenset(
    {
        *("page", "pages", "pg", "p", "seite", "seiten", "s", "página", "páginas", "pág", "pagina", "pag"),
        *("sida", "side", "sivu", "strana", "strona", "str", "страница", "стр", "sayfa", "oldal", "第", "ページ"),
    }
)
_PAGE_WORDS: Final = PAGE_NAMES | {
    *("of", "von", "de", "sur", "di", "van", "av", "af", "z", "ze", "из", "页", "頁", "共")
}


def write_margins(text: TextBuilder, lines: Iterable[str]) -> None:
    """Add the lines of headers and footers under their own heading, each once, without page numbers."""
    text.listed(
        "Headers and footers", (line for line in dict.fromkeys(map(one_line, lines)) if not is_page_number(line))
    )


def is_page_number(line: str) -> bool:
    return all(word.casefold() in _PAGE_WORDS or _ROMAN.fullmatch(word) for word in _LETTERS.findall(line))
