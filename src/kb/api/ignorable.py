"""The letters that nobody sees: Unicode calls them "default ignorable"."""

from __future__ import annotations

from typing import Final

IGNORED: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""As a class of a regular expression has them."""

CONTROLS: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"
"""Likewise the control characters that end no line."""

SIGN: Final = "\ufffd"
"""Is shown in the place of them."""
