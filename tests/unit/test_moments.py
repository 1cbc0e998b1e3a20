"""Dates as people write them."""

from __future__ import annotations

import pytest

from kb.api.errors import Invalid
from kb.api.moments import day, moment


@pytest.mark.parametrize("text", ["9999 years ago", "0001-01-01T00:00+05:00", "9999-12-31T23:00-05:00"])
def test_a_date_outside_the_calendar_is_refused(text):
    with pytest.raises(Invalid, match=r"^after: .* is no date that is understood"):
        moment(text, "after")


def test_the_day_that_is_written_is_kept_whatever_its_time_zone():
    text = "2026-11-17T23:30:00-05:00"
    assert day(text, "date") == "2026-11-17"
    assert moment(text, "after") == "2026-11-18T04:30:00Z"
    assert moment("2026-11-17T23:30:00.125Z", "after") == "2026-11-17T23:30:00.125000Z"
    assert day("", "date") is moment(" ", "date") is None
