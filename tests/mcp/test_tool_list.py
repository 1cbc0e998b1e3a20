"""What a client is sent of the tools, and what that costs it."""

from __future__ import annotations

import json

import httpx2
import pytest
import quicktok
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StreamableHttpTransport

from kb_mcp.middleware.arguments import LISTS
from tests.mcp.conftest import call

MOST_TOKENS = 2500
KEYWORDS = {"type", "description", "default", "enum", "items", "minimum", "maximum", "minLength", "maxLength"}
"""What there is in the schema of a parameter: other words are unknown to JSON Schema, or to some clients."""


def size(tool):
    """The tokens of a tool's name, title, description and both schemas. Its annotations are for programs alone."""
    sent = tool.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"annotations", "meta"})
    return len(quicktok.get_encoding("o200k_base").encode(json.dumps(sent, ensure_ascii=False, separators=(",", ":"))))


async def test_the_whole_list_costs_a_client_under_2500_tokens_output_schemas_included(agent):
    assert sum(map(size, await agent.list_tools())) < MOST_TOKENS


async def test_the_collections_surface_costs_little_more(start_gateway):
    with start_gateway(KB_MCP_COLLECTIONS="1") as gateway:
        async with Client(f"{gateway.url}/collections/mcp") as agent:
            assert sum(map(size, await agent.list_tools())) < MOST_TOKENS + 500


async def test_input_schemas_are_flat_and_portable(agent):
    for tool in await agent.list_tools():
        text = json.dumps(tool.input_schema)
        for word in ("anyOf", "oneOf", "allOf", "$ref", "$defs", '"null"', "patternProperties"):
            assert word not in text, (tool.name, word)
        assert tool.input_schema["additionalProperties"] is False
        for name, schema in tool.input_schema["properties"].items():
            assert schema["type"] in ("string", "integer", "boolean", "array"), (tool.name, name)
            assert schema.keys() <= KEYWORDS, (tool.name, name)
            assert ("minimum" in schema) == (schema["type"] == "integer"), (tool.name, name)
            assert ("default" in schema) != (name in tool.input_schema.get("required", ()))


async def test_every_tool_has_an_output_schema_without_references(agent):
    for tool in await agent.list_tools():
        assert tool.output_schema["type"] == "object"
        assert tool.output_schema["properties"]
        assert "$ref" not in json.dumps(tool.output_schema)


@pytest.mark.requirement("G-15")
async def test_descriptions_have_three_to_six_sentences(agent):
    for tool in await agent.list_tools():
        sentences = tool.description.replace(";", ".").replace("\n", " ").split(". ")
        assert 3 <= len(sentences) <= 9, tool.name
        assert "kb_" in tool.description, tool.name


async def test_the_parameters_that_are_lists_are_known(agent):
    properties = [tool.input_schema["properties"].items() for tool in await agent.list_tools()]
    assert {name for each in properties for name, schema in each if schema.get("type") == "array"} == LISTS


async def test_text_and_structured_content_carry_the_same(agent, word):
    await call(agent, "kb_addnote", text=word)
    for tool, arguments in (
        ("kb_search", {"query": word}),
        ("kb_jobs", {}),
        ("kb_status", {}),
        ("kb_get", {"source_path": "/none"}),
        ("kb_upload_start", {"filename": "a", "total_size": 1}),
    ):
        result = await agent.call_tool(tool, arguments)
        assert json.loads(result.content[0].text) == result.structured_content, tool


async def test_fastmcp_still_lists_all_tools_for_each_call_unless_it_is_told_that_it_need_not(monkeypatch):
    """When this fails, fastmcp has changed: `get_tool_input_schema` need no longer be set in `new_server`."""
    listed = []
    original = FastMCP.list_tools

    async def counted(self, **options):
        listed.append(self)
        return await original(self, **options)

    monkeypatch.setattr(FastMCP, "list_tools", counted)
    server = FastMCP("plain")
    server.tool(lambda value: value, name="echo")
    app = server.http_app(stateless_http=True)
    before = await lists_of_a_call(app, listed)
    server._mcp_server.get_tool_input_schema = lambda _: None
    assert before > 0
    assert await lists_of_a_call(app, listed) == 0


async def lists_of_a_call(app, listed):
    def client(**options):
        return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), **options)

    async with app.router.lifespan_context(app):
        transport = StreamableHttpTransport("http://localhost/mcp", httpx_client_factory=client)
        async with Client(transport, mode="2026-07-28") as agent:
            await agent.call_tool("echo", {"value": 1})
            listed.clear()
            await agent.call_tool("echo", {"value": 1})
            return len(listed)
