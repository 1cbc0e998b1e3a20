"""The day of a document: the day that its own date names, or failing that, the day of its last change."""

import re
from calendar import monthrange
from typing import Final

_DATE: Final = re.compile(r"(\d{4})(?:[-/.](\d\d?)(?:[-/.](\d\d?))?|(\d\d)(?:(\d\d)(?:\d{6})?)?)?(?!\d)", re.ASCII)
_MOST_MONTHS: Final = 12
_SURE_DAYS: Final = 28


class Dated:
    """The times of a document, and the one rule for its day."""

    __slots__ = ()
    date: str | None
    created_at: str
    updated_at: str | None

    @property
    def changed(self) -> str:
        """The time of the last change, or failing that, of the addition."""
        return self.updated_at or self.created_at

    @property
    def day(self) -> str:
        """The day that the document's own date names, or failing that, the day of its last change."""
        day = own_day(self.date) if self.date else None  # most documents have none, and lists read many
        return day or (self.updated_at or self.created_at)[: len("2026-01-31")]


def has_ended(valid_until: str | None, today: str) -> bool:
    """Return whether a note is no longer true on a day; both are days in ISO 8601."""
    return valid_until is not None and valid_until < today


def own_day(date: str | None) -> str | None:
    """Return the day of a date in ISO 8601, or the first day of its month or year, or None if there is no year."""
    match = _DATE.match(date or "")
    if not match:
        return None
    year, month, day = match[1], int(match[2] or match[4] or 1), int(match[3] or match[5] or 1)
    if not 1 <= month <= _MOST_MONTHS:
        month = day = 1
    if not 1 <= day <= _SURE_DAYS:
        day = day if 1 <= day <= monthrange(int(year), month)[1] else 1
    return f"{year}-{month:02}-{day:02}"
