"""The day that a document gives itself, which may be written in many ways."""

from __future__ import annotations

import re
from typing import Final

_DATE: Final = re.compile(r"(\d{4})(?:[-/.](\d\d?)(?:[-/.](\d\d?))?|(\d\d)(?:(\d\d)(?:\d{6})?)?)?(?!\d)", re.ASCII)
_MOST_MONTHS: Final = 12
_MOST_DAYS: Final = 31


def own_day(date: str | None) -> str | None:
    """Return the day in ISO 8601, the first one of its month or year if a date says no more; None if it has no year."""
    found = _DATE.match(date or "")
    if not found:
        return None
    year, month, day = found[1], int(found[2] or found[4] or 1), int(found[3] or found[5] or 1)
    if not 1 <= month <= _MOST_MONTHS:
        month = day = 1
    return f"{year}-{month:02}-{day if 1 <= day <= _MOST_DAYS else 1:02}"
