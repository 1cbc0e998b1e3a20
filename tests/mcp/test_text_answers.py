"""Clients that would give the model the structured form of an answer get only its text."""

from __future__ import annotations

import pytest
from fastmcp import Client
from mcp_types import Implementation

from tests.conftest import MCP_KEY
from tests.mcp.conftest import call, noted


def client_named(name, url, path="/mcp", auth=MCP_KEY, mode="2026-07-28"):
    return Client(f"{url}{path}", auth=auth, mode=mode, client_info=Implementation(name=name, version="2.1"))


@pytest.mark.parametrize("name", ["claude-code", "codex-mcp-client", "github-copilot-developer", "Codex"])
async def test_a_client_that_hides_the_text_from_the_model_gets_only_the_text(server, word, name):
    async with client_named(name, server.url) as agent:
        await agent.call_tool("kb_addnote", {"text": word})
        for tool, arguments in (("kb_search", {"query": word}), ("kb_list", {}), ("kb_status", {}), ("kb_jobs", {})):
            result = await agent.call_tool(tool, arguments)
            assert result.structured_content is None, tool
            assert result.content[0].text, tool


@pytest.mark.parametrize("name", ["claude-ai", "cursor-vscode", "mcp", "my codex"])
async def test_other_clients_get_both_forms(server, name):
    async with client_named(name, server.url) as agent:
        assert (await agent.call_tool("kb_list", {})).structured_content["documents"] is not None


async def test_errors_reach_both_kinds_of_clients(server):
    for name in ("claude-code", "cursor"):
        async with client_named(name, server.url) as agent:
            result = await agent.call_tool("kb_get", {"document_id": 10**9}, raise_on_error=False)
            assert result.is_error
            assert "document_id: " in result.content[0].text


async def test_a_client_of_the_older_protocol_is_known_by_its_user_agent(server):
    from fastmcp.client.transports import StreamableHttpTransport

    headers = {"User-Agent": "claude-code/2.1.280 (cli)"}
    transport = StreamableHttpTransport(f"{server.url}/mcp", headers=headers, auth=MCP_KEY)
    async with Client(transport, mode="legacy") as agent:
        assert (await agent.call_tool("kb_list", {})).structured_content is None


@pytest.mark.parametrize(("setting", "is_text"), [("*", True), ("", False), ("acme, other", True)])
async def test_a_setting_names_the_clients(start_gateway, server, setting, is_text):
    from tests.conftest import KEY

    with start_gateway(KB_ENGINE_URL=server.url, KB_API_KEY=KEY, KB_MCP_TEXT_CLIENTS=setting) as gateway:
        async with client_named("Acme Agent", gateway.url, auth=None) as agent:
            assert ((await agent.call_tool("kb_list", {})).structured_content is None) == is_text


async def test_the_collections_surface_keeps_collections_in_answers_that_are_only_text(start_gateway, server, word):
    from tests.conftest import KEY

    with start_gateway(KB_ENGINE_URL=server.url, KB_API_KEY=KEY, KB_MCP_COLLECTIONS="1") as gateway:
        async with client_named("plain", gateway.url, "/collections/mcp", None) as agent:
            await noted(agent, text=f"{word} in a collection", tags=[word])
        async with client_named("claude-code", gateway.url, "/collections/mcp", None) as agent:
            result = await agent.call_tool("kb_search", {"query": word})
    assert result.structured_content is None
    assert "collection=documents" in result.content[0].text


async def test_a_structured_answer_has_no_empty_fields(agent, word):
    await noted(agent, text=f"{word} is a note of one line", tags=[word])
    found = await call(agent, "kb_search", query=word, tags=[word])
    assert found.keys() <= {"notice", "results", "pending"}
    [result] = found["results"]
    assert result.keys() == {"document_id", "chunk_id", "doc_type", "date", "by", "tags", "score", "text"} - (
        {"by"} - result.keys()
    )
    assert result["tags"] == [word]
