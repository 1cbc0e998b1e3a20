"""Documents by the path that they come from, and by the name of their file."""

from __future__ import annotations

import asyncio
import io

import pytest

from kb.client.client import EngineClient
from kb_mcp.tools.paths import MOST_READ
from tests.conftest import ALL_APPS, KEY, MCP_KEY
from tests.http.conftest import until_idle
from tests.mcp.conftest import connected, done, noted, refusal
from tests.support.pdf import pdf


async def test_a_note_does_not_take_the_place_of_a_file(agent, engine, word):
    path = f"/shelf/{word}.pdf"
    file = (await engine.add_file("a.pdf", io.BytesIO(pdf(word)), source_path=path, wait=30))["document_id"]
    said = await refusal(agent, "kb_addnote", text=f"a summary of {word}", source_path=path)
    where = f"source_path: document {file}, of type pdf, has this path;"
    assert said == f"{where} use source for where you have it from."
    assert (await engine.document(file))["doc_type"] == "pdf"


async def test_a_file_does_not_take_the_place_of_a_note(agent, engine, word):
    path = f"keys/{word}"
    note = (await noted(agent, text=f"{word} is a note", source_path=path))["document_id"]
    for content in ({"text": f"{word} is a file"}, {"total_size": 10}):
        said = await refusal(agent, "kb_upload_start", filename="a.txt", source_path=path, **content)
        where = f"source_path: note {note} has this path;"
        assert said == f"{where} change it with kb_update_note, or give another."
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
    assert f'Perhaps you mean one of these: "test" is {old_file}' in found.content[0].text


async def test_files_of_one_name_are_told_apart_by_their_paths(agent, engine, word):
    for folder in ("old", "new"):
        page = f"<title>test</title><p>{word} {folder}</p>".encode()
        added = await engine.add_file("x.html", io.BytesIO(page), source_path=f"/{folder}/{word}.html", wait=30)
    listed = (await agent.call_tool("kb_get", {"source_path": f"{word}.html"})).content[0].text
    assert f'"test" at "/new/{word}.html" is {added["document_id"]}; "test" at "/old/{word}.html" is ' in listed


async def test_a_name_that_no_file_has_is_not_looked_for_in_texts(agent, word):
    listed = await agent.call_tool("kb_list", {"source_prefix": f"{word}.html"})
    assert f'No path begins with "{word}.html"' in listed.content[0].text
    assert "kb_search for words of its text" in listed.content[0].text


async def test_files_of_one_title_are_told_apart_by_their_names(agent, engine, word):
    said = {"a.html": "lies under the apple tree", "b.html": "went to Bergen by boat", "": "is older than the chapel"}
    for name, end in said.items():
        content = f"<title>test</title><p>{word} {end}.</p>".encode()
        options = {"source_path": f"/{word}/{name}"} if name else {}
        await done(agent, await engine.add_file("x.html", io.BytesIO(content), tags=[word], **options))
    await noted(agent, text=f"{word} is a note", source_path=f"keys/{word}", tags=[word])
    for tool, arguments in (("kb_search", {"query": word, "fts_only": True}), ("kb_list", {})):
        lines = (await agent.call_tool(tool, {**arguments, "tags": [word]})).content[0].text.splitlines()
        files = [line for line in lines if '"test"' in line]
        assert len(files) == 3
        assert [sum(f" · {name}" in line for line in files) for name in ('"a.html"', '"b.html"', "html")] == [1, 1, 1]
        assert not [line for line in lines if f'"{word}" ·' in line]


async def test_a_file_that_is_titled_like_its_name_is_named_once(agent, engine, word):
    file, name = io.BytesIO(word.encode()), f"{word}.txt"
    await done(agent, await engine.add_file(name, file, title=name, source_path=f"/x/{name}", tags=[word]))
    listed = (await agent.call_tool("kb_list", {"tags": [word]})).content[0].text
    assert listed.count(name) == 1
