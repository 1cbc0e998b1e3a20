"""Who wrote what: the agent's program and the key, in the history and in what is found."""

from __future__ import annotations

import httpx2
import pytest
from fastmcp import Client
from mcp_types import Implementation

from tests.conftest import MCP_KEY
from tests.mcp.conftest import ERAS, call, done, noted


@pytest.mark.parametrize("mode", ERAS)
async def test_what_an_agent_writes_names_the_agent_wherever_it_is_shown(server, engine, word, mode):
    info = Implementation(name="harbour agent (beta)", version="1.2")
    async with Client(f"{server.url}/mcp", auth=MCP_KEY, mode=mode, client_info=info) as agent:
        note = (await noted(agent, text=f"{word} by the agent", tags=[word]))["document_id"]
        await call(agent, "kb_update_note", document_id=note, append="And more.")
        own = await engine.add_note(text=f"{word} by hand", tags=[word], wait=30)
        found = (await agent.call_tool("kb_search", {"query": word, "tags": [word]})).content[0].text
        read = await agent.call_tool("kb_get", {"document_id": note})
    [head] = [line for line in found.splitlines() if line.startswith(f"[note {note}]")]
    [by_hand] = [line for line in found.splitlines() if line.startswith(f"[note {own['document_id']}]")]
    assert " by " not in by_hand
    assert ' · by "' in head
    assert ' · by "' in read.content[0].text
    versions = (await engine.history(note))["versions"]
    clients = {each["client"] for each in versions}
    assert len(versions) == 2
    assert len(clients) == 1
    [client] = clients
    assert client.startswith("kb/")
    if mode != "legacy":  # there the program's name is in the first message alone, and no session is kept
        assert client.endswith(" harbour agent _beta_ 1.2 (mcp)")
        assert read.structured_content["by"] == "harbour agent _beta_ 1.2"


async def test_a_file_put_to_the_address_names_the_agent_that_was_given_it(server, engine, word):
    info = Implementation(name="harbour agent", version="1.2")
    content = word.encode()
    async with Client(f"{server.url}/mcp", auth=MCP_KEY, mode="2026-07-28", client_info=info) as agent:
        started = await call(agent, "kb_upload_start", filename="report.txt", total_size=len(content))
        async with httpx2.AsyncClient() as http:
            accepted = (await http.put(started["upload_url"], content=content, headers={"User-Agent": "curl/8"})).json()
        [version] = (await engine.history(await done(agent, accepted)))["versions"]
    assert version["client"].endswith(" harbour agent 1.2 (mcp)")


async def test_what_is_all_of_another_agent_says_so_once_and_of_the_reader_not_at_all(server, word):
    def connected(name):
        info = Implementation(name=name, version="1")
        return Client(f"{server.url}/mcp", auth=MCP_KEY, mode="2026-07-28", client_info=info)

    async with connected("writer") as writer, connected("reader") as reader:
        for number in range(3):
            await noted(writer, text=f"{word} number {number}", tags=[word])
        texts = [
            (await agent.call_tool("kb_search", {"query": word, "tags": [word]})).content[0].text
            for agent in (writer, reader)
        ]
    assert [text.count('\nAll by "writer 1".\n') for text in texts] == [0, 1]
    assert not any(" · by " in text for text in texts)
