"""Mark words in a text."""

import re
from collections.abc import Iterable, Sequence, Set
from typing import Final

from markupsafe import Markup, escape

_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u31ff\u3400-\u9fff"
    r"\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Letters and marks of scripts without spaces, and of Korean, as in `kb.index.words.segmentation`."""


def matched(text: str, ranges: Iterable[Sequence[int]]) -> set[str]:
    return {text[start:end].casefold() for start, end in ranges}


def mark(text: str, words: Set[str]) -> Markup:
    """Return an escaped text with words in `<mark>`: whole words only, but any match in scripts without spaces."""
    if not words:
        return escape(text)
    pattern = "|".join(map(_whole, sorted(words, key=len, reverse=True)))
    parts = re.split(f"({pattern})", text, flags=re.IGNORECASE)
    return Markup("").join(
        Markup("<mark>{}</mark>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts)
    )


def _whole(word: str) -> str:
    """Return the pattern of a word; a letter of a script without spaces may have letters next to it."""
    before = "" if _UNSPACED.match(word[0]) else r"(?<!\w)"
    after = "" if _UNSPACED.match(word[-1]) else r"(?!\w)"
    return f"{before}{re.escape(word)}{after}"
