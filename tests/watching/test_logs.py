"""The log of the process: one form, and each line says which request it belongs to."""

from __future__ import annotations

import re

import httpx2
import pytest
from fastmcp import Client

from kb import __version__
from kb.client.client import EngineClient
from tests.conftest import KEY, MCP_KEY
from tests.http.conftest import until_idle
from tests.watching.conftest import lines

STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.mark.rare
async def test_a_request_has_one_id_through_gateway_and_engine(start_stack):
    with start_stack(KB_LOG_FORMAT="json") as (engine, gateway):
        async with Client(f"{gateway.url}/mcp") as agent:
            await agent.call_tool("kb_addnote", {"text": "The clerk was patient."})
    [call] = [line for line in lines(gateway) if line["message"] == "call"]
    assert (call["tool"], call["outcome"]) == ("kb_addnote", "ok")
    told = [line for line in lines(engine) if line.get("request_id") == call["request_id"]]
    accepted, request, *others = told
    assert (accepted["message"], accepted["job_id"]) == ("job accepted", 1)
    assert (request["message"], request["method"], request["route"]) == ("request", "POST", "/api/v1/jobs")
    assert request["status"] in (200, 202)  # whether the note was there within a second: then others like it are named
    assert {line["message"] for line in others} <= {"request"}


async def test_the_senders_id_is_kept_when_well_formed_and_replaced_when_not(start_server, tmp_path):
    with start_server(tmp_path, KB_LOG_FORMAT="json", KB_APPS="api", KB_API_KEY=KEY) as server:
        async with httpx2.AsyncClient(base_url=server.url) as http:

            async def answered(path, **headers):
                return (await http.get(path, headers=headers)).headers["X-Request-ID"]

            assert await answered("/api/v1/status", **{"X-Request-ID": "from-the.client_1"}) == "from-the.client_1"
            for bad in ("", "two words", "x" * 129, "né", 'quo"te'):
                made = await answered("/healthz", **{"X-Request-ID": bad.encode()})
                assert re.fullmatch(r"[0-9a-f]{32}", made)
            assert await answered("/healthz") != await answered("/healthz")
    refused = next(line for line in lines(server) if line.get("request_id") == "from-the.client_1")
    assert (refused["status"], refused["route"]) == (401, "(other)")


@pytest.mark.rare
async def test_our_lines_and_the_servers_have_one_form(start_server, tmp_path):
    with start_server(tmp_path / "people") as server:
        httpx2.get(f"{server.url}/api/v1/status")
        httpx2.get(f"{server.url}/metrics")
    for line in server.log.read_text().splitlines():
        assert re.match(rf"{STAMP} (INFO   |WARNING) [\w.]+: ", line), line
    assert "/readyz" not in server.log.read_text(), "machines ask that every few seconds"
    assert "/metrics" not in server.log.read_text()
    assert (
        f"kb_cli.server: starting kb {__version__} in {tmp_path / 'people'}" in server.log.read_text().splitlines()[0]
    )
    assert "kb_cli.server: serving http://" in server.log.read_text()
    assert "uvicorn.error: Finished server process" in server.log.read_text()
    assert re.search(r"request_id=\w{32} method=GET route=/api/v1/status status=200 ms=", server.log.read_text())
    with start_server(tmp_path / "machines", KB_LOG_FORMAT="json") as server:
        httpx2.get(f"{server.url}/api/v1/status")
    for line in lines(server):
        assert re.fullmatch(STAMP, line["time"])
        assert line["level"] == "info"
        assert {"logger", "message"} < line.keys()


@pytest.mark.rare
def test_only_what_is_important_enough_is_told(start_server, tmp_path):
    with start_server(tmp_path, KB_LOG_LEVEL="warning") as server:
        httpx2.get(f"{server.url}/api/v1/status")
    assert server.log.read_text() == ""


SECRETS = ["zyzzyva", "quokka", "narwhal", "axolotl", "pangolin", "okapi", "wombat", KEY, MCP_KEY]


@pytest.mark.requirement("G-4")
async def test_no_text_no_query_and_no_key_is_in_any_log_trace_or_metric(start_stack, collector):
    """At the most talkative level, with everything that can go wrong between an agent and the engine."""
    keys = {"KB_API_KEY": KEY, "KB_MCP_API_KEY": MCP_KEY, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    with start_stack(KB_LOG_FORMAT="json", KB_LOG_LEVEL="debug", **keys) as (engine, gateway):
        await misbehave(engine, gateway)
        bearer = {"Authorization": f"Bearer {KEY}"}
        scraped = [httpx2.get(f"{server.url}/metrics", headers=bearer) for server in (engine, gateway)]
    assert all(answer.status_code == 200 for answer in scraped)
    assert len(collector.spans) > 20
    kept = [server.log.read_bytes() for server in (engine, gateway)]
    everything = b"".join([*kept, collector.raw, *(answer.content for answer in scraped)]).lower()
    assert b"job accepted" in everything
    assert b'"route": "/readyz"' in everything
    assert [word for word in SECRETS if word.encode() in everything] == []


async def misbehave(engine, gateway):
    """A session in which every secret is said."""
    async with Client(f"{gateway.url}/mcp", auth=MCP_KEY) as agent:
        for tool, arguments in (
            ("kb_addnote", {"text": "A zyzzyva.", "title": "Quokka", "tags": ["narwhal"]}),
            ("kb_search", {"query": "axolotl zyzzyva", "tags": ["narwhal"]}),
            ("kb_search", {"query": "axolotl", "top": "pangolin"}),
            ("kb_search", {"query": "axolotl", "pangolin": 1}),
            ("kb_get", {"source_path": "/home/okapi"}),
            ("kb_update_note", {"document_id": 99, "text": "wombat"}),
            ("kb_wombat", {"text": "okapi"}),
        ):
            await agent.call_tool(tool, arguments, raise_on_error=False)
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}) as http:
        api = f"{engine.url}/api/v1"
        await http.get(f"{api}/documents", params={"source_path": "/home/okapi", "tag": "narwhal", "sort": "wombat"})
        await http.get(f"{api}/wombat/zyzzyva", headers={"X-Request-ID": "wom bat"})
        await http.request("WOMBAT", f"{api}/status")
        await http.post(f"{api}/search", content=b'{"query": "axolotl')
        await http.post(f"{api}/jobs", files={"file": ("okapi.pdf", b"%PDF-1.7 pangolin")}, data={"title": "quokka"})
        await http.get(f"{api}/status", headers={"Authorization": "Bearer wombat"})
    async with EngineClient(engine.url, KEY) as client:
        queue = await until_idle(client)
        assert (queue["done"], queue["failed"]) == (1, 1)
