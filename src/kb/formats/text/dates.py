"""Dates in files, in a form that allows comparing them."""

from __future__ import annotations

import datetime as dt
import re
from email.utils import parsedate_to_datetime
from typing import Final

from kb.formats.text.encoding import one_line

_TIME: Final = r"[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
_ISO: Final = re.compile(rf"[12]\d{{3}}(?:[-/]\d\d?(?:[-/]\d\d?(?:{_TIME})?)?)?")
_LONGEST: Final = 80
_PROPERTY: Final = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d)"
    r"(?P<time>[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?)?(?:\.\d*)?(?P<zone>Z|[+-](?:0\d|1[0-4]):[0-5]\d)?)?)?"
)
# The days from which programs count, and the days before, which are the same time further west.
_EPOCHS: Final = frozenset(
    dt.date.fromisoformat(day) - dt.timedelta(days)
    for day in ("1601-01-01", "1900-01-01", "1904-01-01", "1970-01-01", "1980-01-01")
    for days in (0, 1)
)


def iso_date(text: str) -> str | None:
    """Return a date that begins with its year unchanged, a date of mail in ISO 8601, and None for others."""
    date = one_line(text)
    if len(date) > _LONGEST:
        return None
    if _ISO.fullmatch(date):
        return date
    try:
        return parsedate_to_datetime(date).isoformat()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def first_date(*written: str | None, earliest: int = 1980) -> str | None:
    """Return the first plausible date, in ISO 8601 without fractions of a second.

    Dates before the year `earliest` or after tomorrow are not plausible, nor is the start of an unset clock.
    """
    return next(filter(None, (_plausible(date, earliest) for date in written)), None)


def _plausible(written: str | None, earliest: int) -> str | None:
    match = _PROPERTY.match((written or "").strip())
    if not match or int(match["year"]) < earliest:
        return None
    try:
        day = dt.date(int(match["year"]), int(match["month"] or 1), int(match["day"] or 1))
    except ValueError:
        return None
    if (match["day"] and day in _EPOCHS) or day > dt.datetime.now(dt.UTC).date() + dt.timedelta(days=1):
        return None
    time = match["time"].replace(" ", "T") + (match["zone"] or "") if match["time"] else ""
    return "-".join(filter(None, match.group("year", "month", "day"))) + time
