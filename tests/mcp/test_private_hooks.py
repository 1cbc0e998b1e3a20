"""Gateway code for gaps of FastMCP or MCP. A failing test names code that can be removed or no longer works."""

from __future__ import annotations

from contextlib import asynccontextmanager

import httpx2
import pytest
from fastmcp import Client, Context, FastMCP
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.server.transforms import Transform
from fastmcp.tools import Tool
from mcp import MCPError

from kb_mcp.server import create_server
from tests.mcp.conftest import ERAS


class Lookups(Transform):
    """Counts how often a server goes through its tools, or looks for one."""

    def __init__(self):
        super().__init__()
        self.lists = self.searches = 0

    async def list_tools(self, tools):
        self.lists += 1
        return tools

    async def get_tool(self, name, call_next, *, version=None):
        self.searches += 1
        return await call_next(name, version=version)


async def test_fastmcp_still_lists_all_tools_for_each_call_unless_it_is_told_that_it_need_not():
    """If FastMCP lists none: `get_tool_input_schema` need no longer be set in `kb_mcp.server.Server`."""
    assert (await lookups_of_a_call(FastMCP("bare"), "2026-07-28")).lists == 1
    assert (await lookups_of_a_call(create_server([]), "2026-07-28")).lists == 0


@pytest.mark.parametrize("era", ERAS)
async def test_fastmcp_still_searches_for_the_tool_of_each_call_unless_the_server_finds_it_by_name(era):
    """If FastMCP does not: `kb_mcp.server.Server` need no longer override `get_tool`."""
    assert (await lookups_of_a_call(FastMCP("bare"), era)).searches == 1
    assert (await lookups_of_a_call(create_server([]), era)).searches == 0


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_fastmcp_still_answers_either_all_with_json_or_all_with_streams(revision):
    """If it does not: `kb_mcp.middleware.jsonrpc` and the second app in `kb_mcp.app.http_app` can go."""
    server = server_with_tool(FastMCP("bare"))
    for json_response, form in ((True, "application/json"), (False, "text/event-stream")):
        async with http_of(server.http_app(stateless_http=True, json_response=json_response)) as http:
            answer = await call_tool(http, revision, progressToken="p")
            assert answer.headers["content-type"].partition(";")[0] == form
            assert ("notifications/progress" in answer.text) != json_response


async def test_mcp_still_sends_pydantics_report_of_a_message_that_is_none():
    """If it does not: `kb_mcp.middleware.jsonrpc` can go."""
    async with http_of(FastMCP("bare").http_app(stateless_http=True)) as http:
        assert "pydantic.dev" in (await http.post("/mcp", json={})).text


async def test_fastmcp_still_keeps_to_itself_which_argument_of_a_prompt_is_missing():
    """If it does not: `on_get_prompt` in `kb_mcp.middleware.argument_errors` can go."""
    server = FastMCP("bare", mask_error_details=True)
    server.prompt(lambda question: question, name="answer")
    async with Client(server) as agent:
        with pytest.raises(MCPError) as refused:
            await agent.get_prompt("answer", {})
    assert "question" not in str(refused.value)


async def lookups_of_a_call(server, era):
    lookups = Lookups()
    server_with_tool(server).add_transform(lookups)
    app = server.http_app(stateless_http=True)

    def client(**options):
        return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), **options)

    async with app.lifespan(app):
        transport = StreamableHttpTransport("http://localhost/mcp", httpx_client_factory=client)
        async with Client(transport, mode=era) as agent:
            await agent.call_tool("echo", {"value": 1})
            lookups.lists = lookups.searches = 0
            await agent.call_tool("echo", {"value": 1})
    return lookups


def server_with_tool(server):
    async def echo(value: int, context: Context) -> int:
        await context.report_progress(1, 1)
        return value

    server.add_tool(Tool.from_function(echo))
    return server


@asynccontextmanager
async def http_of(app):
    accept = {"Accept": "application/json, text/event-stream"}
    transport = httpx2.ASGITransport(app)
    async with (
        app.lifespan(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=accept) as http,
    ):
        yield http


async def call_tool(http, revision, **more):
    identity = {"protocolVersion": revision, "clientInfo": {"name": "t", "version": "1"}, "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in identity.items()} | more
    params = {"name": "echo", "arguments": {"value": 1}, "_meta": meta}
    headers = {"MCP-Protocol-Version": revision, "Mcp-Method": "tools/call", "Mcp-Name": "echo"}
    return await http.post(
        "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, headers=headers
    )
