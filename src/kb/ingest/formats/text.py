"""Plain text: notes, logs, tables of values, source code."""

from __future__ import annotations

from kb.ingest.extract import Extracted, Section
from kb.ingest.formats.characters import decode


def read(data: bytes) -> Extracted:
    """Read a text file as it stands."""
    text = decode(data)
    return Extracted("text", None, text, (Section(0, len(text)),))
