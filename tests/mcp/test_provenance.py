"""Who wrote what: the agent's program and the key, in the history and in what is found."""

from __future__ import annotations

import pytest
from fastmcp import Client
from mcp_types import Implementation

from tests.conftest import MCP_KEY
from tests.mcp.conftest import ERAS, call


@pytest.mark.parametrize("mode", ERAS)
async def test_what_an_agent_writes_names_the_agent_wherever_it_is_shown(server, engine, word, mode):
    info = Implementation(name="harbour agent (beta)", version="1.2")
    async with Client(f"{server.url}/mcp", auth=MCP_KEY, mode=mode, client_info=info) as agent:
        note = (await call(agent, "kb_addnote", text=f"{word} by the agent", tags=[word]))["document_id"]
        await call(agent, "kb_update_note", document_id=note, append="And more.")
        own = await engine.add_note(text=f"{word} by hand", tags=[word], wait=30)
        found = (await agent.call_tool("kb_search", {"query": word, "tags": [word]})).content[0].text
        read = (await agent.call_tool("kb_get", {"document_id": note})).content[0].text
        alone = await agent.call_tool("kb_search", {"query": word, "document_id": note})
    [head] = [line for line in found.splitlines() if line.startswith(f"[note {note}]")]
    [by_hand] = [line for line in found.splitlines() if line.startswith(f"[note {own['document_id']}]")]
    assert " by " not in by_hand
    assert ' · by "' in head
    assert ' · by "' in read
    versions = (await engine.history(note))["versions"]
    clients = {each["client"] for each in versions}
    assert len(versions) == 2
    assert len(clients) == 1
    [client] = clients
    assert client.startswith("kb/")
    if mode != "legacy":  # there the program's name is in the first message alone, and no session is kept
        assert client.endswith("(mcp; harbour agent _beta_ 1.2)")
        assert alone.structured_content["results"][0]["by"] == "harbour agent _beta_ 1.2"


async def test_what_is_all_of_one_agent_says_so_once(agent, word):
    for number in range(3):
        await call(agent, "kb_addnote", text=f"{word} number {number}", tags=[word])
    text = (await agent.call_tool("kb_search", {"query": word, "tags": [word]})).content[0].text
    assert text.count("All added or changed last by ") == 1
    assert " · by " not in text
