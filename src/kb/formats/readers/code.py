"""Source code, as it stands."""

from __future__ import annotations

from kb.formats.registry import Extracted, Section
from kb.formats.text.encoding import decode


def read(data: bytes) -> Extracted:
    """Read a file of source code."""
    text = decode(data)
    return Extracted("code", None, text, (Section(0, len(text)),))
