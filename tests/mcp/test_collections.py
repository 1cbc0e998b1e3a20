"""The scenarios of the collections surface (original/03 and 04), each under its own name."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys

import httpx2
import pytest
from fastmcp import Client
from mcp_types import PromptReference

from kb_mcp.collections.membership import MOVED
from tests.conftest import ALL_APPS, KEY, MCP_KEY, ROOT
from tests.mcp.conftest import call, connected, done, refusal
from tests.support.fork_server import run


@pytest.fixture(scope="module")
def gateway(start_gateway, server):
    settings = {"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY, "KB_MCP_API_KEY": MCP_KEY, "KB_MCP_COLLECTIONS": "1"}
    with start_gateway(**settings) as running:
        yield running


@pytest.fixture
async def agent(era, gateway):
    async with Client(f"{gateway.url}/collections/mcp", auth=MCP_KEY, mode=era) as client:
        yield client


async def tags(engine, document_id):
    return sorted((await engine.document(document_id))["tags"])


async def upload(agent, text, **options):
    started = await call(agent, "kb_upload_start", filename="report.txt", total_size=len(text), **options)
    data = base64.b64encode(text.encode()).decode()
    await call(agent, "kb_upload_chunk", upload_id=started["upload_id"], chunk_index=0, data=data)
    return await done(agent, await call(agent, "kb_upload_finish", upload_id=started["upload_id"]))


@pytest.mark.requirement("C-1")
async def test_search_with_collection_filter(agent, word):
    kept = await done(agent, await call(agent, "kb_addnote", text=f"{word} email preferences", collection="memory"))
    await done(agent, await call(agent, "kb_addnote", text=f"{word} email archive", collection="workspace"))
    found = await call(agent, "kb_search", query=f"{word} email preferences", collection="memory", fts_only=True)
    assert {each["collection"] for each in found["results"]} == {"memory"}
    assert kept in [each["document_id"] for each in found["results"]]


@pytest.mark.requirement("C-1")
async def test_search_with_tags_and_collection(agent, word):
    for tag, collection in ((word, "memory"), (word, "workspace"), ("other", "memory")):
        text = f"{word} feedback in {collection}, {tag}"
        await done(agent, await call(agent, "kb_addnote", text=text, tags=[tag], collection=collection))
    [found] = (await call(agent, "kb_search", query="feedback", tags=[word], collection="memory"))["results"]
    assert (found["tags"], found["collection"]) == ([word], "memory")


@pytest.mark.requirement("C-1")
async def test_a_search_in_an_empty_collection_says_that_it_is_empty(start_gateway, server, word):
    settings = {"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY, "KB_MCP_COLLECTIONS": "1"}
    with start_gateway(**settings, KB_MCP_COLLECTION_NAMES=f"full-{word}, bare-{word}") as gateway:
        async with connected(gateway, "/collections/mcp") as agent:
            await done(agent, await call(agent, "kb_addnote", text=f"{word} is kept", tags=[word]))
            empty = await agent.call_tool("kb_search", {"query": word, "collection": f"bare-{word}"})
            assert empty.structured_content["rest"] == f"The collection bare-{word} is empty."
            assert empty.content[0].text == f"The collection bare-{word} is empty."
            wrong = await call(agent, "kb_search", query=word, collection=f"full-{word}", tags=[f"{word}x"])
            assert wrong["rest"].startswith(f'No tag "{word}x" exists')


@pytest.mark.requirement("C-4")
async def test_search_results_strip_collection_tags(agent, word):
    given = [word, "feedback", "email"]
    await done(agent, await call(agent, "kb_addnote", text=f"{word} x", tags=given, collection="memory"))
    result = await agent.call_tool("kb_search", {"query": "x", "tags": [word]})
    [found] = result.structured_content["results"]
    assert (found["collection"], sorted(found["tags"])) == ("memory", sorted(given))
    assert "collection:" not in result.content[0].text


@pytest.mark.requirement("C-2")
@pytest.mark.parametrize("left_out", [{}, {"collection": None}, {"collection": ""}])
async def test_add_a_note_with_default_collection(agent, engine, word, left_out):
    document_id = await done(
        agent, await call(agent, "kb_addnote", text=f"{word} prefers concise responses", **left_out)
    )
    assert await tags(engine, document_id) == ["collection:documents"]


@pytest.mark.requirement("C-1")
async def test_add_a_note_to_a_specific_collection(agent, engine, word):
    accepted = await call(agent, "kb_addnote", text=f"{word} is concise", collection="memory", tags=["feedback"])
    assert await tags(engine, await done(agent, accepted)) == ["collection:memory", "feedback"]


@pytest.mark.requirement("C-2")
async def test_default_collection_on_addnote(agent, engine, word):
    document_id = await done(agent, await call(agent, "kb_addnote", text=word, tags=["b", "a"]))
    assert await tags(engine, document_id) == ["a", "b", "collection:documents"]


@pytest.mark.requirement("C-1")
@pytest.mark.parametrize("name", ["documents", "memory", "workspace"])
async def test_explicit_collection_on_addnote(agent, engine, word, name):
    document_id = await done(agent, await call(agent, "kb_addnote", text=word, collection=name))
    assert await tags(engine, document_id) == [f"collection:{name}"]


@pytest.mark.requirement("C-4")
async def test_collection_field_in_search_results(agent, engine, word):
    expected = {}
    for number, given in enumerate((["collection:memory", "x"], ["collection:workspace"], ["x"], [])):
        document_id = await done(agent, await engine.add_note(text=f"{word} {number}", tags=given))
        expected[document_id] = (
            next((tag.removeprefix("collection:") for tag in given if ":" in tag), None),
            [tag for tag in given if ":" not in tag],
        )
    found = (await call(agent, "kb_search", query=word, top=10, fts_only=True))["results"]
    assert {each["document_id"]: (each["collection"], each["tags"]) for each in found} == expected


@pytest.mark.requirement("C-3")
async def test_add_a_note_to_a_collection_replaces_existing_collection_tag_and_the_answer_says_so(agent, engine, word):
    first = await call(agent, "kb_addnote", text=f"some note {word}", collection="workspace", tags=["a"])
    document_id = await done(agent, first)
    assert not first.keys() & {"existed", "rest"}
    again = await call(agent, "kb_addnote", text=f"some note {word}", collection="memory", tags=["b"])
    assert (again["document_id"], again["existed"]) == (document_id, True)
    assert again["rest"] == MOVED.format("workspace", "memory")
    assert await tags(engine, document_id) == ["a", "b", "collection:memory"]
    same = await call(agent, "kb_addnote", text=f"some note {word}", collection="memory")
    assert same["existed"]
    assert "rest" not in same


@pytest.mark.requirement("C-3")
async def test_a_note_that_is_there_in_no_collection_goes_to_the_one_it_is_added_to(agent, engine, word):
    document_id = await done(agent, await engine.add_note(text=word, tags=["a"]))
    added = await call(agent, "kb_addnote", text=word, collection="memory")
    assert (added["document_id"], added["existed"], "rest" in added) == (document_id, True, False)
    assert await tags(engine, document_id) == ["a", "collection:memory"]


@pytest.mark.requirement("C-3")
async def test_new_text_under_a_path_goes_to_the_collection_it_is_added_to(agent, engine, word):
    note = {"source_path": f"talk/{word}"}
    document_id = await done(agent, await call(agent, "kb_addnote", text=f"{word} 1", collection="workspace", **note))
    added = await call(agent, "kb_addnote", text=f"{word} 2", collection="memory", **note)
    assert await done(agent, added) == document_id
    assert await tags(engine, document_id) == ["collection:memory"]


@pytest.mark.requirement("C-3")
async def test_a_file_sent_again_moves_to_the_collection_it_is_sent_to(agent, engine, word):
    document_id = await upload(agent, f"the file {word}", collection="workspace")
    assert await upload(agent, f"the file {word}") == document_id
    assert await tags(engine, document_id) == ["collection:documents"]


async def test_an_upload_that_began_on_the_default_surface_goes_to_no_collection(agent, gateway, engine, word):
    async with Client(f"{gateway.url}/mcp", auth=MCP_KEY) as other:
        started = await call(other, "kb_upload_start", filename="report.txt", total_size=len(word))
        data = base64.b64encode(word.encode()).decode()
        await call(other, "kb_upload_chunk", upload_id=started["upload_id"], chunk_index=0, data=data)
    finished = await call(agent, "kb_upload_finish", upload_id=started["upload_id"])
    assert await tags(engine, await done(agent, finished)) == []


@pytest.mark.requirement("C-1")
@pytest.mark.requirement("C-2")
async def test_start_and_finish_an_upload_with_a_collection(agent, engine, word):
    assert await tags(engine, await upload(agent, f"{word} one", tags=["insurance"], collection="memory")) == [
        "collection:memory",
        "insurance",
    ]
    assert await tags(engine, await upload(agent, f"{word} two")) == ["collection:documents"]


@pytest.mark.requirement("C-2")
async def test_an_unknown_collection_is_an_error_that_lists_them(agent):
    expected = "collection: no 'memories' exists. Collections: documents, memory, workspace."
    for tool, arguments in (
        ("kb_search", {"query": "x"}),
        ("kb_addnote", {"text": "x"}),
        ("kb_upload_start", {"filename": "a", "total_size": 1}),
        ("kb_set_collection", {"document_id": 1}),
    ):
        assert await refusal(agent, tool, collection="memories", **arguments) == expected
    assert "no \"['memory']\" exists" in await refusal(agent, "kb_addnote", text="x", collection=["memory"])


@pytest.mark.requirement("C-3")
async def test_a_second_collection_cannot_come_in_as_a_tag(agent):
    said = await refusal(agent, "kb_addnote", text="x", tags='["collection:memory"]')
    assert said.startswith("tags: to set the collection, use the collection parameter")


@pytest.mark.requirement("C-4")
async def test_get_results_strip_collection_tags(agent, word):
    document_id = await done(agent, await call(agent, "kb_addnote", text=word, tags=["x"], collection="memory"))
    document = await call(agent, "kb_get", document_id=document_id)
    assert (document["collection"], document["tags"]) == ("memory", ["x"])
    updated = await call(agent, "kb_update_note", document_id=document_id, text=f"{word} new")
    assert (updated["collection"], updated["tags"]) == ("memory", ["x"])
    [contents] = await agent.read_resource(f"kb://documents/{document_id}")
    assert '"collection":"memory"' in contents.text
    assert "collection:" not in contents.text.replace("kb_get", "")


@pytest.mark.requirement("C-4")
async def test_the_collection_is_shown_beside_more_tags_than_an_answer_has_room_for(agent, word):
    many = [f"a tag of some length {number:02}" for number in range(60)]
    text = f"{word} has many tags"
    document = await done(agent, await call(agent, "kb_addnote", text=text, tags=many, collection="workspace"))
    shown = await call(agent, "kb_get", document_id=document)
    assert shown["collection"] == "workspace"
    assert 0 < len(shown["tags"]) < len(many)


@pytest.mark.requirement("C-4")
async def test_a_document_without_collection_shows_none(agent, engine, word):
    document_id = await done(agent, await engine.add_note(text=word, tags=["x"]))
    assert (await call(agent, "kb_get", document_id=document_id))["collection"] is None


@pytest.mark.requirement("C-3")
@pytest.mark.requirement("C-5")
async def test_exclusive_collection_enforcement(agent, engine, word):
    document_id = await done(agent, await call(agent, "kb_addnote", text=word, tags=["x"]))
    await engine.change_tags(document_id, add=["collection:of-another-time", "collection:workspace"])
    moved = await call(agent, "kb_set_collection", document_id=document_id, collection="memory")
    assert next(iter(moved)) == "notice"
    assert (moved["id"], moved["collection"], moved["tags"]) == (document_id, "memory", ["x"])
    assert await tags(engine, document_id) == ["collection:memory", "x"]


@pytest.mark.requirement("C-3")
async def test_of_many_who_move_a_document_at_once_one_wins(agent, engine, word):
    document_id = await done(agent, await call(agent, "kb_addnote", text=word))
    names = ["documents", "memory", "workspace"] * 10
    moves = (call(agent, "kb_set_collection", document_id=document_id, collection=name) for name in names)
    await asyncio.gather(*moves)
    [only] = await tags(engine, document_id)
    assert only.removeprefix("collection:") in names


@pytest.mark.requirement("C-5")
@pytest.mark.parametrize("nothing", [{"collection": None}, {"collection": ""}, {}])
async def test_collection_cleared(agent, engine, word, nothing):
    document_id = await done(agent, await call(agent, "kb_addnote", text=f"{word}", tags=["x"], collection="memory"))
    cleared = await call(agent, "kb_set_collection", document_id=document_id, **nothing)
    assert (cleared["collection"], cleared["tags"]) == (None, ["x"])
    assert await tags(engine, document_id) == ["x"]


@pytest.mark.requirement("C-5")
async def test_a_document_that_is_where_it_shall_be_is_left_unchanged(agent, engine, word):
    document_id = await done(agent, await call(agent, "kb_addnote", text=word, collection="memory"))
    await call(agent, "kb_set_collection", document_id=document_id, collection="memory")
    assert (await engine.document(document_id))["updated_at"] is None


@pytest.mark.requirement("C-5")
async def test_set_collection_of_an_unknown_document(agent):
    said = await refusal(agent, "kb_set_collection", document_id=999_999, collection="memory")
    assert said == "document_id: Document 999999 does not exist. Find its id with kb_search or kb_list."
    said = await refusal(agent, "kb_set_collection", document_id="x", collection="memory")
    assert said.startswith("document_id: must be a whole number, such as 131.")


@pytest.mark.requirement("C-6")
async def test_the_descriptions_document_the_convention(agent):
    tools = {tool.name: tool for tool in await agent.list_tools()}
    assert len(tools) == 14
    for name in ("kb_search", "kb_addnote", "kb_upload_start", "kb_set_collection"):
        assert "(documents, memory, workspace), stored as the tag collection:<name>" in tools[name].description
    for name in ("kb_addnote", "kb_upload_start"):
        assert tools[name].input_schema["properties"]["collection"]["default"] == "documents"
    assert "anyOf" not in str([tool.input_schema for tool in tools.values()])


@pytest.mark.requirement("C-6")
async def test_the_command_line_uses_the_convention_by_hand(agent, server, word):
    command = [sys.executable, "-m", "kb_cli.main", "addnote", word, "--tags", "collection:memory", "--wait"]
    environment = {"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY, "PATH": ""}
    assert (await asyncio.to_thread(run, command, env=environment)).returncode == 0
    [found] = (await call(agent, "kb_search", query=word, collection="memory", fts_only=True))["results"]
    assert (found["collection"], found["tags"]) == ("memory", [])


@pytest.mark.requirement("C-2")
async def test_the_names_are_a_setting(start_gateway, server, engine, word):
    settings = {"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY, "KB_MCP_COLLECTIONS": "1"}
    with start_gateway(**settings, KB_MCP_COLLECTION_NAMES="inbox, archive") as gateway:
        async with connected(gateway, "/collections/mcp") as agent:
            assert await tags(engine, await done(agent, await call(agent, "kb_addnote", text=word))) == [
                "collection:inbox"
            ]
            assert "Collections: inbox, archive." in await refusal(agent, "kb_search", query="x", collection="memory")


async def test_completions_offer_no_collection_as_a_tag(agent, word):
    await done(agent, await call(agent, "kb_addnote", text=word, tags=[f"{word}-tag"], collection="memory"))
    for typed, offered in ((word, [f"{word}-tag"]), ("collection", [])):
        completed = await agent.complete(PromptReference(name="answer"), {"name": "tags", "value": typed})
        assert completed.values == offered


async def test_the_surface_wants_the_same_key_and_knows_the_same_hosts(gateway):
    async with httpx2.AsyncClient() as http:
        url = f"{gateway.url}/collections/mcp"
        assert (await http.post(url, json={})).status_code == 401
        assert (await http.post(url, json={}, headers={"Host": "evil.example"})).status_code == 421
        assert (await http.post(url, json={}, headers={"Origin": "http://evil.example"})).status_code == 403


@pytest.mark.requirement("G-16")
async def test_the_default_surface_is_the_same_byte_for_byte_with_collections_on_and_off(gateway, server):
    lists = []
    for surface in (gateway, server):
        async with connected(surface, auth=MCP_KEY) as agent:
            tools = await agent.list_tools_mcp()
            lists.append(tools.model_dump_json(by_alias=True).encode())
    assert lists[0] == lists[1]
    assert b"kb_set_collection" not in lists[0]


@pytest.mark.rare
@pytest.mark.requirement("G-16")
def test_the_collections_are_a_module_that_is_loaded_only_when_they_are_on():
    program = (
        "import sys; from kb_mcp.app import create_app; from kb.asgi.subapps import AppContext;"
        "create_app(AppContext({})); off = 'kb_mcp.collections' in sys.modules;"
        "create_app(AppContext({'KB_MCP_COLLECTIONS': '1'})); print(off, 'kb_mcp.collections' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={})
    assert printed.stdout == "False True\n"


@pytest.mark.requirement("G-16")
def test_the_default_surface_does_not_know_the_word():
    for module in (ROOT / "src/kb_mcp").rglob("*.py"):
        if module.name not in ("app.py", "settings.py") and module.parent.name != "collections":
            assert "collection" not in module.read_text().lower().replace("collections.abc", ""), module


@pytest.mark.requirement("G-16")
async def test_a_stream_is_refused_in_the_same_way_on_both_surfaces_with_collections_on_and_off(gateway, server):
    # A client may ask for a stream, and takes 405 for a no; anything else is an error to it.
    headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {MCP_KEY}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        for url in (f"{server.url}/mcp", f"{gateway.url}/mcp", f"{gateway.url}/collections/mcp"):
            assert (await http.get(url)).status_code == 405, url


async def test_an_upload_reports_its_progress_on_this_surface_too(agent):
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, total))

    upload_id = (await call(agent, "kb_upload_start", filename="a.txt", total_size=3))["upload_id"]
    chunk = {"upload_id": upload_id, "chunk_index": 0, "data": "YWJj"}
    await agent.call_tool("kb_upload_chunk", chunk, progress_handler=hear)
    assert heard == [(3, 3)]


async def test_off_there_is_nothing_at_its_path(server):
    with pytest.raises(Exception, match="Not Found"):
        async with connected(server, "/collections/mcp", auth=MCP_KEY) as agent:
            await agent.list_tools()


async def test_kb_serve_serves_it_too(start_server, tmp_path, word):
    with start_server(tmp_path, KB_MCP_COLLECTIONS="1", KB_APPS=ALL_APPS) as server:
        async with connected(server, "/collections/mcp") as agent:
            await done(agent, await call(agent, "kb_addnote", text=word))
            [found] = (await call(agent, "kb_search", query=word, collection="documents"))["results"]
            assert found["collection"] == "documents"


@pytest.mark.requirement("C-3")
@pytest.mark.parametrize("name", ["tags_add", "tags_remove"])
@pytest.mark.parametrize(
    "given", [["b", "collection:workspace"], [" collection:memory"], '["collection:memory"]', "collection:memory"]
)
async def test_an_update_changes_no_collection(agent, engine, word, name, given):
    document_id = await done(agent, await call(agent, "kb_addnote", text=word, tags=["a"], collection="memory"))
    said = await refusal(agent, "kb_update_note", document_id=document_id, **{name: given})
    assert said == f"{name}: change the collection with kb_set_collection, not with a tag collection:<name>."
    await call(agent, "kb_update_note", document_id=document_id, tags_add=["b"], tags_remove=["a"])
    assert await tags(engine, document_id) == ["b", "collection:memory"]
