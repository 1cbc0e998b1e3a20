"""Texts and source code, as they stand."""

from __future__ import annotations

from kb.formats.text.encoding import decode
from kb.formats.text.extracted import Extracted


def read(data: bytes) -> Extracted:
    """Read a text file."""
    return Extracted.of_text(decode(data))
