"""Access to the gateway: keys, limits of calls, and the information that strangers get."""

from __future__ import annotations

import asyncio
import base64
import os

import httpx2
import pytest
from fastmcp import Client
from mcp import MCPError

from kb.api.errors import SettingError
from kb.asgi.rate_limit import GCRA
from kb_mcp.auth import key_verifier
from kb_mcp.settings import GatewaySettings
from tests.conftest import KEY
from tests.mcp.conftest import call, connected, done, refusal


async def status_for(gateway, token):
    async with httpx2.AsyncClient() as http:
        return (
            await http.post(f"{gateway.url}/mcp", json={}, headers={"Authorization": f"Bearer {token}"})
        ).status_code


@pytest.mark.requirement("G-4")
async def test_several_keys_are_served_and_their_parts_are_not(start_gateway):
    with start_gateway(KB_MCP_API_KEY="old-key,new-key") as gateway:
        for key in ("old-key", "new-key"):
            async with connected(gateway, auth=key) as agent:
                assert len(await agent.list_tools()) == 13
        for wrong in ("old-key,new-key", "old", "OLD-KEY", ","):
            assert await status_for(gateway, wrong) == 401, wrong


@pytest.mark.requirement("G-4")
async def test_the_key_is_asked_for_under_every_address_that_routes_know(start_gateway):
    settings = {"KB_MCP_API_KEY": "key", "KB_MCP_COLLECTIONS": "1", "UVICORN_ROOT_PATH": "/behind/a/proxy"}
    with start_gateway(**settings) as gateway:
        async with httpx2.AsyncClient() as http:
            for path in (
                "/mcp",
                "/collections/mcp",
                "/behind/a/proxy/mcp",
                "//mcp",
                "/%6dcp",
                "/mcp/",
                "/collections//mcp",
            ):
                status = (await http.post(f"{gateway.url}{path}", json={})).status_code
                assert status in (401, 404, 307), path
                assert status == 401 or path not in ("/mcp", "/collections/mcp"), path


@pytest.mark.requirement("G-4")
async def test_keys_of_a_file_are_rotated_without_a_restart(start_gateway, tmp_path):
    file = tmp_path / "keys"
    file.write_text("first\n")
    with start_gateway(KB_MCP_API_KEY_FILE=str(file), KB_MCP_API_KEY="fixed") as gateway:
        assert [await status_for(gateway, key) for key in ("first", "second", "fixed")] == [400, 401, 400]
        file.write_text("first\nsecond\n")
        assert [await status_for(gateway, key) for key in ("first", "second", "fixed")] == [400, 400, 400]
        file.write_text("second\n")
        os.utime(file, (1, 1))
        assert [await status_for(gateway, key) for key in ("first", "second", "fixed")] == [401, 400, 400]
        file.unlink()
        assert [await status_for(gateway, key) for key in ("first", "second", "fixed")] == [401, 400, 400]
    assert "second" not in gateway.log.read_text()


@pytest.mark.requirement("G-4")
async def test_a_line_of_the_file_is_a_key_and_a_comment_is_none(tmp_path):
    file = tmp_path / "keys"
    file.write_text("# keys of agents\n\n first \r\n#second\n")
    known = key_verifier(None, file)
    for token, is_key in (("first", True), ("#", False), ("keys", False), ("#second", False), ("second", False)):
        assert bool(await known(token)) == is_key, token


@pytest.mark.requirement("G-4")
@pytest.mark.parametrize("line", ["two words", "tab\there", "schl\u00fcssel"])
async def test_a_line_that_no_header_can_carry_is_refused_and_not_told(tmp_path, line):
    file = tmp_path / "keys"
    file.write_text("first\n")
    known = key_verifier(None, file)
    file.write_text(f"{line}\n")
    assert await known("first")
    assert not await known(line.split()[0])
    with pytest.raises(SettingError, match=r"^KB_MCP_API_KEY_FILE: a key may contain only visible") as refused:
        key_verifier(None, file)
    assert line not in str(refused.value)


@pytest.mark.requirement("G-4")
async def test_a_file_in_the_place_of_another_of_the_same_time_is_read(tmp_path):
    file, other = tmp_path / "keys", tmp_path / "other"
    for path, key in ((file, "first"), (other, "other")):
        path.write_text(key)
        os.utime(path, (1, 1))
    known = key_verifier(None, file)
    other.rename(file)
    assert await known("other")
    assert not await known("first")


@pytest.mark.requirement("G-4")
@pytest.mark.parametrize(("keys", "content"), [(",", None), (" , ", None), (None, ""), (None, None)])
def test_a_setting_that_brings_no_key_stops_the_start_instead_of_leaving_the_door_open(tmp_path, keys, content):
    file = tmp_path / "keys"
    if content is not None:
        file.write_text(content)
    with pytest.raises(SettingError, match=r"^KB_MCP_API_KEY"):
        key_verifier(keys, None if keys else file)


