"""Words with an apostrophe, which each language uses differently."""

from __future__ import annotations

import re
from typing import Final

SIGNS: Final = "'\u2019\u02bc\uff07"
WITH_APOSTROPHE: Final = re.compile(rf"(?<!\w)[^\W\d_]+(?:[{SIGNS}][^\W\d_]+)+(?!\w)")
POSSESSIVE: Final = re.compile(rf"(?P<owner>[^\W\d_]+)[{SIGNS}]s", re.IGNORECASE)
BEFORE_NOT = """
    ain aren can couldn didn doesn don hadn hasn haven isn mightn mustn needn shan shouldn wasn weren won wouldn
"""
NEGATED: Final = frozenset(BEFORE_NOT.split())
CONTRACTED = "he here how i it let she that there they we what when where who why you"
PRONOUNS: Final = frozenset(CONTRACTED.split())
ENDINGS: Final = frozenset(("s", "re", "ll", "ve", "d", "m"))
OTHER_WORDS: Final = ("can", "won", "ain")
JOINED: Final = {f"{stem}t": f"{stem}'t" for stem in NEGATED if stem not in OTHER_WORDS} | {"cant": "can't"}
"""Contractions that people type without the apostrophe."""

SHORTEST: Final = 2
"""The minimum length of a part that carries meaning, which excludes the l and d of l'eau and d'eau."""


def apart(text: str) -> str:
    """Return a text in which meaningful parts replace such words: the owner, or the longer parts, or nothing."""
    return WITH_APOSTROPHE.sub(lambda word: f" {' '.join(telling_parts(word[0]))} ", text)


def telling_parts(word: str) -> list[str]:
    """Return the parts of such a word that carry meaning."""
    if is_contraction(word):
        return []
    if owned := POSSESSIVE.fullmatch(word):
        return [owned["owner"]]
    return [part for part in split(word) if len(part) >= SHORTEST]


def is_contraction(word: str) -> bool:
    """Whether such a word consists only of function words, like don't."""
    *_, first, last = ["", *split(word.lower())]
    return (first in NEGATED and last == "t") or (first in PRONOUNS and last in ENDINGS)


def is_possessive(word: str) -> bool:
    return POSSESSIVE.fullmatch(word) is not None and not is_contraction(word)


def split(word: str) -> list[str]:
    return re.split(f"[{SIGNS}]", word)


def with_apostrophe(word: str) -> str | None:
    """Return the contraction that lacks its apostrophe here; None if the word is not a contraction."""
    return JOINED.get(word)
