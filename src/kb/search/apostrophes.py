"""Words with an apostrophe in them, of which each language makes something else."""

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
"""How those write a contraction who leave the apostrophe out."""

SHORTEST: Final = 2
"""How many letters of a part say something by themselves: of l'eau and d'eau the first says nothing."""


def apart(text: str) -> str:
    """Return a text with what such words say: their owner, the longer parts, or nothing if they only join others."""
    return WITH_APOSTROPHE.sub(lambda word: f" {' '.join(telling_parts(word[0]))} ", text)


def telling_parts(word: str) -> list[str]:
    """Return the parts of such a word that say something by themselves."""
    if is_contraction(word):
        return []
    if owned := POSSESSIVE.fullmatch(word):
        return [owned["owner"]]
    return [part for part in split(word) if len(part) >= SHORTEST]


def is_contraction(word: str) -> bool:
    """Return whether such a word is made of words that say nothing about what a text is about, such as don't."""
    *_, first, last = ["", *split(word.lower())]
    return (first in NEGATED and last == "t") or (first in PRONOUNS and last in ENDINGS)


def is_possessive(word: str) -> bool:
    """Return whether such a word says whose something is."""
    return POSSESSIVE.fullmatch(word) is not None and not is_contraction(word)


def split(word: str) -> list[str]:
    """Return the parts between the apostrophes."""
    return re.split(f"[{SIGNS}]", word)


def with_apostrophe(word: str) -> str | None:
    """Return the contraction that a word is without its apostrophe; None if it is none."""
    return JOINED.get(word)
