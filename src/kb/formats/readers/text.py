"""Plain text: notes, logs, tables of values, source code."""

from __future__ import annotations

from kb.formats.registry import Extracted, Section
from kb.formats.text.encoding import decode


def read(data: bytes) -> Extracted:
    """Read a text file as it stands."""
    text = decode(data)
    return Extracted("text", None, text, (Section(0, len(text)),))
