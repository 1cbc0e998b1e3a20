"""Numbered clauses, as contracts have them: others refer to each by its number, so each is a place of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kb.formats.text.builder import TextBuilder

_BELOW_HEADINGS: Final = 10
_NAME: Final = re.compile(r"(?s).{1,80}?(?:(?=[.:;]\s)|$)|.{1,60}\b")


def write_clause(text: TextBuilder, depth: int, number: str, words: str) -> None:
    """Add a clause, with what follows under its number and its name or first words."""
    name = _NAME.match(words)
    title = f"{number} {name[0] if name else ''}".strip()
    text.headed_rows(_BELOW_HEADINGS + depth, title, [f"{'  ' * depth}{number} {words}"])
