"""Keys with rights over MCP: the gateway asks on their behalf, also when nobody waits for the answer any more."""

from __future__ import annotations

import base64
import re

import httpx2
import pytest
from fastmcp import Client
from fastmcp.exceptions import ToolError

from kb.api.errors import Unauthorized
from kb.client.client import EngineClient
from kb_mcp.auth import behalf_headers, current_caller
from tests.conftest import KEY, MCP_KEY
from tests.mcp.conftest import start_gateway  # noqa: F401 - a fixture

MCP = "/mcp"


def agent_of(guarded, token, path=MCP):
    return Client(f"{guarded.url}{path}", auth=token)


async def answer(agent, tool, **arguments):
    return (await agent.call_tool(tool, arguments)).structured_content


async def document_of(agent, accepted):
    """The id of what was accepted, once it is a document."""
    job = accepted
    while not job.get("document_id"):
        [job] = (await answer(agent, "kb_jobs", job_id=accepted["job_id"]))["jobs"]
    return job["document_id"]


async def test_what_a_limited_agent_writes_is_within_its_limit_and_bears_its_name(guarded, admin, tagged):
    async with agent_of(guarded, tagged.token) as agent:
        own = await document_of(agent, await answer(agent, "kb_addnote", text="Anna likes short answers"))
        written = admin.ok("GET", f"documents/{own}")
        assert written["tags"] == ["work"]
        [version] = admin.ok("GET", f"documents/{own}/history")["versions"]
        assert version["by"] == "tagged"
        assert re.fullmatch(r"kb/\S+ .+ \(mcp\)", version["client"])
        with pytest.raises(ToolError, match="This key is limited to documents tagged work"):
            await answer(agent, "kb_update_note", document_id=own, tags_remove=["work"])
    lines = admin.ok("GET", f"audit?document_id={own}")["lines"]
    assert {line["by"] for line in lines} == {"tagged"}


async def test_a_key_that_may_only_read_is_offered_only_tools_that_read(guarded, reader, tagged):
    async with agent_of(guarded, reader.token) as agent:
        tools = await agent.list_tools()
        assert {tool.annotations.read_only_hint for tool in tools} == {True}
        assert "kb_search" in {tool.name for tool in tools}
        assert "kb_addnote" not in agent.instructions
        with pytest.raises(ToolError, match="This key may read, but not write"):
            await agent.call_tool("kb_addnote", {"text": "x"})
        with pytest.raises(ToolError) as unknown:
            await agent.call_tool("kb_addnotes", {"text": "x"})
        assert "kb_addnote," not in str(unknown.value)
    async with agent_of(guarded, tagged.token) as agent:
        assert len(await agent.list_tools()) == 13
        assert "kb_addnote" in agent.instructions


async def test_an_upload_belongs_to_the_key_that_began_it_whatever_way_it_ends(guarded, admin, tagged, writer):
    content = b"what the limited agent uploads, in chunks"
    data = base64.b64encode(content).decode()
    async with agent_of(guarded, tagged.token) as agent, agent_of(guarded, writer.token) as other:
        begun = await answer(agent, "kb_upload_start", filename="a.txt", total_size=len(content))
        for token in (other, agent_of(guarded, MCP_KEY)):
            async with token as stranger:
                for tool, more in (("kb_upload_chunk", {"data": data, "chunk_index": 0}), ("kb_upload_finish", {})):
                    with pytest.raises(ToolError, match="no upload"):
                        await answer(stranger, tool, upload_id=begun["upload_id"], **more)
        await answer(agent, "kb_upload_chunk", upload_id=begun["upload_id"], data=data, chunk_index=0)
        chunked = await document_of(agent, await answer(agent, "kb_upload_finish", upload_id=begun["upload_id"]))
        begun = await answer(agent, "kb_upload_start", filename="b.txt", total_size=len(content) + 1)
        put = httpx2.put(begun["upload_url"], content=content + b"!").json()
        whole = await document_of(agent, put)
    for document_id in (chunked, whole):
        assert admin.ok("GET", f"documents/{document_id}")["tags"] == ["work"]
        assert admin.ok("GET", f"documents/{document_id}/history")["versions"][0]["by"] == "tagged"


async def test_an_address_of_a_document_opens_with_the_rights_of_the_key_that_was_shown_it(guarded, admin, make_key):
    passing = make_key("passing", right="read", tags=["passing"])
    document_id = admin.note("a passing remark about herons", tags=["passing"])
    async with agent_of(guarded, passing.token, "/chatgpt/mcp") as agent:
        [found] = (await answer(agent, "search", query="herons"))["results"]
        async with agent_of(guarded, MCP_KEY, "/chatgpt/mcp") as own:
            [same] = (await answer(own, "search", query="a passing remark about herons"))["results"][:1]
    assert "herons" in httpx2.get(found["url"]).text
    assert httpx2.get(found["url"].removesuffix("-passing")).status_code == 404
    assert httpx2.get(found["url"].replace("-passing", "-writer")).status_code == 404
    admin.ok("PATCH", f"documents/{document_id}/tags", json={"remove": ["passing"]})
    assert httpx2.get(found["url"]).status_code == 404
    assert "herons" in httpx2.get(same["url"]).text
    admin.ok("PATCH", f"documents/{document_id}/tags", json={"add": ["passing"]})
    admin.ok("DELETE", "keys/passing")
    assert "herons" not in httpx2.get(found["url"]).text


async def test_a_revoked_key_ends_amid_a_session_over_the_network_too(guarded, admin, make_key, start_gateway):  # noqa: F811
    key = make_key("remote", right="write", tags=["work"])
    with start_gateway(KB_ENGINE_URL=guarded.url, KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY) as gateway:
        async with agent_of(gateway, key.token) as agent:
            own = await document_of(agent, await answer(agent, "kb_addnote", text="from afar"))
            assert admin.ok("GET", f"documents/{own}")["tags"] == ["work"]
            assert not {each["id"] for each in (await answer(agent, "kb_list"))["documents"]} - {
                *key.ids("documents?limit=500")
            }
            admin.ok("DELETE", "keys/remote")
            with pytest.raises(Exception, match="Server returned an error"):
                await answer(agent, "kb_list")
        assert httpx2.post(f"{gateway.url}/mcp", headers={"Authorization": "Bearer kb_none"}).status_code == 401
    with start_gateway(KB_ENGINE_URL="http://127.0.0.1:9", KB_MCP_API_KEY=MCP_KEY) as alone:
        for token, status in (("kb_none", 503), ("none", 401)):
            said = httpx2.post(f"{alone.url}/mcp", headers={"Authorization": f"Bearer {token}"})
            assert said.status_code == status


async def test_what_does_not_say_who_calls_asks_the_engine_nothing(guarded):
    from contextlib import nullcontext

    async with EngineClient(guarded.url, KEY, around=lambda *call: nullcontext(behalf_headers(*call))) as client:
        with pytest.raises(Unauthorized):
            await client.status()
    with pytest.raises(Unauthorized):
        current_caller()
