"""Operators in a query, and what an answer says of them."""

from __future__ import annotations

from io import BytesIO

import pytest

from tests.http.conftest import added, finished


async def search(api, query, **request):
    reply = await api.search(query=query, **request)
    return [result["title"] for result in reply["results"]], reply


@pytest.fixture
async def shelf(api, word):
    """Documents of a branch of tags that no other test has."""
    for title, tags, date in (
        ("Oldest", ["a"], "2024-05-01"),
        ("Middle", ["a", "b"], "2025-05-01"),
        ("Newest", [], "2026-05-01"),
    ):
        text = f"---\ndate: {date}\n---\nThe lamp of {title} is on the quay, says {word}."
        await added(
            api, text, title=title, tags=[word, *(f"{word}/{tag}" for tag in tags)], source_path=f"/{word} box/{title}"
        )
    page = b"# Lamp page\n\nThe lamp is blue."
    job = await api.add_file("page.md", BytesIO(page), tags=[word], source_path=f"/{word} box/sub/page.md")
    await finished(api, job)
    return word


async def test_operators_narrow_a_search_as_its_filters_do(api, shelf):
    cases = {
        f"lamp tag:{shelf}/a": {"Oldest", "Middle"},
        f"lamp #{shelf}/a": {"Oldest", "Middle"},
        f"lamp #{shelf}/a -#{shelf}/b": {"Oldest"},
        f"lamp tag:{shelf.upper()} after:2025 before:2026": {"Middle"},
        f'lamp path:"{shelf} box" type:md': {"Lamp page"},
        f'lamp path:"{shelf.upper()} BOX/SUB"': {"Lamp page"},
        f'lamp path:"{shelf} box" -type:markdown': {"Oldest", "Middle", "Newest"},
        f"lamp tag:{shelf} -path:sub": {"Oldest", "Middle", "Newest"},
        f"lamp tag:{shelf} type:md,note": {"Oldest", "Middle", "Newest", "Lamp page"},
        f"tag:{shelf} lamp -blue": {"Oldest", "Middle", "Newest"},
        f'"lamp is blue" tag:{shelf}': {"Lamp page"},
    }
    for query, titles in cases.items():
        for mode in ({}, {"fts_only": True}, {"group_by": "document"}):
            assert set((await search(api, query, **mode))[0]) == titles, (query, mode)


async def test_typed_and_given_filters_combine(api, shelf):
    assert (await search(api, f"lamp tag:{shelf}/a", tags=[f"{shelf}/b"]))[0] == ["Middle"]
    assert (await search(api, f"lamp tag:{shelf} type:md", doc_type="note"))[0] == []


async def test_a_query_of_operators_lists_the_newest_documents(api, shelf):
    titles, reply = await search(api, f"tag:{shelf} type:note")
    assert titles == ["Newest", "Middle", "Oldest"]
    assert {(result["exact"], result["fts_score"]) for result in reply["results"]} == {(True, None)}
    assert not reply["weak"]
    assert (await search(api, f"tag:{shelf} -type:md", top=2, group_by="document"))[0] == ["Newest", "Middle"]
    assert (await search(api, f"tag:{shelf} -oldest", fts_only=True))[0][1:] == ["Newest", "Middle"]
    assert (await search(api, f"tag:{shelf}/none"))[0] == []


async def test_an_answer_tells_the_operators_that_it_used(api, shelf):
    _, reply = await search(api, f"lamp #{shelf}/a after:2025 -tokio -after:noon")
    assert [tuple(each.values()) for each in reply["operators"]] == [
        ("tag", f"{shelf}/a", False, f"#{shelf}/a"),
        ("after", "2025-01-01", False, "after:2025"),
    ]
    _, reply = await search(api, f"lamp tag:{shelf} -tokio")
    assert [each["typed"] for each in reply["operators"]] == [f"tag:{shelf}", "-tokio"]
    _, reply = await search(api, f"lamp of {shelf} C:\\x 12:30 type:string", tags=[shelf])
    assert reply["operators"] == []


async def test_a_hash_before_no_tag_is_a_word(api, shelf):
    titles, reply = await search(api, f"#{shelf}zz lamp", tags=[shelf])
    assert titles
    assert not reply["operators"]


async def test_results_with_every_typed_word_are_exact(api, shelf):
    _, reply = await search(api, "lamps quays", tags=[shelf])
    assert {result["title"] for result in reply["results"] if result["exact"]} == {"Oldest", "Middle", "Newest"}
    _, reply = await search(api, "lamp of zanzibar", tags=[shelf])
    assert not any(result["exact"] for result in reply["results"])
    _, reply = await search(api, "lamp", tags=[shelf], vec_only=True)
    assert not any(result["exact"] for result in reply["results"])
    _, reply = await search(api, "blue lamp page", tags=[shelf], group_by="document")
    assert reply["results"][0]["exact"]


async def test_a_corrected_word_can_be_searched_for_as_typed(api, shelf):
    await added(api, "The carburettor was cleaned.", tags=[shelf])
    _, reply = await search(api, "carburettro lamp", tags=[shelf])
    assert reply["unknown"][0]["nearest"][0] == "carburettor"
    assert reply["as_typed"] == '"carburettro" lamp'
    assert not any(result["exact"] for result in reply["results"])
    _, typed = await search(api, reply["as_typed"], tags=[shelf])
    assert typed["unknown"] == [{"word": "carburettro", "nearest": []}]
    assert typed["as_typed"] is None
    _, known = await search(api, "carburettor", tags=[shelf])
    assert (known["unknown"], known["as_typed"]) == ([], None)
