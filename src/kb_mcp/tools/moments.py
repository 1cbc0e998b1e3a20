"""Moments as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from kb.api.errors import Invalid

DAYS: Final = {"day": 1, "week": 7, "month": 30, "year": 365}
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


def moment(text: str, field: str) -> str | None:
    """Return a moment in ISO 8601; None for no text.

    Raises:
        Invalid: it is none, or could be several.
    """
    found = _read(text, field)
    return found.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if found else None


def day(text: str, field: str) -> str | None:
    """Return the day that is written there, whatever its time zone, in ISO 8601; None for no text.

    Raises:
        Invalid: it is none, or could be several.
    """
    found = _read(text, field)
    return found.date().isoformat() if found else None


def _read(text: str, field: str) -> datetime | None:
    words = " ".join(text.replace(",", " ").lower().split())
    if not words:
        return None
    try:
        for read in (_ago, _in_form, _iso):
            if found := read(words):
                found.astimezone(UTC)
                return found
    except OverflowError:  # before the year 1, or after 9999
        pass
    raise Invalid(f"{field}: {text[:40]!r} is no date that is understood; write it like {EXAMPLES}.")


def _ago(words: str) -> datetime | None:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if words in DAYS_AGO:
        return today - timedelta(DAYS_AGO[words])
    found = re.fullmatch(r"(\d{1,4}) (day|week|month|year)s?( ago)?", words)
    return today - timedelta(int(found[1]) * DAYS[found[2]]) if found else None


def _in_form(words: str) -> datetime | None:
    for form in FORMS:
        try:
            return datetime.strptime(words, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _iso(words: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(words.upper())
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
