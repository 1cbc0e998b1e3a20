"""The figures of the last hour."""

from __future__ import annotations

import pytest

from kb.telemetry.last_hour import MINUTES, LastHour


class Clock:
    now = 7200.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_each_minute_says_how_often_and_how_long(clock):
    hour = LastHour(clock)
    for seconds in [0.010] * 90 + [0.200] * 10:
        hour.add(seconds)
    clock.now += 60
    hour.add(3)
    *empty, before, now = hour.minutes()
    assert {minute.count for minute in empty} == {0}
    assert (before.count, now.count) == (100, 1)
    assert before.p50 == pytest.approx(0.010, rel=0.3)
    assert before.p95 == pytest.approx(0.200, rel=0.3)
    assert before.p50 >= 0.010, "at most so long, not about"
    assert hour.hour().count == 101


def test_what_is_an_hour_ago_is_forgotten_however_long_nothing_was_done(clock):
    hour = LastHour(clock)
    hour.add(1)
    clock.now += 60 * (MINUTES - 1)
    assert hour.hour().count == 1
    clock.now += 60
    assert hour.hour() == type(hour.hour())(0, None, None)
    hour.add(1)
    clock.now += 60 * 10_000
    assert hour.hour().count == 0
    assert len(hour.minutes()) == MINUTES


def test_times_beyond_every_bound_are_counted(clock):
    hour = LastHour(clock)
    for seconds in (0.0, 1e6):
        hour.add(seconds)
    assert hour.hour().count == 2
    assert hour.hour().p95 < 1e6
