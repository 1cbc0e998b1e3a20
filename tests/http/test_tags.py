"""A tag is the same however its letters are written."""

from __future__ import annotations

from tests.http.conftest import added

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


async def test_a_tag_of_composed_letters_is_found_and_removed_as_one_of_decomposed_ones(api):
    document_id = await added(api, "An espresso.", tags=[DECOMPOSED, COMPOSED])
    assert (await api.document(document_id))["tags"] == [COMPOSED]
    for tag in (COMPOSED, DECOMPOSED):
        assert document_id in [each["id"] for each in (await api.documents(tag=[tag]))["documents"]]
        found = (await api.search(query="espresso", tags=[tag]))["results"]
        assert document_id in [each["document_id"] for each in found]
    await api.change_tags(document_id, remove=[DECOMPOSED])
    assert (await api.document(document_id))["tags"] == []
