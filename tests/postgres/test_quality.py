"""Searches in PostgreSQL are as good as in a file; `bench.quality` compares whole collections."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from bench.collection import collection
from bench.quality import APART, apart, measure
from tests.support.postgres import database_url

pytestmark = pytest.mark.postgres
CONVERSATION = "conv-26"
ASKED = 60


def of_one_conversation(records):
    return {key: record for key, record in records.items() if record["scope"] == CONVERSATION}


async def test_questions_about_a_conversation_are_answered_alike_over_both_stores(start_server, tmp_path, test_data):
    every = collection("locomo_sessions")
    queries = dict(islice(of_one_conversation(every.queries).items(), ASKED))
    wanted = replace(every, documents=of_one_conversation(every.documents), queries=queries)
    assert (len(wanted.documents), len(wanted.questions)) == (19, ASKED)
    urls = {"file": f"sqlite:///{tmp_path / 'file' / 'kb.db'}", "postgres": database_url(tmp_path)}
    found = []
    for name, url in urls.items():
        with start_server(tmp_path / name, KB_DATABASE_URL=url) as server:
            found.append(await measure(server.url, wanted))
    assert found[0]["both"][0].value > 0.7
    assert apart(*found) <= APART
