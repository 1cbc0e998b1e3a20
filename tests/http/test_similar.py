"""Documents like one, found by its id."""

from __future__ import annotations

import pytest

from kb.api.errors import NotFound
from tests.http.conftest import added

TEXTS = (
    "The ferry to the island leaves at six, from the southern pier of the harbour.",
    "At six the ferry leaves the southern pier of the harbour for the island.",
    "Boil the potatoes for twenty minutes and mash them with butter.",
)


async def test_similar_documents_come_nearest_first_without_the_document_itself(api):
    ferry, same, potatoes = [await added(api, text) for text in TEXTS]
    results = (await api.similar(ferry, top=50))["results"]
    found = {result["document_id"]: result for result in results}
    assert ferry not in found
    assert found[same]["vec_score"] > 0.9
    assert found[same]["fts_score"] is None
    assert found.get(potatoes, {"vec_score": 0})["vec_score"] < found[same]["vec_score"]
    linked = {result["replaced_by"] for result in results}  # what replaced another one takes its place
    scores = [each["score"] for each in results if not each["replaced_by"] and each["document_id"] not in linked]
    assert scores == sorted(scores, reverse=True)
    assert len((await api.similar(ferry, top=1))["results"]) == 1


async def test_a_document_that_is_not_there_has_no_similar_ones(api):
    with pytest.raises(NotFound):
        await api.similar(10**9, top=3)
