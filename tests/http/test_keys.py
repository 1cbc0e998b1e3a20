"""The keys of the HTTP API: where they stand, how they change, and what happens to who tries many."""

from __future__ import annotations

import httpx2
import pytest
from fastmcp import Client

from kb.asgi.bearer import GUESSES_PER_MINUTE, Guesses, network_of
from kb.asgi.rate import MAX_CALLERS
from tests.conftest import ALL_APPS, KEY, MCP_KEY
from tests.watching.conftest import lines

LONG = "of-sixteen-characters-or-more"


def status_for(server, key, path="/api/v1/status", **headers):
    return httpx2.get(f"{server.url}{path}", headers={"Authorization": f"Bearer {key}"} | headers).status_code


@pytest.mark.requirement("R-5")
async def test_keys_of_a_file_are_rotated_without_a_restart_and_the_gateway_sends_the_first(start_server, tmp_path):
    file = tmp_path / "keys"
    file.write_text("# of scripts\n\nfirst-key\nsecond-key\n")
    with start_server(tmp_path / "data", KB_API_KEY_FILE=str(file), KB_MCP_API_KEY=MCP_KEY, KB_APPS=ALL_APPS) as server:
        for path in ("/api/v1/status", "/metrics"):
            tried = ("first-key", "second-key", "third-key", "# of scripts", "#")
            assert [status_for(server, key, path) for key in tried] == [200, 200, 401, 401, 401]
        async with Client(f"{server.url}/mcp", auth=MCP_KEY) as agent:
            assert (await agent.call_tool("kb_status", {})).structured_content["version"]
            file.write_text("third-key\nfourth-key\n")
            assert [status_for(server, key) for key in ("first-key", "third-key", "fourth-key")] == [401, 200, 200]
            assert (await agent.call_tool("kb_status", {})).structured_content["version"]
        file.write_text("\n")
        assert status_for(server, "third-key") == 200
    log = server.log.read_text()
    assert "KB_API_KEY_FILE: " in log
    assert "third-key" not in log


@pytest.mark.requirement("R-5")
async def test_who_tries_many_keys_is_refused_for_a_while_and_nobody_else(start_server, tmp_path):
    keys = {"KB_API_KEY": KEY, "KB_MCP_API_KEY": MCP_KEY, "KB_LOG_FORMAT": "json"}
    with start_server(tmp_path, **keys) as server, httpx2.Client(base_url=server.url) as http:
        guesser, other = {"X-Forwarded-For": "192.0.2.7"}, {"X-Forwarded-For": "192.0.2.8"}

        def answered(key):
            return http.get("/api/v1/status", headers={"Authorization": f"Bearer {key}"} | guesser)

        # On a slow machine a guess or two more are free meanwhile.
        refused_at = next(number for number in range(500) if answered(f"guess {number}").status_code == 429)
        assert refused_at >= GUESSES_PER_MINUTE
        refused = answered(KEY)
        assert refused.status_code == 429
        assert 0 < int(refused.headers["retry-after"]) <= 4
        assert refused.json()["type"] == "urn:kb:problem:too-many-guesses"
        assert status_for(server, KEY, **other) == 200
        assert status_for(server, KEY) == 200
        assert httpx2.get(f"{server.url}/healthz", headers=guesser).status_code == 200
    told = [line for line in lines(server) if line["message"] == "request"]
    assert {"192.0.2.7", "192.0.2.8", "127.0.0.1"} == {line["client"] for line in told}


def test_the_same_wrong_key_again_and_no_key_at_all_are_no_guesses(start_server, tmp_path):
    with start_server(tmp_path, KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY) as server:
        for _ in range(2 * GUESSES_PER_MINUTE):
            assert status_for(server, "of-last-year") == 401
            assert httpx2.get(f"{server.url}/api/v1/status").status_code == 401
        assert status_for(server, KEY) == 200


def test_a_network_of_version_6_is_one_address_and_version_4_in_its_form_is_itself():
    assert network_of("2001:db8:1:2::7") == network_of("2001:db8:1:2:ffff::9") != network_of("2001:db8:1:3::7")
    assert network_of("::ffff:192.0.2.7") == network_of("192.0.2.7") != network_of("192.0.2.8")
    assert network_of("192.0.2.7") != network_of("::ffff:192.0.2.8")


def test_only_so_many_guessers_are_remembered():
    guesses = Guesses()
    for number in range(3 * MAX_CALLERS):
        guesses.add(f"address {number}", "guess")
    assert len(guesses._limiter._arrivals) <= MAX_CALLERS
    assert len(guesses._made) <= MAX_CALLERS


@pytest.mark.parametrize(("key", "is_told"), [("x" * 15, True), (LONG, False)])
def test_a_key_that_can_be_guessed_is_told_of(start_server, tmp_path, key, is_told):
    with start_server(tmp_path, KB_API_KEY=key, KB_MCP_API_KEY=f"{LONG},{key}", KB_APPS=ALL_APPS) as server:
        pass
    for name in ("KB_API_KEY", "KB_MCP_API_KEY"):
        assert (f"{name}: a key of fewer than 16 characters can be guessed" in server.log.read_text()) == is_told
    assert key not in server.log.read_text()
