"""What clients do at the edges of the protocol: old sessions, wrong types, and a look for a way to sign in."""

from __future__ import annotations

import json

import httpx2
import pytest

from tests.conftest import MCP_KEY
from tests.mcp.conftest import call, refusal

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.fixture
async def http(server):
    headers = HEADERS | {"Authorization": f"Bearer {MCP_KEY}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=30) as client:
        yield client


async def asked(http, method, params, **headers):
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await http.post(
        "/mcp", json=message, headers={name.replace("_", "-"): each for name, each in headers.items()}
    )


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_session_of_yesterday_is_served_and_none_can_be_opened_or_ended(http, version):
    for method, params in (("initialize", HELLO), ("tools/list", {}), ("tools/call", {"name": "kb_status"})):
        reply = await asked(http, method, params, Mcp_Session_Id="dead", MCP_Protocol_Version=version)
        assert (reply.status_code, "result" in reply.json()) == (200, True), method
    for method in ("GET", "DELETE"):
        assert (await http.request(method, "/mcp", headers={"Mcp-Session-Id": "dead"})).status_code == 405


async def test_arguments_as_a_text_of_json_are_read(http):
    arguments = json.dumps({"query": "lamp", "top": 1})
    reply = await asked(http, "tools/call", {"name": "kb_search", "arguments": arguments})
    assert not reply.json()["result"].get("isError")
    for none in ({}, {"arguments": None}, {"arguments": "{}"}):
        assert "result" in (await asked(http, "tools/call", {"name": "kb_status"} | none)).json()


async def test_a_value_of_another_form_means_the_same_or_nothing(agent, engine, word):
    note = (await call(agent, "kb_addnote", text=f"{word} of oak", title="null", date="null"))["document_id"]
    assert (await engine.document(note))["title"] == f"{word} of oak"
    for form in (note, str(note), f"{note}\n", float(note), f"{note}.0", [note], [str(note)]):
        assert (await call(agent, "kb_get", document_id=form))["id"] == note
    for form in ("recent", "Recent", "RECENT"):
        assert (await call(agent, "kb_search", query=word, sort=form))["results"]


@pytest.mark.parametrize("blank", ["", "null", None])
async def test_a_blank_for_a_number_a_flag_or_a_list_means_that_it_is_left_out(agent, word, blank):
    note = (await call(agent, "kb_addnote", text=f"{word} of elm", tags=blank, replaces=blank, if_new=blank))[
        "document_id"
    ]
    found = await call(agent, "kb_search", query=word, top=blank, fts_only=blank, tags=blank, document_id=blank)
    assert found["results"][0]["document_id"] == note
    assert (await call(agent, "kb_get", document_id=note, page=blank, max_tokens=blank, outline=blank))["id"] == note
    assert "document_id: " in await refusal(agent, "kb_delete", document_id=blank)


@pytest.mark.parametrize("tags", ['"{0}"', '"{0}", "b"', '["{0}"]', "{0}, b"])
async def test_no_quotation_mark_of_a_list_gets_into_a_tag(agent, word, tags):
    note = (await call(agent, "kb_addnote", text=f"{word} of ash", tags=tags.format(word)))["document_id"]
    assert word in (await call(agent, "kb_get", document_id=note))["tags"]


@pytest.mark.parametrize(
    "path", ["/.well-known/oauth-nothing", "/mcp/.well-known/openid-configuration", "/mcp/nothing"]
)
async def test_what_does_not_exist_is_said_in_json(http, path):
    reply = await http.get(path, headers={"X-Forwarded-Proto": "https"})
    assert reply.status_code == 404
    assert reply.json()["title"] == "Not Found"
