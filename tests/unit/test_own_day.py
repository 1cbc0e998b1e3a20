"""The day that a document gives itself."""

from __future__ import annotations

import pytest

from kb.api.moments import own_day


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
        ("1712345678", None),
        ("5 March 2024", None),
        (None, None),
    ],
)
def test_a_date_is_compared_by_its_day_however_it_is_written(date, day):
    assert own_day(date) == day
