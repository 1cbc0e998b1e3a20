"""Where the texts with a prefix end, in the order of their characters."""

from __future__ import annotations

import sys

SURROGATES = range(0xD800, 0xE000)
AFTER_SURROGATES = 0xE000


def after_prefix(prefix: str) -> str | None:
    """Return what comes after all texts with this prefix, and before any other; None if no text does."""
    stem = prefix.rstrip(chr(sys.maxunicode))
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(AFTER_SURROGATES if following in SURROGATES else following)
