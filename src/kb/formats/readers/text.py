"""Plain text and source code, unchanged."""

from __future__ import annotations

from kb.formats.text.encoding import decode
from kb.formats.text.extracted import Extracted


def read(data: bytes) -> Extracted:
    return Extracted.of_text(decode(data))
