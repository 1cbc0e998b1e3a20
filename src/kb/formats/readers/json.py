"""JSON as it was written; what stands on one line or hides characters behind escapes is laid out for reading."""

from __future__ import annotations

import json

from kb.formats.extracted import Extracted
from kb.formats.text.encoding import clean, decode


def read(data: bytes) -> Extracted:
    """Read a JSON file, or several values on lines of their own, or what only looks like JSON."""
    source = decode(data)
    return Extracted.of_text(_laid_out(source) if _is_hard_to_read(source) else source)


def _is_hard_to_read(source: str) -> bool:
    return "\n" not in source.strip() or "\\u" in source


def _laid_out(source: str) -> str:
    try:
        return clean(json.dumps(json.loads(source), indent=2, ensure_ascii=False))
    except (ValueError, RecursionError):
        return source
