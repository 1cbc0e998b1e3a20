"""The overview says that somebody added something to the database."""

from __future__ import annotations

from contextlib import closing

import apsw
import pytest

from tests.store.test_foreign_status import SPY


@pytest.mark.web
@pytest.mark.sqlite
def test_the_overview_names_what_somebody_added_and_leads_to_the_doctor(read, site):
    with closing(apsw.Connection(str(site.data / "kb.db"))) as database:
        database.execute(SPY)
        try:
            [said] = read(f"{site.url}/overview").page.xpath("//p[@role='status'][contains(., 'trigger spy')]")
            assert [each.get("href") for each in said.iter("a")] == ["/doctor"]
        finally:
            database.execute("DROP TRIGGER spy")
    assert not read(f"{site.url}/overview").page.xpath("//p[contains(., 'trigger spy')]")
