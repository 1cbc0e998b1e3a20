"""Times are shown where the reader is; without script they are in UTC, and say so."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from tests.support.eventually import eventually
from tests.web.conftest import find, read
from tests.web.test_pages import Reader

pytestmark = [pytest.mark.web, pytest.mark.filterwarnings("default")]
ZONE = "Pacific/Kiritimati"
AHEAD = timedelta(hours=14)
TITLES = "return [...document.querySelectorAll('time')].map((each) => [each.dateTime, each.title])"


@pytest.fixture
def far_east(browser):
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ZONE})
    yield browser
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def shown(time):
    return f"{datetime.fromisoformat(time) + AHEAD:%Y-%m-%d %H:%M}"


@pytest.fixture
def failed(site):
    """A failed job, which the overview shows."""
    unreadable = {"file": ("unreadable.pdf", b"%PDF-1.7\nbroken")}
    assert site.engine.post("jobs", params={"wait": 30}, files=unreadable).json()["status"] == "failed"


def times_at(browser, url):
    browser.get(url)
    return [(time, title) for time, title in browser.execute_script(TITLES) if "T" in time and title]


@pytest.mark.parametrize("place", ["documents", "bin", "jobs", "changes", "overview", "?q=boat", "doctor"])
def test_every_time_is_the_readers(far_east, site, failed, place):
    far_east.get(f"{site.url}/help/")  # the first page learns the time zone
    times = eventually("the page has times", lambda: times_at(far_east, f"{site.url}/{place}"))
    for time, title in times:
        assert title == shown(time) or re.fullmatch(r"changed \d{4}-\d\d-\d\d \d\d:\d\d", title)
    assert "UTC" not in find(far_east, "main")[0].text


def test_the_days_of_a_filter_and_of_the_chart_begin_at_the_readers_midnight(site):
    ahead = {"cookie": "kb_zone=840"}
    today = datetime.now(UTC) + AHEAD
    for day, is_found in [(today, True), (today + timedelta(days=1), False)]:
        place = f"{site.url}/?q=carburettor&mode=words&after={day:%Y-%m-%d}"
        assert ("hit-link" in httpx2.get(place, headers=ahead).text) is is_found
    chart = httpx2.get(f"{site.url}/overview", headers=ahead).text
    assert f"{today.day} {today:%b %Y}"[:-5] in chart.partition("Last 30 days")[2]
    assert "Last 30 days <small>UTC" not in chart


@pytest.mark.parametrize("zone", ["", "x", "99999", "-0-1", "1.5"])
def test_a_time_zone_that_is_none_is_utc(site, zone):
    answer = httpx2.get(f"{site.url}/overview", headers={"cookie": f"kb_zone={zone}"})
    assert answer.status_code == 200
    assert "Last 30 days <small>UTC" in answer.text


def test_a_time_that_is_a_day_is_the_readers_day(far_east, site):
    expires = site.engine.get("bin").json()["documents"][0]["expires_at"]
    far_east.get(f"{site.url}/bin")
    day = datetime.fromisoformat(expires) + AHEAD
    assert find(far_east, ".rows time", f"kept until {day.day} {day:%b %Y}")


def test_the_time_in_the_reason_of_an_undo_is_the_readers(far_east, site):
    note = {"text": "Taken back soon.", "title": "Brief"}
    document = site.engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"]
    added = datetime.fromisoformat(site.engine.get(f"documents/{document}").json()["created_at"])
    start = (added - timedelta(milliseconds=300)).isoformat()
    site.engine.post("undo", json={"since": start}).raise_for_status()
    far_east.get(f"{site.url}/bin")
    assert find(far_east, ".reason", f"undo of all changes since {shown(start)}")
    without_script = Reader(f"{site.url}/bin")
    assert f"since {datetime.fromisoformat(start):%Y-%m-%d %H:%M} UTC" in without_script.text
    without_script.http.close()


def test_rows_that_come_later_are_in_the_readers_time_too(far_east, site):
    far_east.get(site.url)
    far_east.switch_to.active_element.send_keys("carburettor")
    find(far_east, ".results time")
    titles = far_east.execute_script("return [...document.querySelectorAll('.results time')].map((each) => each.title)")
    assert titles
    assert not [each for each in titles if "UTC" in each]


def test_the_date_of_a_document_stays_as_it_is_written(far_east, site):
    form = {"files": {"file": ("dated.md", b"---\ndate: 2023-02-27\n---\n# A dated sextant-less page\n\nQuadrant.")}}
    site.engine.post("jobs", params={"wait": 30}, **form)
    far_east.get(f"{site.url}/?q=quadrant&mode=words")
    assert "27 Feb 2023" in read(far_east, ".results time")
    assert re.fullmatch(r"changed \d{4}-\d\d-\d\d \d\d:\d\d", find(far_east, ".results time")[0].get_attribute("title"))
