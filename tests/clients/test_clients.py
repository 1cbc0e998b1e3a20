"""Real clients of other makers: each lists the tools, calls kb_search, and is refused with a wrong key (`make clients`)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from functools import partial

import fastmcp
import httpx2
import mcp.client
import pytest
from fastmcp.client.transports import StreamableHttpTransport
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from kb.client.client import EngineClient
from tests.clients.conftest import CLIENTS
from tests.clients.model import scripted_model
from tests.conftest import KEY, MCP_KEY
from tests.http.conftest import added
from tests.mcp.test_session import TOOLS

NOTE = "The walrus is on the ice."
QUESTION = {"query": "walrus", "fts_only": True}


class Refused(Exception):
    """The client says that it may not connect."""


@dataclass
class Seen:
    """The tools a client lists and the passages that kb_search gives it."""

    tools: set[str]
    passages: list[str]


def inspector(node, url, key, *, era):
    command = ("mcp-inspector", "--cli", url, "--transport", "http", "--protocol-era", era, "--stored-auth-only")
    answers = []
    for method in (
        ["tools/list", "--strict"],
        ["tools/call", "--tool-name", "kb_search", "--tool-args-json", json.dumps(QUESTION)],
    ):
        ended = node.run(*command, "--header", f"Authorization: Bearer {key}", "--method", *method, "--format", "json")
        if "auth_required" in ended.stderr:
            raise Refused(ended.stderr)
        assert ended.returncode == 0, ended.stderr
        answers.append(json.loads(ended.stdout)["result"])
    listed, found = answers
    return Seen({tool["name"] for tool in listed["tools"]}, passages(found["structuredContent"]))


def typescript(node, url, key, *, mode):
    ended = node.run("node", CLIENTS / "typescript.mjs", url, key, mode)
    if "401" in ended.stderr:
        raise Refused(ended.stderr)
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    assert seen["era"] == ("legacy" if mode == "legacy" else "modern")
    return Seen(set(seen["tools"]), passages(seen["found"]))


def claude_code(node, url, key):
    """Claude Code with a model that follows a script: it lists the server as connected, and the model calls the tool."""
    header = ("--header", f"Authorization: Bearer {key}")
    assert node.run("claude", "mcp", "add", "--transport", "http", "kb", url, *header).returncode == 0
    listed = node.run("claude", "mcp", "list").stdout
    with scripted_model("mcp__kb__kb_search", QUESTION) as model:
        ended = node.run(
            *("claude", "--print", "Where is the walrus?", "--tools", "", "--allowedTools", "mcp__kb__kb_search"),
            *("--output-format", "stream-json", "--verbose"),
            ANTHROPIC_BASE_URL=model,
            ANTHROPIC_API_KEY="none",
            ENABLE_TOOL_SEARCH="false",
        )
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    [start] = [event for event in events if event["type"] == "system" and event["subtype"] == "init"]
    [server] = start["mcp_servers"]
    if server["status"] != "connected":
        assert "✔ Connected" not in listed
        raise Refused(listed)
    assert "✔ Connected" in listed
    answers = [event["message"]["content"][0] for event in events if event["type"] == "user"]
    [found] = [json.loads(answer["content"]) for answer in answers if answer["type"] == "tool_result"]
    prefix = "mcp__kb__"
    return Seen({name.removeprefix(prefix) for name in start["tools"] if name.startswith(prefix)}, passages(found))


def mcp_remote(node, url, key, *, protocol):
    """The bridge for clients that only speak with a program, under Python's client as such a one."""
    log = node.home / "mcp-remote.log"
    arguments = [url, "--header", "Authorization:${AUTHORIZATION}", "--transport", "http-only", "--protocol", protocol]
    with log.open("w") as errors:
        program = StdioServerParameters(
            command=str(node.program("mcp-remote")),
            args=arguments,
            env=node.environment | {"AUTHORIZATION": f"Bearer {key}"},
        )
        try:
            return asyncio.run(python_sees(mcp.client.Client(stdio_client(program, errlog=errors), mode="legacy")))
        except* mcp.MCPError:
            # Refused, it looks for a way to log in, which a key does not have.
            if "Dynamic Client Registration" in log.read_text():
                raise Refused(log.read_text()) from None
            raise


def python_mcp(node, url, key, *, mode):
    async def see(**watched):
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, **watched) as http:
            return await python_sees(mcp.client.Client(streamable_http_client(url, http_client=http), mode=mode))

    return watching_refusals(see)


def python_fastmcp(node, url, key, *, mode):
    async def see(**watched):
        transport = StreamableHttpTransport(url, auth=key, httpx_client_factory=partial(httpx2.AsyncClient, **watched))
        async with fastmcp.Client(transport, mode=mode) as client:
            found = await client.call_tool("kb_search", QUESTION)
            return Seen({tool.name for tool in await client.list_tools()}, passages(found.structured_content))

    return watching_refusals(see)


async def python_sees(connection):
    async with connection as client:
        found = await client.call_tool("kb_search", QUESTION)
        return Seen({tool.name for tool in (await client.list_tools()).tools}, passages(found.structured_content))


def watching_refusals(see):
    """What Python's clients see. They do not tell a refusal from other errors; their HTTP shows it."""
    statuses = []

    async def note(response):
        statuses.append(response.status_code)

    try:
        return asyncio.run(see(event_hooks={"response": [note]}))
    except* mcp.MCPError:
        if statuses[-1] == 401:
            raise Refused from None
        raise


def passages(found):
    return [result["text"] for result in found["results"]]


EVERY_CLIENT = {
    "inspector-2025-11-25": partial(inspector, era="legacy"),
    "inspector-2026-07-28": partial(inspector, era="modern"),
    "typescript-2025-11-25": partial(typescript, mode="legacy"),
    "typescript-2026-07-28": partial(typescript, mode="auto"),
    "mcp-remote-2025-11-25": partial(mcp_remote, protocol="legacy"),
    "mcp-remote-2026-07-28": partial(mcp_remote, protocol="auto"),
    "python-mcp-2025-11-25": partial(python_mcp, mode="legacy"),
    "python-mcp-2026-07-28": partial(python_mcp, mode="auto"),
    "python-fastmcp-2025-11-25": partial(python_fastmcp, mode="legacy"),
    "python-fastmcp-2026-07-28": partial(python_fastmcp, mode="auto"),
    "claude-code": claude_code,
}


@pytest.fixture(scope="module")
def url(server):
    async def add_note():
        async with EngineClient(server.url, KEY) as engine:
            await added(engine, NOTE)

    asyncio.run(add_note())
    return f"{server.url}/mcp"


@pytest.mark.parametrize("client", EVERY_CLIENT.values(), ids=EVERY_CLIENT)
def test_a_client_lists_the_tools_and_finds_a_note(client, node, url):
    assert client(node, url, MCP_KEY) == Seen(TOOLS, [NOTE])


@pytest.mark.requirement("G-4")
@pytest.mark.parametrize("client", EVERY_CLIENT.values(), ids=EVERY_CLIENT)
def test_a_client_with_a_wrong_key_is_refused(client, node, url):
    with pytest.raises(Refused):
        client(node, url, "wrong")
