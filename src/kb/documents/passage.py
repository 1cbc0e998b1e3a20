"""Finding a passage in a text that was typed in another way: other quotes, dashes, blanks, line ends or code points."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import category, normalize

from kb.api.ignorable import CONTROLS, IGNORED, SIGN

QUOTES: Final = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u02b9\u2032\u2039\u203a\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u301d\u301e", '"'),
}
DASHES: Final = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
UNSEEN: Final = re.compile(f"[{IGNORED}{CONTROLS}]")
"""What shows nowhere, such as the soft hyphen and blanks without a width."""

BLANKS_AND_DASHES: Final = re.compile(r"[^\S\n]+(?=\n)|(?<=[^\S\n])[^\S\n]+|(?<=-)-+")
"""What a folded text does without: blanks at the ends of lines, and of several blanks or dashes all but one."""


def find_passage(text: str, wanted: str) -> list[tuple[int, int]]:
    """Return the first and the last place, this one excluded, of each passage that reads as the wanted one does.

    It may have the sign in it that answers show in the place of what shows nowhere.
    """
    folded, places = fold(text)
    return _find(folded, places, wanted) or (_find(folded, places, wanted.replace(SIGN, "")) if SIGN in wanted else [])


def _find(folded: str, places: list[int], wanted: str) -> list[tuple[int, int]]:
    sought = fold(wanted)[0]
    bare = sought.rstrip(" ")
    if not bare.strip(f" \n{SIGN}"):
        return []
    # A blank at its end stands for one, or for the end of a line, where blanks show nowhere.
    ends_in_blank = "(?: |(?=\n)|\\Z)" if bare != sought else ""
    letters = "".join(f"[{SIGN}\n]?" if letter == SIGN else re.escape(letter) for letter in bare)
    pattern = re.compile(letters + ends_in_blank)
    found: list[tuple[int, int]] = []
    match = pattern.search(folded)
    while match:
        at, end = match.span()
        if end > at and is_whole(places, at) and is_whole(places, end):
            found.append((places[at], places[end - 1] + 1))
        match = pattern.search(folded, at + 1)
    return found


def fold(text: str) -> tuple[str, list[int]]:
    """Return a text in plain signs, and for each of them where it stands."""
    characters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        if (character == "\r" and text[place + 1 : place + 2] == "\n") or UNSEEN.match(character):
            continue
        for part in normalize("NFD", plain(character)):
            characters.append(part)
            places.append(place)
    folded = "".join(characters)
    kept = bytearray(b"\1") * len(folded)
    for run in BLANKS_AND_DASHES.finditer(folded):
        kept[run.start() : run.end()] = bytes(len(run[0]))
    left = [index for index, is_kept in enumerate(kept) if is_kept]
    return "".join(folded[index] for index in left), [places[index] for index in left]


def plain(character: str) -> str:
    """Return a sign as a keyboard has it."""
    if character in "\r\u2028\u2029\x85":
        return "\n"
    if category(character) == "Zs" or character == "\t":
        return " "
    return QUOTES.get(character) or DASHES.get(character, character)


def is_whole(places: list[int], at: int) -> bool:
    """Return whether a letter begins there, and none of its parts."""
    return at in (0, len(places)) or places[at] != places[at - 1]
