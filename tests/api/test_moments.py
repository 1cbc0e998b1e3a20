"""Dates as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kb.api.date_parsing import day, moment, read
from kb.api.document_day import own_day
from kb.api.errors import Invalid

SUNDAY = datetime(2026, 11, 22)  # noqa: DTZ001 - read as the day of some zone


@pytest.mark.parametrize("text", ["9999 years ago", "0001-01-01T00:00+05:00", "9999-12-31T23:00-05:00"])
def test_a_date_outside_the_calendar_is_refused(text):
    with pytest.raises(Invalid, match=r"^after: kb does not understand the date"):
        moment(text, "after")


def test_the_day_that_is_written_is_kept_whatever_its_time_zone():
    text = "2026-11-17T23:30:00-05:00"
    assert day(text, "date") == "2026-11-17"
    assert moment(text, "after") == text
    assert moment("2026-11-17T23:30:00.125Z", "after") == "2026-11-17T23:30:00.125000Z"
    assert day("", "date") is moment(" ", "date") is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2 hours ago", 7200), ("since 2 hours ago", 7200), ("an hour ago", 3600), ("last 30 minutes", 1800),
        ("30 min", 1800), ("past two hours", 7200), ("Since  90 Minutes Ago", 5400), ("2h", 7200),
        ("last hour", 3600), ("past minute", 60), ("30 seconds ago", 30), ("0 hours ago", 0),
    ],
)  # fmt: skip
def test_hours_and_minutes_are_counted_back_from_now(text, seconds):
    ago = datetime.now(UTC) - datetime.fromisoformat(moment(text, "after"))
    assert seconds - 2 <= ago.total_seconds() <= seconds + 60
    assert day(text, "date") == moment(text, "after")[:10]


@pytest.mark.parametrize("text", ["since Monday", "since monday", "Since 2026-03", "since yesterday"])
def test_since_before_a_date_says_nothing_more(text):
    assert moment(text, "after") == moment(text.split(" ", 1)[1], "after")


@pytest.mark.parametrize("text", ["since", "hours ago", "2 hours ahead", "since since monday", "99999 hours ago"])
def test_other_words_are_no_time(text):
    with pytest.raises(Invalid):
        moment(text, "after")


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Monday", "2026-11-16"),
        ("mon", "2026-11-16"),
        ("sunday", "2026-11-22"),
        ("last sunday", "2026-11-15"),
        ("last monday", "2026-11-16"),
        ("this week", "2026-11-16"),
        ("this month", "2026-11-01"),
        ("this year", "2026-01-01"),
        ("last week", "2026-11-15"),
        ("two weeks ago", "2026-11-08"),
        ("a month ago", "2026-10-23"),
        ("an year ago", "2025-11-22"),
        ("3d", "2026-11-19"),
        ("march", "2026-03-01"),
        ("December", "2025-12-01"),
        ("Nov 3", "2026-11-03"),
        ("3rd Nov.", "2026-11-03"),
        ("23 nov", "2025-11-23"),
        ("22 November", "2026-11-22"),
        ("29 Feb", "2024-02-29"),
        ("Sept 2025", "2025-09-01"),
        ("3 nov 2026", "2026-11-03"),
        ("November 3rd, 2026", "2026-11-03"),
        ("2026-03", "2026-03-01"),
    ],
)
def test_what_is_written_begins_on_that_day(text, day):
    assert f"{read(text, SUNDAY):%Y-%m-%d}" == day


@pytest.mark.parametrize(
    "text",
    [
        "lately",
        "a",
        "10",
        "1.5",
        "12 2026",
        "03/04/2026",
        "31 nov",
        "mon ami",
        "may i",
        "this monday",
        "last march",
        "next week",
        "weeks ago",
        "monday nov",
        "report of march",
        "the",
        "3",
        "march march",
    ],
)
def test_what_is_no_date_or_could_be_several_is_refused(text):
    assert read(text, SUNDAY) is None


def test_a_day_before_there_were_time_zones_is_written_as_the_engine_reads_it():
    assert moment("1850 Europe/Berlin", "after") == "1850-01-01T00:00:00+00:53"
    assert moment("1936-05-01 Africa/Monrovia", "after") == "1936-05-01T00:00:00-00:44"


def test_a_date_may_name_its_zone():
    assert moment("2026-03-01 Europe/Berlin", "after") == "2026-03-01T00:00:00+01:00"
    assert moment("1 July 2026 America/New_York", "after") == "2026-07-01T00:00:00-04:00"
    assert moment("2026-03-01 UTC", "after") == moment("2026-03-01", "after")
    for zone in ("Europe/Atlantis", "etc/../passwd", "America/Argentina", "Europe/" + "x" * 5000):
        with pytest.raises(Invalid, match=r"^after: "):
            moment(f"yesterday {zone}", "after")


@pytest.mark.parametrize(
    ("date", "day"),
    [
        ("2024", "2024-01-01"),
        ("2024-3", "2024-03-01"),
        ("202403", "2024-03-01"),
        ("2024/3/5", "2024-03-05"),
        ("2024-03-05T23:30:00-05:00", "2024-03-05"),
        ("2024-3-5 10:00", "2024-03-05"),
        ("20240305", "2024-03-05"),
        ("20240305T101500Z", "2024-03-05"),
        ("20240305101500", "2024-03-05"),
        ("2024-13-05", "2024-01-01"),
        ("2024-02-29", "2024-02-29"),
        ("2026-02-30", "2026-02-01"),
        ("1712345678", None),
        ("5 March 2024", None),
        (None, None),
    ],
)
def test_a_date_is_compared_by_its_day_however_it_is_written(date, day):
    assert own_day(date) == day
