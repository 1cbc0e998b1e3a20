"""Moments as people write them."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from kb.api.errors import Invalid

if TYPE_CHECKING:
    from datetime import tzinfo

DAYS: Final = {"day": 1, "week": 7, "month": 30, "year": 365, "d": 1, "w": 7, "y": 365}
DAYS_AGO: Final = {"today": 0, "yesterday": 1, "last week": 7, "last month": 30, "last year": 365}
FORMS: Final = (
    "%Y",
    "%Y-%m",
    "%Y/%m",
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%B %Y",
    "%b %Y",
    "%d %B %Y",
    "%d %b %Y",
    "%B %d %Y",
    "%b %d %Y",
)
EXAMPLES: Final = "2026, 2026-11, 2026-11-17, 17 Nov 2026, yesterday or 3 days ago"


def moment(text: str, field: str, zone: tzinfo | None = UTC) -> str | None:
    """Return a moment in ISO 8601; None for no text.

    Args:
        text: what is written.
        field: what the error names.
        zone: that of what names none; None for the clock's here.

    Raises:
        Invalid: it is none, or could be several.
    """
    found = _read(text, field, zone)
    return found.astimezone(UTC).isoformat().replace("+00:00", "Z") if found else None


def day(text: str, field: str) -> str | None:
    """Return the day that is written there, whatever its time zone, in ISO 8601; None for no text.

    Raises:
        Invalid: it is none, or could be several.
    """
    found = _read(text, field, UTC)
    return found.date().isoformat() if found else None


def _read(text: str, field: str, zone: tzinfo | None) -> datetime | None:
    words = " ".join(text.replace(",", " ").lower().split())
    if not words:
        return None
    today = datetime.now(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    try:
        if found := _ago(words, today) or _in_form(words) or _iso(words):
            found = found if found.tzinfo else found.replace(tzinfo=zone) if zone else found.astimezone()
            found.astimezone(UTC)
            return found
    except (OverflowError, ValueError):  # before the year 1, or after 9999
        pass
    raise Invalid(f"{field}: {text[:40]!r} is no date that is understood; write it like {EXAMPLES}.")


def _ago(words: str, today: datetime) -> datetime | None:
    if words in DAYS_AGO:
        return today - timedelta(DAYS_AGO[words])
    found = re.fullmatch(r"(\d{1,4}) ?(day|week|month|year|[dwy])s?( ago)?", words)
    return today - timedelta(int(found[1]) * DAYS[found[2]]) if found else None


def _in_form(words: str) -> datetime | None:
    for form in FORMS:
        with suppress(ValueError):
            return datetime.strptime(words, form)  # noqa: DTZ007 - the zone comes later
    return None


def _iso(words: str) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(words.upper())
    return None
