"""Documents by the path that they come from and by the name of their file, and parts of them by their heading."""

from __future__ import annotations

import asyncio
import io
import re

import pytest

from kb.client.client import EngineClient
from kb_mcp.tools.path_hints import MOST_READ
from tests.conftest import ALL_APPS, KEY, MCP_KEY
from tests.http.conftest import until_idle
from tests.mcp.conftest import call, connected, done, noted, refusal
from tests.support.pdf import pdf


async def test_a_note_does_not_take_the_place_of_a_file(agent, engine, word):
    path = f"/shelf/{word}.pdf"
    file = (await engine.add_file("a.pdf", io.BytesIO(pdf(word)), source_path=path, wait=30))["document_id"]
    said = await refusal(agent, "kb_addnote", text=f"a summary of {word}", source_path=path)
    where = f"source_path: document {file}, of type pdf, has this path."
    assert said == f"{where} To say where a note comes from, use source instead."
    assert (await engine.document(file))["doc_type"] == "pdf"


async def test_a_file_does_not_take_the_place_of_a_note(agent, engine, word):
    path = f"keys/{word}"
    note = (await noted(agent, text=f"{word} is a note", source_path=path))["document_id"]
    for content in ({"text": f"{word} is a file"}, {"total_size": 10}):
        said = await refusal(agent, "kb_upload_start", filename="a.txt", source_path=path, **content)
        where = f"source_path: note {note} has this path."
        assert said == f"{where} Change it with kb_update_note, or use another path."
    assert (await engine.document(note))["doc_type"] == "note"


@pytest.fixture(scope="module")
def archive(start_server, tmp_path_factory):
    """A server with a file that came long before all else, and its id."""
    with start_server(
        tmp_path_factory.mktemp("archive"), KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY, KB_APPS=ALL_APPS
    ) as server:
        yield server, asyncio.run(fill(server))


async def fill(server):
    async with EngineClient(server.url, KEY) as engine:
        file = io.BytesIO(b"<title>test</title><p>High water at noon.</p>")
        added = await engine.add_file("x.html", file, source_path="/archive/files/Tide_tables.html", wait=30)
        for number in range(MOST_READ + 1):
            await engine.add_note(text=f"Entry {number}")
        await until_idle(engine)
        return added["document_id"]


@pytest.mark.rare
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("kb_get", {"source_path": "tide_tables.html"}),
        ("kb_get", {"source_path": "files/Tide_tables.html"}),
        ("kb_get", {"document_id": "tide_tables.html"}),
        ("kb_list", {"source_prefix": "Tide_tables.html"}),
        ("kb_search", {"query": "water", "source_prefix": "Tide_tables.html"}),
    ],
)
async def test_a_file_is_found_by_its_name_however_much_came_later(archive, tool, arguments):
    server, old_file = archive
    async with connected(server, auth=MCP_KEY) as agent:
        found = await agent.call_tool(tool, arguments, raise_on_error=False)
    assert f'Did you mean one of these: "test" is {old_file}' in found.content[0].text


async def test_files_of_one_name_are_told_apart_by_their_paths(agent, engine, word):
    for folder in ("old", "new"):
        page = f"<title>test</title><p>{word} {folder}</p>".encode()
        added = await engine.add_file("x.html", io.BytesIO(page), source_path=f"/{folder}/{word}.html", wait=30)
    listed = (await agent.call_tool("kb_get", {"source_path": f"{word}.html"})).content[0].text
    assert f'"test" at "/new/{word}.html" is {added["document_id"]}; "test" at "/old/{word}.html" is ' in listed


async def test_a_name_that_no_file_has_is_not_looked_for_in_texts(agent, word):
    listed = await agent.call_tool("kb_list", {"source_prefix": f"{word}.html"})
    assert f'No path begins with "{word}.html"' in listed.content[0].text
    assert "Search for words in its text with kb_search" in listed.content[0].text


WEB_PAGES = ('web page "a.html"', 'web page "b.html"', "web page")


async def test_files_of_one_title_are_told_apart_by_their_names(agent, engine, word):
    said = {"a.html": "lies under the apple tree", "b.html": "went to Bergen by boat", "": "is older than the chapel"}
    for name, end in said.items():
        content = f"<title>test</title><p>{word} {end}.</p>".encode()
        options = {"source_path": f"/{word}/{name}"} if name else {}
        await done(agent, await engine.add_file("x.html", io.BytesIO(content), tags=[word], **options))
    await noted(agent, text=f"{word} is a note", source_path=f"keys/{word}", tags=[word])
    for tool, arguments in (("kb_search", {"query": word, "top": 10, "fts_only": True}), ("kb_list", {})):
        lines = (await agent.call_tool(tool, {**arguments, "tags": [word]})).content[0].text.splitlines()
        files = [line for line in lines if '"test"' in line]
        assert len(files) == 3
        assert [sum(f" · {name}" in line for line in files) for name in WEB_PAGES] == [1, 1, 3]
        assert not [line for line in lines if f'"{word}" ·' in line]


async def test_a_file_that_is_titled_like_its_name_is_named_once(agent, engine, word):
    file, name = io.BytesIO(word.encode()), f"{word}.txt"
    await done(agent, await engine.add_file(name, file, title=name, source_path=f"/x/{name}", tags=[word]))
    listed = (await agent.call_tool("kb_list", {"tags": [word]})).content[0].text
    assert listed.count(name) == 1


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
    shown = re.search(r"(?<=\n)>>>\d+ chunk \d+", found.content[0].text)[0]
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
    assert first.content[0].text.endswith(f"Next page: cursor='{cursor}'.")
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
