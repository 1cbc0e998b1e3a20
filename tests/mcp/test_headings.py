"""Places as answers show them, and headings as the text has them: both lead there."""

from __future__ import annotations

import io
import re

import pytest

from tests.mcp.conftest import call, done, noted, refusal

LONG = "The history of the harbour, of its keepers, and of the lamps that they lit when no ship was expected at all"
LINE = "The keeper of the {0} noted the ships and the wind. "


@pytest.fixture
async def chronicle(agent, engine, word):
    """A file with the same heading twice, and one that is longer than what answers show of it."""
    part = "# {0}\n\n" + LINE * 20 + "\n\n## History\n\n" + LINE * 20 + "\n\n"
    last = f"## {LONG}\n\n{word} {LINE * 20}"
    text = "".join(part.format(name) for name in ("North", "South [new]")) + last
    return await done(agent, await engine.add_file("chronicle.md", io.BytesIO(text.encode()), source_path=word))


async def texts(agent, **arguments):
    return "".join(chunk["text"] for chunk in (await call(agent, "kb_get", **arguments))["chunks"])


async def test_the_head_of_a_result_is_a_place_to_read(agent, chronicle, word):
    found = await agent.call_tool("kb_search", {"query": word, "fts_only": True})
    shown = re.search(r"\[document \d+, chunk \d+\]", found.content[0].text)[0]
    [hit] = found.structured_content["results"]
    read = await call(agent, "kb_get", document_id=shown, around=0)
    assert [chunk["id"] for chunk in read["chunks"]] == [hit["chunk_id"]]


async def test_a_path_of_headings_is_understood_as_results_show_it(agent, chronicle, word):
    found = await agent.call_tool("kb_search", {"query": word, "fts_only": True})
    shown = re.search(r'"South \(new\) › The history .*?…"', found.content[0].text)[0]
    assert word in await texts(agent, document_id=chronicle, heading=shown)
    for path, keeper in (
        ("South (new) › History", "South [new]"),
        ("North › History", "North"),
        ("› History", "North"),
    ):
        read = await texts(agent, document_id=chronicle, heading=path)
        assert read.startswith("## History")
        assert LINE.format(keeper) in read


@pytest.mark.parametrize("written", ["Budget", "budget", "## Budget", "**Budget**", "Budg"])
async def test_a_section_of_a_note_is_read_by_its_heading(agent, word, written):
    sections = [f"## {name}\n\n{LINE.format(name) * 12}\n\n" for name in ("Plan", "Budget", "Team")]
    note = (await noted(agent, text=f"{word} {written}\n\n" + "".join(sections)))["document_id"]
    read = await texts(agent, document_id=note, heading=written)
    assert sections[1].strip() in read
    assert read.count(LINE.format("Plan")) < 12
    nowhere = await refusal(agent, "kb_get", document_id=note, heading="Nowhere")
    assert nowhere.startswith("heading: document")
    assert "has no headings" not in nowhere


async def test_a_short_section_that_was_joined_to_its_neighbours_is_found(agent, engine, word):
    text = f"# {word}\n\n" + "".join(f"## Part {number}\n\nshort {number}\n\n" for number in range(6))
    file = await done(agent, await engine.add_file("parts.md", io.BytesIO(text.encode())))
    for number in range(6):
        assert f"short {number}" in await texts(agent, document_id=file, heading=f"Part {number}")


async def test_a_line_of_its_own_is_a_heading_too(agent, word):
    note = (await noted(agent, text=f"{word}\n\n{LINE * 30}\n\nSmall print\n\nNo refunds."))["document_id"]
    assert "No refunds." in await texts(agent, document_id=note, heading="Small print")


@pytest.mark.parametrize("place", [{"query": "no refunds"}, {"heading": "Budget"}, {"from_chunk": 1}, {"around": 1}])
async def test_a_place_is_read_also_where_the_document_is_named_by_its_path(agent, word, place):
    text = f"{word} {place}\n\n{LINE * 30}\n\n## Budget\n\nNo refunds."
    note = (await noted(agent, text=text, source_path=f"keys/{word}"))["document_id"]
    assert await call(agent, "kb_get", source_path=f"keys/{word}", **place) == await call(
        agent, "kb_get", document_id=note, **place
    )
    listed = await call(agent, "kb_get", source_path=f"keys/{word}")
    assert [each["id"] for each in listed["documents"]] == [note]


async def test_a_page_of_jobs_goes_on_as_it_says(agent, word):
    for number in range(3):
        await noted(agent, text=f"{word} {number}")
    first = await agent.call_tool("kb_jobs", {"limit": 1})
    cursor = first.structured_content["next_cursor"]
    assert first.content[0].text.endswith(f"Go on with cursor='{cursor}'.")
    for same in (cursor, int(cursor)):
        [job] = (await call(agent, "kb_jobs", limit=1, cursor=same))["jobs"]
        assert job["id"] < first.structured_content["jobs"][0]["id"]


async def test_short_sections_in_one_passage_are_cited_under_what_they_share_and_each_is_found(agent, engine, word):
    towns = "".join(f"## {town}\n\nIt rains in May.\n\n" for town in ("Aachen", "Bonn"))
    file = io.BytesIO(f"# Weather of towns\n\n{towns}".encode())
    document = await done(agent, await engine.add_file("weather.md", file, source_path=word, tags=[word]))
    found = await agent.call_tool("kb_search", {"query": "rains in Bonn", "tags": [word]})
    [hit] = found.structured_content["results"]
    assert "## Aachen" in hit["text"]
    assert hit["place"]["heading"] == ["Weather of towns"]
    for town in ("Aachen", "Bonn"):
        assert f"## {town}" in await texts(agent, document_id=document, heading=town)
