"""Pictures. Their only text is their name, which `kb.formats.extract` adds, unless an extractor reads more."""

from __future__ import annotations

from kb.formats.text.extracted import Extracted


def read(_: bytes) -> Extracted:
    return Extracted(None, "", ())
