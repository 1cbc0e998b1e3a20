"""A whole session of an agent, over HTTP, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import base64
import json
from urllib.parse import unquote

import httpx2
import pytest
from fastmcp import Client
from fastmcp.exceptions import ToolError

from kb_mcp.tools.token_budget import NOTICE
from tests.conftest import MCP_KEY
from tests.mcp.conftest import ERAS, call, done, noted
from tests.support.pdf import pdf

TOOLS = {
    "kb_search", "kb_list", "kb_addnote", "kb_upload_start", "kb_upload_chunk", "kb_upload_finish",
    "kb_update_note", "kb_get", "kb_delete", "kb_history", "kb_undo", "kb_status", "kb_jobs",
}  # fmt: skip


@pytest.fixture(params=ERAS)
def era(request):
    """Each in turn: what a session or the list of tools is differs between them."""
    return request.param


@pytest.mark.requirement("G-16")
async def test_there_are_thirteen_tools_and_none_knows_collections(agent):
    tools = await agent.list_tools()
    assert {tool.name for tool in tools} == TOOLS
    for tool in tools:
        assert tool.title
        assert tool.annotations.open_world_hint is False
        assert None not in (
            tool.annotations.read_only_hint, tool.annotations.destructive_hint, tool.annotations.idempotent_hint
        )  # fmt: skip
        assert "collection" not in tool.input_schema["properties"]
        assert "anyOf" not in str(tool.input_schema)


@pytest.mark.requirement("G-15")
async def test_the_descriptions_teach_expansion_reranking_and_uploads(agent):
    descriptions = {tool.name: tool.description for tool in await agent.list_tools()}
    for hint in ("2-3 variant phrasings", "chunk_id", "rerank"):
        assert hint in descriptions["kb_search"]
    assert "Example" in descriptions["kb_upload_start"]
    assert "Example" in descriptions["kb_upload_chunk"]


@pytest.mark.requirement("G-5")
@pytest.mark.requirement("G-6")
@pytest.mark.requirement("G-11")
@pytest.mark.requirement("G-13")
async def test_a_note_is_added_found_updated_and_deleted(agent, word):
    tags = [word, "collection:documents"]
    document_id = await done(agent, await call(agent, "kb_addnote", text=f"{word} likes short answers", tags=tags))
    [found] = (await call(agent, "kb_search", query="terse replies", tags=[word]))["results"]
    assert (found["document_id"], sorted(found["tags"])) == (document_id, sorted(tags))
    assert "collection" not in found
    updated = await call(agent, "kb_update_note", document_id=document_id, text=f"{word} likes long answers")
    assert (updated["id"], sorted(updated["tags"])) == (document_id, sorted(tags))
    [found] = (await call(agent, "kb_search", query=word, fts_only=True))["results"]
    assert found["text"] == f"{word} likes long answers"
    deleted = await call(agent, "kb_delete", document_id=document_id)
    assert deleted.pop("notice") == NOTICE
    assert deleted == {"status": "deleted", "document_id": document_id, "title": f"{word} likes long answers"}
    assert (await call(agent, "kb_search", query=word, fts_only=True))["results"] == []


@pytest.mark.requirement("G-6")
async def test_a_note_gets_no_tag_that_was_not_given(agent, word):
    document_id = await done(agent, await call(agent, "kb_addnote", text=word))
    assert (await call(agent, "kb_get", document_id=document_id))["tags"] == []


@pytest.mark.requirement("G-7")
@pytest.mark.requirement("G-8")
@pytest.mark.requirement("G-9")
@pytest.mark.requirement("G-12")
async def test_a_pdf_arrives_in_three_chunks_of_any_order(agent, word):
    content = pdf(f"The report of {word}", "The glacier retreated by forty metres.")
    third = -(-len(content) // 3)
    chunks = [content[start : start + third] for start in range(0, len(content), third)]
    started = await call(agent, "kb_upload_start", filename="report.pdf", total_size=len(content), tags=[word])
    upload_id = started["upload_id"]
    for index in (2, 0, 1, 0):
        data = base64.b64encode(chunks[index]).decode()
        await call(agent, "kb_upload_chunk", upload_id=upload_id, data=data, chunk_index=index)
    document_id = await done(agent, await call(agent, "kb_upload_finish", upload_id=upload_id))
    document = await call(agent, "kb_get", document_id=document_id)
    assert (document["doc_type"], document["tags"]) == ("pdf", [word])
    assert [chunk["place"]["page"] for chunk in document["chunks"]] == [1, 2]
    [best, *_] = (await call(agent, "kb_search", query="shrinking ice", tags=[word]))["results"]
    assert best["place"]["page"] == 2
    with pytest.raises(ToolError, match="no upload"):
        await call(agent, "kb_upload_finish", upload_id=upload_id)


@pytest.mark.requirement("G-9")
async def test_an_upload_that_does_not_add_up_is_refused_and_kept_until_it_does(agent):
    for chunks, reason in (
        ({}, "Missing: chunk_index 0"),
        ({0: b"abc"}, "3 of 4 bytes. .*from byte 3 on, as chunk_index 1"),
        ({0: b"a", 2: b"b"}, "Missing: chunk_index 1"),
    ):
        upload_id = (await call(agent, "kb_upload_start", filename="a.txt", total_size=4))["upload_id"]
        for index, raw in chunks.items():
            data = base64.b64encode(raw).decode()
            await call(agent, "kb_upload_chunk", upload_id=upload_id, data=data, chunk_index=index)
        with pytest.raises(ToolError, match=reason):
            await call(agent, "kb_upload_finish", upload_id=upload_id)
        with pytest.raises(ToolError, match=reason):
            await call(agent, "kb_upload_finish", upload_id=upload_id)


async def test_a_text_that_looks_like_a_list_stays_a_text(agent, word):
    document_id = await done(agent, await call(agent, "kb_addnote", text=f'["{word}"]', title="[2024]"))
    document = await call(agent, "kb_get", document_id=document_id)
    assert (document["title"], document["chunks"][0]["text"]) == ("[2024]", f'["{word}"]')


async def test_what_strict_clients_send_for_left_out_arguments_is_understood(agent, word):
    found = await call(agent, "kb_search", query=word, tags="[]", doc_type=None, top=None)
    assert "results" in found


@pytest.mark.parametrize("padding", [" ", "  \t"])
async def test_white_space_around_a_header_is_no_part_of_it(server, padding):
    about = {"protocolVersion": "2026-07-28", "clientInfo": {"name": "t", "version": "1"}, "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in about.items()}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "kb_status", "_meta": meta}}
    body = json.dumps(call)
    headers = {
        "Host": f"127.0.0.1:{server.port}",
        "Authorization": f"Bearer {MCP_KEY}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "kb_status",
        "Connection": "close",
    }
    lines = [f"{name}:{padding}{value}{padding}" for name, value in headers.items()]
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write("\r\n".join(["POST /mcp HTTP/1.1", *lines, "", body]).encode())
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"version":"3.0.0"' in answer


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_only_who_asks_for_progress_is_answered_with_a_stream(server, revision):
    identity = {"protocolVersion": revision, "clientInfo": {"name": "t", "version": "1"}, "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in identity.items()}
    headers = {
        "Authorization": f"Bearer {MCP_KEY}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": revision,
        "Mcp-Method": "tools/call",
    }
    forms = {}
    async with httpx2.AsyncClient(headers=headers) as http:

        async def tool(name, arguments, **more):
            params = {"name": name, "arguments": arguments, "_meta": meta | more}
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answer = await http.post(f"{server.url}/mcp", json=call, headers={"Mcp-Name": name})
            forms[name] = answer.headers["content-type"].partition(";")[0]
            return answer

        started = await tool("kb_upload_start", {"filename": "a.txt", "total_size": 1})
        upload_id = started.json()["result"]["structuredContent"]["upload_id"]
        chunk = {"upload_id": upload_id, "chunk_index": 0, "data": "YQ=="}
        assert "notifications/progress" in (await tool("kb_upload_chunk", chunk, progressToken="p")).text
    assert forms == {"kb_upload_start": "application/json", "kb_upload_chunk": "text/event-stream"}


async def test_an_agent_that_says_what_is_there_already_is_told(agent, word):
    first = await noted(agent, text=word)
    again = await call(agent, "kb_addnote", text=word)
    assert "existed" not in first
    assert (again["document_id"], again["existed"]) == (first["document_id"], True)
    jobs = await agent.call_tool("kb_jobs", {"job_id": again["job_id"]})
    assert jobs.structured_content["jobs"][0]["existed"]
    assert f"document {first['document_id']}, which already existed" in jobs.content[0].text
    files = [await call(agent, "kb_upload_start", filename="a.txt", text=f"{word} in a file") for _ in range(2)]
    await done(agent, files[1])
    third = await call(agent, "kb_upload_start", filename="a.txt", text=f"{word} in a file")
    assert third["existed"]


async def test_the_server_says_its_title_and_shows_its_icon(server):
    async with Client(f"{server.url}/mcp", auth=MCP_KEY, mode="legacy") as agent:
        about = agent.initialize_result.server_info
    assert (about.name, about.title) == ("kb", "kb, your own knowledge base")
    [icon] = about.icons
    assert icon.mime_type == "image/svg+xml"
    assert unquote(icon.src.removeprefix("data:image/svg+xml,")).startswith("<svg xmlns=")
