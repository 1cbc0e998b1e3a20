"""Remove invisible characters, which could hide a text from people, unless a language needs them.

Unicode calls these characters "default ignorable". Some join or separate the letters next to them, or select the shape
of the letter before. A single one is enough for that; a row of them can only carry hidden text.
"""

import re
from collections.abc import Callable
from typing import Any, Final
from unicodedata import category

from kb.api.stream_safe import IGNORED, SIGN

HIDDEN: Final = re.compile(f"[{IGNORED}]+")
FLAGS: Final = frozenset(
    "".join(chr(0xE0000 + ord(letter)) for letter in f"{name}\x7f") for name in ("gbeng", "gbsct", "gbwls")
)
"""The characters that turn a black flag into the flag of England, Scotland or Wales."""

DRAWN: Final = frozenset("\u203c\u2049\u2139\u2194\u25fb\u25fc\u25fd\u25fe\u3030")
"""Pictures that Unicode does not classify as symbols."""

SOFT: Final = frozenset("\u00ad\u034f\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufe0e\ufe0f")
"""Characters that ordinary programs leave in texts. kb removes a single one without a placeholder."""

VARIANTS: Final = re.compile(
    "(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\ufe00-\ufe02\U000e0100-\U000e010f]"
)
"""Selectors for the shape of an ideograph, as in some names. Other selectors are hardly ever needed."""

FEW: Final = 8
"""Maximum number of selectors in a text, or one per `SPREAD` letters; more of them could spell a hidden text."""

SPREAD: Final = 100


JOINERS: Final = re.compile("[\u200b-\u200d]")
DENSE: Final = re.compile("(?:[\u0600-\u1cff]{1,2}[\u200b-\u200d]){8,}")
"""Joiners after every letter or two: no language writes so, and each could be a bit of a hidden text."""


def shown(text: str) -> str:
    """Return a text with only the invisible characters that a language needs."""
    if not HIDDEN.search(text):
        return text
    if len(VARIANTS.findall(text)) > max(FEW, len(text) // SPREAD):
        text = VARIANTS.sub("", text)
    return HIDDEN.sub(_kept, DENSE.sub(lambda run: JOINERS.sub("", run[0]), text))


def all_shown(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON with `shown` applied to its texts."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, list):
        return [all_shown(item) for item in value]
    if isinstance(value, dict):
        return {name: all_shown(item) for name, item in value.items()}
    return value


def _kept(match: re.Match[str]) -> str:
    """Return the replacement for a run of invisible characters."""
    run, text = match[0], match.string
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    if before == "\U0001f3f4" and run in FLAGS:
        return run
    if len(run) == 1:
        return run if _is_needed(run, before, after) else "" if run in SOFT else SIGN
    if run == "\ufe0f\u200d" and _is_picture(before) and _is_picture(after):  # as in a heart on fire
        return run
    return SIGN


def _is_needed(letter: str, before: str, after: str) -> bool:
    """Return whether a language needs an invisible character between two letters."""
    for among, is_needed in _NEEDS:
        if among.fullmatch(letter):
            return is_needed(before, after)
    return False


def _is_letter(letter: str) -> bool:
    """Return whether a letter belongs to a script that joins letters, such as Arabic or Devanagari; Latin does not."""
    return letter >= "\u0600" and category(letter) in ("Lo", "Lm", "Mn", "Mc")


def _is_picture(letter: str) -> bool:
    return bool(letter) and (category(letter) in ("So", "Sk") or letter in "\u2640\u2642\u2695\u2696\u2708\u2764")


def _joins(before: str, after: str) -> bool:
    return (_is_picture(before) and _is_picture(after)) or _is_apart(before, after)


def _is_apart(before: str, after: str) -> bool:
    return bool(before) and bool(after) and _is_letter(before) and _is_letter(after)


def _is_drawn(before: str, after: str) -> bool:
    """Return whether the letter before is a picture or a keycap digit, which a selector can show in colour or plain."""
    return bool(before) and (_is_picture(before) or before in DRAWN or (before in "#*0123456789" and after == "\u20e3"))


def _is_variant(before: str, _: str) -> bool:
    return bool(before) and category(before) in ("Lo", "Sm")


def _is_ideograph(before: str, _: str) -> bool:
    return bool(before) and ("\u3400" <= before <= "\u9fff" or "\uf900" <= before <= "\ufaff" or before >= "\U00020000")


def _is_mongolian(before: str, after: str) -> bool:
    return "\u1820" <= (before or after or " ") <= "\u18aa"


def _is_jamo(before: str, after: str) -> bool:
    return any("\u1100" <= neighbour <= "\u11ff" for neighbour in (before, after) if neighbour)


_NEEDS: Final[tuple[tuple[re.Pattern[str], Callable[[str, str], bool]], ...]] = (
    (re.compile("\u200d"), _joins),
    (re.compile("[\u200b\u200c]"), _is_apart),
    (re.compile("[\ufe0e\ufe0f]"), _is_drawn),
    (re.compile("[\ufe00-\ufe02]"), _is_variant),
    (re.compile("[\U000e0100-\U000e010f]"), _is_ideograph),
    (re.compile("[\u180b-\u180f]"), _is_mongolian),
    (re.compile("[\u115f\u1160]"), _is_jamo),
)
