"""What stood together in a former version is found by its parts, too."""

from __future__ import annotations

from tests.http.conftest import finished


async def test_a_former_version_is_found_by_a_part_of_what_stood_together(api):
    job = await finished(api, await api.add_note(text="昨日の夕方に灯台を訪れた。", tags=["lighthouse"]))
    before = (await api.document(job["document_id"]))["created_at"]
    await api.update_note(job["document_id"], text="Nothing is here any more.")
    await finished(api, await api.add_note(text="灯台は新しい。", tags=["lighthouse"]))
    for query in ("灯台", '"灯台を"', "夕方 -新しい"):
        now = await api.search(query=query, tags=["lighthouse"], fts_only=True)
        then = await api.search(query=query, tags=["lighthouse"], fts_only=True, as_of=before)
        assert [result["document_id"] for result in then["results"]] == [job["document_id"]]
        assert job["document_id"] not in [result["document_id"] for result in now["results"]]
