"""What stood together in a former version is found by its parts, too."""

from __future__ import annotations

from tests.http.conftest import finished


async def test_a_former_version_is_found_by_a_part_of_what_stood_together(api):
    job = await finished(api, await api.add_note(text="昨日の夕方に灯台を訪れた。", tags=["lighthouse"]))
    before = (await api.document(job["document_id"]))["created_at"]
    await api.update_note(job["document_id"], text="Nothing is here any more.")
    await finished(api, await api.add_note(text="灯台は新しい。", tags=["lighthouse"]))
    for query in ("灯台", '"灯台を"', "夕方 -新しい", "夕", "訪れ*"):
        now = await api.search(query=query, tags=["lighthouse"], fts_only=True)
        then = await api.search(query=query, tags=["lighthouse"], fts_only=True, as_of=before)
        assert [result["document_id"] for result in then["results"]] == [job["document_id"]]
        assert job["document_id"] not in [result["document_id"] for result in now["results"]]


async def test_a_beginning_weighs_as_much_at_a_moment_as_it_does_now(api):
    for text in ("山の上の山小屋", "山小屋と海", "mountain mountains mountaineer"):
        job = await finished(api, await api.add_note(text=text, tags=["mountains"]))
    moment = (await api.document(job["document_id"]))["created_at"]
    for query, count in (("山", 2), ("mount*", 1), ("山 海", 2)):
        now, then = [
            [(each["text"], each["fts_score"]) for each in (await api.search(**asked))["results"]]
            for asked in (
                {"query": query, "tags": ["mountains"], "fts_only": True},
                {"query": query, "tags": ["mountains"], "fts_only": True, "as_of": moment},
            )
        ]
        assert now == then
        assert len(now) == count


async def test_a_beginning_finds_at_a_moment_what_it_finds_now(api):
    texts = (
        "The organization moved.",
        "Organizers met; they organized.",
        "No generalization holds.",
        "The organ plays.",
    )
    jobs = [await finished(api, await api.add_note(text=text, tags=["begun then"])) for text in texts]
    moment = (await api.document(jobs[-1]["document_id"]))["created_at"]
    for query, count in (("organiz*", 3), ("generaliz* plays", 2)):
        asked = {"query": query, "tags": ["begun then"], "fts_only": True, "explain": True}
        now, then = [(await api.search(**asked, **more))["results"] for more in ({}, {"as_of": moment})]
        assert now == then
        assert len(now) == count
    await api.update_note(jobs[0]["document_id"], text="Nothing is here any more.")
    then = await api.search(query="organiz*", tags=["begun then"], fts_only=True, as_of=moment)
    assert jobs[0]["document_id"] in [result["document_id"] for result in then["results"]]
