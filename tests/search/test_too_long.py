"""A search that takes too much of a processor is ended with a reason."""

from __future__ import annotations

from contextlib import closing

import pytest

from kb.api.errors import TooLong
from kb.processor_time import at_most, check
from kb.search import service
from kb.search.query import Query
from kb.search.recall_monitor import RecallMonitor
from kb.search.service import SearchService
from kb.store.rows import Filter
from kb.telemetry.instruments import FollowingPool, Instruments

ENDLESS = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.mark.sqlite
def test_a_statement_without_an_end_is_ended_and_the_connection_goes_on(make_store):
    with make_store() as store:
        for _ in range(3):
            with pytest.raises(TooLong, match="shorter phrases"), at_most(0.02), store.view() as tx:
                tx.connection.execute(ENDLESS).fetchall()
        with store.view() as tx:
            assert tx.documents.count(Filter()) == 0


def test_only_the_block_has_a_limit():
    with pytest.raises(TooLong), at_most(-1):
        check()
    check()
    with at_most(60):
        check()


def test_a_search_is_ended_and_the_next_one_answers(make_store, embedder, monkeypatch):
    query = Query.parse("keeper", Filter(), full_text=True, vectors=False)
    with make_store() as store, FollowingPool(1) as pool, closing(RecallMonitor(store, Instruments())) as recall:
        searches = SearchService(store, embedder, pool, Instruments(), recall)
        with monkeypatch.context() as patch:
            patch.setattr(service, "MOST_SECONDS", -1)
            with pytest.raises(TooLong):
                searches.search(query, 5)
        assert searches.search(query, 5).results == []