@pytest.mark.requirement("G-4")
def test_an_engine_url_with_a_password_which_errors_would_tell_stops_the_start(monkeypatch):
    monkeypatch.setenv("KB_ENGINE_URL", "http://user:secret@127.0.0.1:8000")
    with pytest.raises(SettingError, match=r"^KB_ENGINE_URL: .*must not contain a user") as refused:
        GatewaySettings.read()
    assert "secret" not in str(refused.value)


@pytest.mark.requirement("G-4")
async def test_the_name_of_a_key_does_not_tell_the_key():
    name = (await key_verifier("secret-key,other", None)("secret-key")).name
    assert name
    assert name not in "secret-key"
    assert "secret-key" not in name


@pytest.mark.requirement("G-4")
async def test_no_key_is_in_the_log_whatever_is_called(start_gateway, server):
    secrets = ("the-agents-secret", KEY)
    with start_gateway(KB_ENGINE_URL=server.url, KB_API_KEY=KEY, KB_MCP_API_KEY=secrets[0]) as gateway:
        async with connected(gateway, auth=secrets[0]) as agent:
            await call(agent, "kb_status")
            await refusal(agent, "kb_get", document_id=999_999)
            await refusal(agent, "kb_search")
        await status_for(gateway, "a-wrong-secret")
    log = gateway.log.read_text()
    assert not any(secret in log for secret in (*secrets, "a-wrong-secret"))


async def test_probes_say_no_more_than_a_word_and_need_no_key_and_no_name(start_gateway):
    with start_gateway(KB_MCP_API_KEY="k") as gateway:
        async with httpx2.AsyncClient() as http:
            for headers in ({}, {"Host": "10.1.2.3:8001"}):
                assert (await http.get(f"{gateway.url}/healthz", headers=headers)).text == "ok"
                assert (await http.get(f"{gateway.url}/readyz", headers=headers)).text == "ready"


def test_so_many_calls_a_minute_may_come_at_once_and_then_one_by_one():
    now = [0.0]
    limiter = GCRA(60, lambda: now[0])
    assert [limiter.acquire("a") for _ in range(60)] == [0] * 60
    assert limiter.acquire("a") == pytest.approx(1)
    assert limiter.acquire("b") == 0
    now[0] += 1
    assert (limiter.acquire("a"), limiter.acquire("a")) == (0, pytest.approx(1))
    now[0] += 3600
    assert [limiter.acquire("a") > 0 for _ in range(61)] == [False] * 60 + [True]


async def test_each_key_has_its_own_calls_a_minute_on_all_surfaces_together(start_gateway, server):
    settings = {"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY, "KB_MCP_COLLECTIONS": "1"}
    with start_gateway(**settings, KB_MCP_API_KEY="a,b", KB_MCP_CALLS_PER_MINUTE="3") as gateway:
        async with connected(gateway, auth="a") as agent, connected(gateway, "/collections/mcp", "a") as other:
            await call(agent, "kb_status")
            await call(other, "kb_status")
            assert "does not exist" in await refusal(other, "kb_set_collection", document_id=999_999)
            for client in (agent, other):
                said = await refusal(client, "kb_status")
                assert said.startswith("Too many calls: this key has 3 per minute (KB_MCP_CALLS_PER_MINUTE). Wait ")
                with pytest.raises(MCPError, match="Too many calls"):
                    await client.read_resource("kb://documents/1")
            assert len(await agent.list_tools()) == 13
        async with connected(gateway, auth="b") as agent:
            await call(agent, "kb_status")


@pytest.mark.slow
@pytest.mark.requirement("G-9")
async def test_two_workers_take_the_chunks_of_one_upload(start_gateway, server, tmp_path, word):
    settings = {"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY, "KB_MCP_UPLOAD_DIR": str(tmp_path)}
    with start_gateway(workers=2, **settings) as gateway:
        content = (f"{word} " + "ledger " * 300).encode()
        async with connected(gateway) as agent:
            started = await call(agent, "kb_upload_start", filename="a.txt", total_size=len(content), tags=[word])
        pieces = [content[at : at + 100] for at in range(0, len(content), 100)]

        async def send(index):
            # A connection each, so that both workers get some.
            async with Client(f"{gateway.url}/mcp") as agent:
                data = base64.b64encode(pieces[index]).decode()
                await call(agent, "kb_upload_chunk", upload_id=started["upload_id"], chunk_index=index, data=data)

        await asyncio.gather(*map(send, reversed(range(len(pieces)))))
        async with connected(gateway) as agent:
            document_id = await done(agent, await call(agent, "kb_upload_finish", upload_id=started["upload_id"]))
            document = await call(agent, "kb_get", document_id=document_id)
    assert "".join(chunk["text"] for chunk in document["chunks"]).encode() == content
    assert gateway.log.read_text().count("Application startup complete") == 2


async def test_only_a_put_is_taken_at_the_address_of_an_upload(server):
    async with httpx2.AsyncClient() as http:
        for method in ("GET", "HEAD", "POST", "DELETE", "OPTIONS"):
            reply = await http.request(method, f"{server.url}/upload/00000000-0000-4000-8000-000000000000")
            assert (reply.status_code, reply.headers["Allow"]) == (405, "PUT"), method
            assert reply.headers["Content-Type"] == "application/problem+json"
