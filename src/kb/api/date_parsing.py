"""Dates and times as people write them."""

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from kb.api.errors import Invalid

COUNTS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBERS: Final = {"a": 1, "an": 1} | {word: number for number, word in enumerate(COUNTS, 1)}
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
DAYS: Final = {"day": 1, "week": 7, "month": 30, "year": 365, "d": 1, "w": 7, "y": 365}
DAYS_AGO: Final = {"today": 0, "yesterday": 1, "last week": 7, "last month": 30, "last year": 365}
FORMS: Final = [
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
]
WITHOUT_YEAR: Final = ("%B", "%b", "%d %B", "%d %b", "%B %d", "%b %d")
MAX_YEARS: Final = 9
"""The number of years among which one has a 29 February."""

ORDINAL: Final = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b|(?<=[a-z])\.(?= |$)")
TIMES_AGO: Final = {
    "second": 1,
    "sec": 1,
    "s": 1,
    "minute": 60,
    "min": 60,
    "m": 60,
    "hour": 3600,
    "h": 3600,
}
_COUNT: Final = rf"\d{{1,4}}|{'|'.join(NUMBERS)}"
RECENTLY: Final = re.compile(
    rf"(?:(?:last |past )?({_COUNT}) ?|(?:last |past ))({'|'.join(TIMES_AGO)})s?(?: ago)?", re.IGNORECASE
)
SINCE: Final = re.compile(r"since (?=\S)", re.IGNORECASE)
ZONE: Final = re.compile(r"(.*\S) +(UTC|[A-Za-z_]+(?:/[\w+-]+)+)")
EXAMPLES: Final = "2026, 2026-11, 2026-11-17, 17 Nov 2026, 3 Nov, monday, this week, yesterday or 2 hours ago"


def moment(text: str, field: str, zone: tzinfo | None = UTC) -> str | None:
    """Return a moment in ISO 8601, in its zone; None for no text.

    Args:
        text: the written date or time.
        field: the field that an error names.
        zone: the zone of a text that names none, unlike `monday Europe/Berlin`; None for the machine's own.

    Raises:
        Invalid: kb does not understand the text.
    """
    parsed = _read(text, field, zone)
    return parsed.isoformat().replace("+00:00", "Z") if parsed else None


def day(text: str, field: str) -> str | None:
    """Return the day of a written date in ISO 8601, in its own time zone; None for no text.

    Raises:
        Invalid: kb does not understand the text.
    """
    parsed = _read(text, field, UTC)
    return parsed.date().isoformat() if parsed else None


def read(text: str, today: datetime) -> datetime | None:
    """Return the beginning of a written date or time; None if it is not one.

    Days of the week, and days and months without a year, are the last ones that have begun.

    Args:
        text: the written date or time.
        today: midnight, without a zone.

    Raises:
        OverflowError: the date is before the year 1.
    """
    words = " ".join(text.replace(",", " ").lower().split())
    plain = re.sub(r"\bsept\b", "sep", ORDINAL.sub("", words))
    return _ago(plain, today) or _this(plain, today) or _in_form(plain) or _without_year(plain, today) or _iso(words)


def _read(text: str, field: str, zone: tzinfo | None) -> datetime | None:
    written = SINCE.sub("", " ".join(text.split()), count=1)
    if not written:
        return None
    try:
        if match := RECENTLY.fullmatch(written):
            number = NUMBERS.get((match[1] or "a").lower()) or int(match[1])
            now = datetime.now(UTC) - timedelta(seconds=number * TIMES_AGO[match[2].lower()])
            return now.astimezone(zone).replace(microsecond=0)
        if named := ZONE.fullmatch(written):
            written, zone = named[1], _zone(named[2], field)
        today = datetime.now(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        if parsed := read(written, today):
            parsed = parsed if parsed.tzinfo else parsed.replace(tzinfo=zone) if zone else parsed.astimezone()
            parsed.astimezone(UTC)
            return _in_minutes(parsed)
    except (OverflowError, ValueError):  # before the year 1, or after 9999
        pass
    raise Invalid(f"{field}: kb does not understand the date {text[:40]!r}. Write it like {EXAMPLES}.")


def _in_minutes(instant: datetime) -> datetime:
    """Return the same time of day in a zone of whole minutes. Few programs read older zones with seconds."""
    offset = instant.utcoffset() or timedelta()
    minutes = timedelta(minutes=round(offset / timedelta(minutes=1)))
    return instant if minutes == offset else instant.replace(tzinfo=timezone(minutes))


def _zone(name: str, field: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # unknown, a folder in the database of zones, or a path outside it
        raise Invalid(
            f"{field}: the time zone {name[:40]!r} does not exist. Use a name such as Europe/Berlin."
        ) from None


def _ago(words: str, today: datetime) -> datetime | None:
    if words in DAYS_AGO:
        return today - timedelta(DAYS_AGO[words])
    if match := re.fullmatch(r"(\d{1,4}) ?(day|week|month|year|[dwy])s?( ago)?", words):
        return today - timedelta(int(match[1]) * DAYS[match[2]])
    match = re.fullmatch(rf"({'|'.join(NUMBERS)}) (day|week|month|year)s? ago", words)
    return today - timedelta(NUMBERS[match[1]] * DAYS[match[2]]) if match else None


def _this(words: str, today: datetime) -> datetime | None:
    """Return the beginning of this week, month or year, or the last weekday with this name."""
    begun = {
        "this week": today - timedelta(today.weekday()),
        "this month": today.replace(day=1),
        "this year": today.replace(month=1, day=1),
    }
    if words in begun:
        return begun[words]
    name = words.removeprefix("last ")
    for number, weekday in enumerate(WEEKDAYS):
        if name in {weekday, weekday[:3]}:
            days = (today.weekday() - number) % 7
            return today - timedelta(days or 7 if name != words else days)
    return None


def _in_form(words: str, forms: Sequence[str] = FORMS) -> datetime | None:
    for form in forms:
        with suppress(ValueError):
            return datetime.strptime(words, form)  # noqa: DTZ007 - the zone comes later
    return None


def _without_year(words: str, today: datetime) -> datetime | None:
    forms = [f"{form} %Y" for form in WITHOUT_YEAR]
    for year in range(today.year, max(today.year - MAX_YEARS, 0), -1):
        parsed = _in_form(f"{words} {year:04}", forms)
        if parsed and parsed <= today:
            return parsed
    return None


def _iso(words: str) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(words.upper())
    return None
