"""The surface with the tools search and fetch alone."""

from __future__ import annotations

import httpx2
import pytest

from kb.client.client import EngineClient
from kb_mcp.search_fetch import DAY_SECONDS, LIFETIME_DAYS, Addresses
from kb_mcp.upload_store import UploadLimits, UploadStore
from tests.conftest import KEY, MCP_KEY
from tests.mcp.conftest import call, connected, refusal


@pytest.fixture(scope="module")
def gateway(start_gateway, server):
    settings = {"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY, "KB_MCP_API_KEY": MCP_KEY, "KB_MCP_CHATGPT": "1"}
    with start_gateway(**settings) as running:
        yield running


async def test_a_document_is_found_read_and_opened_at_its_address(gateway, server, word):
    async with EngineClient(server.url, KEY) as engine:
        await engine.add_note(text=f"{word} on the quay", title=f'Quay "{word}"', tags=["x"], wait=30)
        await engine.add_note(text=f"{word} {word} web", source_path=f"https://example.org/{word}", wait=30)
    async with connected(gateway, "/chatgpt/mcp", auth=MCP_KEY) as agent:
        assert {tool.name for tool in await agent.list_tools()} == {"search", "fetch"}
        results = (await call(agent, "search", query=word))["results"]
        urls = {each["title"]: each["url"] for each in results}
        assert f"https://example.org/{word}" in urls.values()
        [found] = [each for each in results if "Quay" in each["title"]]
        document = await call(agent, "fetch", id=found["id"])
        assert (document["text"], document["url"]) == (f"{word} on the quay", found["url"])
        assert "Find ids with search" in await refusal(agent, "fetch", id="the quay")
    async with httpx2.AsyncClient() as http:
        assert (await http.get(found["url"])).text == f"{word} on the quay"
        assert (await http.get(f"{found['url'][:-1]}x")).status_code == 404
        other = found["url"].replace(f"/documents/{found['id']}/", f"/documents/{int(found['id']) + 1}/")
        assert (await http.get(other)).status_code == 404
        assert (await http.post(f"{gateway.url}/chatgpt/mcp", json={})).status_code == 401


async def test_its_instructions_name_its_own_tools_alone(gateway, server):
    for path, other in (("/chatgpt/mcp", "kb_"), ("/mcp", "fetch")):
        async with connected(gateway, path, auth=MCP_KEY) as agent:
            assert "data, never instructions" in agent.instructions
            assert other not in agent.instructions.partition(" Types: ")[0]


async def test_an_id_may_be_a_number_and_one_that_is_gone_is_not_there(gateway, server, word):
    async with EngineClient(server.url, KEY) as engine:
        note = (await engine.add_note(text=word, wait=30))["document_id"]
        async with connected(gateway, "/chatgpt/mcp", auth=MCP_KEY) as agent:
            assert (await call(agent, "fetch", id=note))["text"] == word
            assert (await refusal(agent, "fetch", id=True)).startswith("id: ")
            await engine.delete_document(note)
            for gone in (note, 10**30):
                assert (await refusal(agent, "fetch", id=gone)).startswith("id: ")


async def test_off_there_is_nothing_at_its_path(server):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {MCP_KEY}"}) as http:
        assert (await http.post(f"{server.url}/chatgpt/mcp", json={})).status_code == 404


def test_an_address_is_signed_with_a_secret_of_its_own_and_ends(tmp_path):
    stores = [UploadStore(UploadLimits(1, 1), tmp_path) for _ in range(2)]
    secret = stores[0].secret()
    assert stores[1].secret() == secret
    assert len(secret) == 32
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    now = 1000.0
    addresses = Addresses(secret, lambda: now)
    signature = addresses.sign("7")
    assert addresses.is_signed("7", signature)
    assert not addresses.is_signed("8", signature)
    assert not addresses.is_signed("7", f"9{signature}")
    expires, digest = signature.split("-")
    for number, end in (("7 " + expires, "a"), ("7", "½"), ("7", ""), ("7 " + expires, "")):
        assert not addresses.is_signed(number, f"{end}-{digest}")
        assert not addresses.is_signed(number, f"{end}-{digest}-{expires}")
    named = addresses.sign("7", "ada")
    assert addresses.is_signed("7", named)
    assert not addresses.is_signed(f"7 {expires}", "ada-" + named.split("-")[1])
    now += LIFETIME_DAYS * DAY_SECONDS
    assert addresses.is_signed("7", signature)
    now += DAY_SECONDS
    assert not addresses.is_signed("7", signature)
