"""Attacks on the sign-in (RFC 9700, and what other servers fell for): each is refused."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
from base64 import urlsafe_b64encode
from urllib.parse import urlencode

import pytest
from fastmcp.server.auth.cimd import CIMDFetcher, CIMDFetchError

from kb.api.errors import SettingError
from kb_mcp.oauth.clients import Clients
from kb_mcp.settings import GatewaySettings
from tests.access.conftest import Api
from tests.conftest import MCP_KEY
from tests.oauth.conftest import CALLBACK, CLAUDE, CLAUDES_CALLBACK, Program, answered

FORGED_CALLBACKS = {
    "another port": "http://127.0.0.1:33419/callback",
    "no port": "http://127.0.0.1/callback",
    "another path": "http://127.0.0.1:33418/callback/steal",
    "a shorter path": "http://127.0.0.1:33418/",
    "another case": "http://127.0.0.1:33418/Callback",
    "another scheme": "https://127.0.0.1:33418/callback",
    "user info": "http://127.0.0.1:33418@evil.example/callback",
    "user info before the host": "http://evil@127.0.0.1:33418/callback",
    "a query": "http://127.0.0.1:33418/callback?next=https://evil.example",
    "a fragment": "http://127.0.0.1:33418/callback#",
    "a final slash": "http://127.0.0.1:33418/callback/",
    "an encoded letter": "http://127.0.0.1:33418/callbac%6b",
    "dots": "http://127.0.0.1:33418/x/../callback",
    "a backslash": "http://127.0.0.1:33418\\@evil.example/callback",
    "another name of this machine": "http://localhost:33418/callback",
    "another machine": "https://evil.example/callback",
    "a script": "javascript:alert(1)//http://127.0.0.1:33418/callback",
    "a space": " http://127.0.0.1:33418/callback",
    "none": None,
}


@pytest.mark.parametrize("callback", FORGED_CALLBACKS.values(), ids=FORGED_CALLBACKS.keys())
def test_a_forged_callback_gets_no_answer(program, callback):
    page = program.authorize(redirect_uri=callback)
    assert page.status_code == 400
    assert "location" not in page.headers


@pytest.mark.parametrize(
    "callback",
    [
        "https://claude.ai/api/mcp/auth_callback/",
        "https://claude.ai:8443/api/mcp/auth_callback",
        "https://claude.ai/API/mcp/auth_callback",
        "https://CLAUDE.ai/api/mcp/auth_callback",
        "https://claude.ai.evil.example/api/mcp/auth_callback",
        "https://claude.ai@evil.example/api/mcp/auth_callback",
        "http://claude.ai/api/mcp/auth_callback",
    ],
)
def test_the_callback_of_a_known_service_is_taken_byte_for_byte(served, callback):
    with Program(served.url, CLAUDE, CLAUDES_CALLBACK) as claude:
        assert claude.authorize(redirect_uri=callback).status_code == 400


def test_a_connector_of_chatgpt_gets_no_answer_for_another(served):
    with Program(served.url, "https://chatgpt.com/oauth/one/client.json") as chatgpt:
        for callback in ("https://chatgpt.com/connector/oauth/two", "https://chatgpt.com/connector/oauth/*"):
            assert chatgpt.authorize(redirect_uri=callback).status_code == 400
        for client_id in ("https://chatgpt.com/oauth/*/client.json", "https://chatgpt.com/oauth/a/b/client.json"):
            assert chatgpt.authorize(client_id=client_id, redirect_uri=CLAUDES_CALLBACK).status_code == 400


CHANGED_CALLBACKS = {
    "a line feed": "http://localhost:51\n/callback",
    "a tab": "http://localhost:5\t1/callback",
    "a space before": " http://localhost:51/callback",
    "a control character before": "\x01http://localhost:51/callback",
    "a line feed after": "http://localhost:51/callback\n",
    "an empty fragment": "http://localhost:51/callback#",
    "an empty query": "http://localhost:51/callback?",
    "capitals": "HTTP://localhost:51/callback",
    "no number": "http://localhost:/callback",
    "port zero": "http://localhost:0/callback",
    "a foreign digit": "http://localhost:\u0663/callback",
    "a second port": "http://localhost:51:52/callback",
    "half an address": "http://[::1/callback",
    "a letter that means several": "http://\u2100/callback",
}


@pytest.mark.parametrize("callback", CHANGED_CALLBACKS.values(), ids=CHANGED_CALLBACKS.keys())
def test_where_any_port_is_allowed_all_else_is_byte_for_byte(served, callback):
    with Program(served.url, "https://claude.ai/oauth/claude-code-client-metadata", callback) as claude_code:
        page = claude_code.authorize()
        assert page.status_code == 400
        assert "location" not in page.headers


FORGED_CLIENTS = {
    "unknown": "3f1c2a90-0000-4000-8000-000000000000",
    "an unknown host": "https://evil.example/oauth/client.json",
    "a lookalike": "https://claude.ai.evil.example/oauth/mcp-oauth-client-metadata",
    "user info": "https://claude.ai@evil.example/oauth/client",
    "a port": "https://claude.ai:8443/oauth/mcp-oauth-client-metadata",
    "no TLS": "http://claude.ai/oauth/mcp-oauth-client-metadata",
    "a query": "https://claude.ai/oauth/mcp-oauth-client-metadata?a=b",
    "dots": "https://claude.ai/x/../oauth/mcp-oauth-client-metadata",
    "this machine": "https://127.0.0.1/client.json",
    "the cloud's own": "https://169.254.169.254/latest/meta-data",
    "garbage": "kb-!!!!",
    "an empty one": "kb-",
}


@pytest.mark.parametrize("client_id", FORGED_CLIENTS.values(), ids=FORGED_CLIENTS.keys())
def test_a_forged_client_gets_no_answer(program, client_id):
    page = program.authorize(client_id=client_id)
    assert page.status_code == 400
    assert "location" not in page.headers


@pytest.mark.parametrize("text", ["[" * 2000, '["\\ud800","http://127.0.0.1:33418/callback"]', '{"a":1}', "[1]", "nul"])
def test_an_id_that_is_not_even_a_list_of_texts_is_unknown(program, text):
    client_id = f"kb-{urlsafe_b64encode(text.encode()).decode().rstrip('=')}"
    assert program.authorize(client_id=client_id).status_code == 400
    assert program.refresh("a.b", client_id=client_id).status_code == 401


@pytest.mark.parametrize("callbacks", [["https://evil.example/callback"], [], [CALLBACK, "https://evil.example/"], 5])
def test_an_id_that_a_client_made_itself_has_no_more_callbacks_than_registration_allows(program, callbacks):
    made = json.dumps(["Claude", *callbacks] if isinstance(callbacks, list) else callbacks).encode()
    client_id = f"kb-{urlsafe_b64encode(made).decode().rstrip('=')}"
    callback = callbacks[-1] if callbacks and isinstance(callbacks, list) else CALLBACK
    assert program.authorize(client_id=client_id, redirect_uri=callback).status_code == 400


@pytest.mark.parametrize("field", ["client_id", "redirect_uri", "state", "resource", "code_challenge"])
def test_a_parameter_that_comes_twice_is_refused(program, field):
    asked = [*program.request().items(), (field, "https://evil.example/")]
    page = program.browser.get(f"/authorize?{urlencode(asked)}")
    assert page.status_code == 400
    assert "location" not in page.headers


WEAKENED = {
    "plain": {"code_challenge_method": "plain"},
    "no method, which means plain": {"code_challenge_method": None},
    "no challenge": {"code_challenge": None},
    "neither": {"code_challenge": None, "code_challenge_method": None},
    "a short challenge": {"code_challenge": "abc"},
    "a long challenge": {"code_challenge": "a" * 100},
    "a token at once": {"response_type": "token"},
    "a foreign resource": {"resource": "https://other.example/mcp"},
    "a resource with a slash": {"resource": "{}/mcp/"},
    "a resource in capitals": {"resource": "{}/MCP"},
    "the server instead of the resource": {"resource": "{}"},
    "only foreign scopes": {"scope": "admin root"},
}


@pytest.mark.parametrize("changes", WEAKENED.values(), ids=WEAKENED.keys())
def test_a_weakened_request_is_refused_and_the_program_is_told(program, changes):
    changes = {name: value and value.format(program.url) for name, value in changes.items()}
    answer = program.authorize(**changes)
    assert answer.status_code in (302, 303), answer.text
    assert answer.headers["location"].startswith(f"{CALLBACK}?")
    back = answered(answer)
    assert back["error"] in ("invalid_request", "unsupported_response_type", "invalid_target", "invalid_scope")
    assert (back["state"], back["iss"]) == ("a/b+c==&d", program.url)
    assert "code" not in back


def test_a_form_without_the_page_is_refused(program, make_key):
    form = program.request() | {"key": make_key()[1], "decision": "allow", "form_token": "0" * 64}
    refused = program.browser.post("/authorize", data=form)
    assert (refused.status_code, "location" in refused.headers) == (403, False)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_of_another_site_is_refused(program, make_key, headers):
    assert program.consent(make_key()[1], headers=headers).status_code == 403


@pytest.mark.parametrize("field", ["client_id", "scope", "resource", "state", "code_challenge", "redirect_uri"])
def test_a_form_for_something_other_than_the_page_showed_is_refused(program, make_key, field):
    changed = {
        "client_id": program.register(client_name="Another").json()["client_id"],
        "scope": "read",
        "resource": f"{program.url}/chatgpt/mcp",
        "state": "other",
        "code_challenge": "b" * 43,
        "redirect_uri": "http://127.0.0.1:33418/other",
    }[field]
    refused = program.consent(make_key()[1], changes={field: changed})
    assert refused.status_code in (400, 403)
    assert "location" not in refused.headers


def test_a_form_from_the_page_of_another_browser_is_refused(program, served, make_key):
    page = program.authorize()
    with Program(served.url) as other:
        other.authorize()
        assert other.decide(page, make_key()[1]).status_code == 403


def test_no_site_can_frame_the_page_or_read_its_address(program):
    page = program.authorize()
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert "DENY" in page.headers["x-frame-options"]
    assert page.headers["cache-control"] == "no-store"
    assert 'name="referrer" content="same-origin"' in page.text
    cookie = page.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_the_name_of_a_program_is_text_and_cannot_pretend(served):
    name = "<script>alert(1)</script>\u202e\n" + "long " * 100
    with Program(served.url) as program:
        program.client_id = program.register(client_name=name).json()["client_id"]
        page = program.authorize()
    assert "<script>" not in page.text
    assert "\u202e" not in page.text
    assert "kb cannot check this name" in page.text


def test_keys_cannot_be_guessed_on_the_page(program, make_key):
    said = [program.consent(f"guess-{number}").text for number in range(22)]
    assert "too many wrong keys" in said[-1]
    assert "not valid here" in said[0]
    assert program.call("a-short-guess").status_code == 429  # the endpoint counts them, too
    assert program.consent(make_key()[1]).status_code == 303  # a key of kb cannot be guessed


@pytest.mark.parametrize("place", ["header", "page"])
def test_spaces_do_not_make_a_key_too_long_to_guess(program, place):
    padded = " " * 40 + MCP_KEY[:31]
    assert len(MCP_KEY) < 32, "this test is about keys that can be guessed"
    for number in range(22):
        program.call(f"padded-{number}")
    if place == "page":
        assert "too many wrong keys" in program.consent(padded).text
    else:
        assert program.call(padded).status_code == 429


def test_a_token_is_no_key_on_the_page(program, tokens):
    assert program.consent(tokens["access_token"]).status_code == 401


def test_a_code_works_once_and_its_second_use_ends_the_access(program, make_key):
    code = program.code(make_key()[1])
    tokens = program.exchange(code).json()
    again = program.exchange(code)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert not program.is_let_in(tokens["access_token"])
    assert program.refresh(tokens["refresh_token"]).status_code == 400


@pytest.mark.sqlite
def test_a_code_is_valid_for_a_minute(program, make_key, served):
    code = program.code(make_key()[1])
    with sqlite3.connect(served.log.parent / "kb.db") as database:
        [(made, until)] = database.execute("SELECT created_at, until FROM grants ORDER BY created_at DESC LIMIT 1")
        assert made[:17] <= until[:17]
        database.execute("UPDATE grants SET until = created_at WHERE until = ?", (until,))
    assert program.exchange(code).status_code == 400


STOLEN = {
    "without the verifier": {"code_verifier": None},
    "with another verifier": {"code_verifier": "x" * 43},
    "with the challenge as verifier": {"code_verifier": "challenge"},
    "with another callback": {"redirect_uri": "http://127.0.0.1:33418/other"},
    "without the callback": {"redirect_uri": None},
    "for another resource": {"resource": "https://other.example/mcp"},
    "for another endpoint": {"resource": "{}/chatgpt/mcp"},
    "as a refresh token": {"grant_type": "refresh_token"},
    "as a password": {"grant_type": "password", "username": "a", "password": "b"},
    "as credentials of a client": {"grant_type": "client_credentials"},
    "by another client": {"client_id": CLAUDE},
    "without a client": {"client_id": None},
    "by an unknown client": {"client_id": "unknown"},
}


@pytest.mark.parametrize("changes", STOLEN.values(), ids=STOLEN.keys())
def test_a_stolen_code_is_worth_nothing(program, make_key, changes):
    code = program.code(make_key()[1])
    if changes.get("code_verifier") == "challenge":
        changes = {"code_verifier": program.request()["code_challenge"]}
    if changes.get("grant_type") == "refresh_token":
        changes = changes | {"refresh_token": code}
    changes = {name: value and value.format(program.url) for name, value in changes.items()}
    assert program.exchange(code, **changes).status_code in (400, 401)


@pytest.mark.parametrize(
    "changes",
    [{"client_id": CLAUDE}, {"resource": "https://other.example/mcp"}, {"scope": "read write admin"}],
    ids=["another client", "another resource", "more scopes"],
)
def test_a_stolen_refresh_token_is_worth_nothing(program, tokens, changes):
    assert program.refresh(tokens["refresh_token"], **changes).status_code in (400, 401)


def test_a_request_for_tokens_with_a_parameter_twice_is_refused(program, make_key):
    form = {"grant_type": "authorization_code", "client_id": program.client_id, "code": program.code(make_key()[1])}
    body = urlencode([*form.items(), ("code", "other"), ("code_verifier", program.verifier)])
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert program.http.post("/token", content=body, headers=headers).status_code == 400


def test_a_token_works_only_at_its_endpoint(program, tokens):
    assert program.is_let_in(tokens["access_token"])
    for path in ("/chatgpt/mcp", "/collections/mcp"):
        assert program.call(tokens["access_token"], path=path).status_code == 401
    bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
    assert program.http.get("/api/v1/documents", headers=bearer).status_code == 401
    assert program.http.get("/metrics", headers=bearer).status_code == 401


@pytest.mark.parametrize("place", ["query", "body", "another scheme", "the refresh token", "the code"])
def test_a_token_is_taken_only_as_a_bearer_token(program, make_key, place):
    code = program.code(make_key()[1])
    tokens = program.exchange(code).json()
    headers, query = {"Accept": "application/json, text/event-stream"}, ""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "access_token": tokens["access_token"]}
    if place == "query":
        query = f"?access_token={tokens['access_token']}"
    elif place == "another scheme":
        headers["Authorization"] = f"Basic {tokens['access_token']}"
    elif place != "body":
        headers["Authorization"] = f"Bearer {code if place == 'the code' else tokens['refresh_token']}"
    assert program.http.post(f"/mcp{query}", json=body, headers=headers).status_code == 401


FOREIGN_CALLBACKS = [
    "https://evil.example/callback",
    "http://evil.example/callback",
    "http://localhost.evil.example/callback",
    "http://127.0.0.1.evil.example/callback",
    "http://localhost@evil.example/callback",
    "http://user@127.0.0.1/callback",
    "https://chatgpt.com/connector/oauth/../../evil",
    "https://chatgpt.com/connector/oauth/",
    "https://chatgpt.com/connector/oauth/a/b",
    "https://chatgpt.com/connector/oauth/a?next=evil",
    "https://claude.ai.evil.example/api/mcp/auth_callback",
    "javascript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "evil://callback",
    "http://10.0.0.1/callback",
    "http://127.0.0.1:33418/callback#fragment",
]


@pytest.mark.parametrize("callback", FOREIGN_CALLBACKS)
def test_no_program_registers_a_foreign_callback(program, callback):
    for callbacks in ([callback], [CALLBACK, callback]):
        refused = program.register(redirect_uris=callbacks)
        assert refused.status_code == 400
        assert refused.json()["error"] in ("invalid_redirect_uri", "invalid_client_metadata")


@pytest.mark.parametrize(
    "fields",
    [
        {"redirect_uris": []},
        {"redirect_uris": [f"{CALLBACK}{number}" for number in range(20)]},
        {"redirect_uris": [CALLBACK + "a" * 5000]},
        {"grant_types": ["client_credentials"]},
        {"response_types": ["token"]},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"grant_types": ["authorization_code", "urn:ietf:params:oauth:grant-type:jwt-bearer"]},
    ],
)
def test_a_registration_beyond_what_kb_does_is_refused(program, fields):
    assert program.register(**fields).status_code == 400


@pytest.mark.sqlite
def test_a_flood_of_registrations_leaves_nothing_behind(program, served):
    def size():
        return (served.log.parent / "kb.db-wal").stat().st_size

    before = size()
    ids = {program.register(client_name=f"flood {number}").json()["client_id"] for number in range(50)}
    assert len(ids) == 50
    assert size() == before
    large = program.http.post("/register", content=b'{"client_name": "' + b"a" * 100_000 + b'"}')
    assert large.status_code == 413


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"X-Forwarded-Host": "evil.example"},
        {"X-Forwarded-Proto": "https"},
        {"X-Forwarded-Prefix": "/evil"},
        {"Forwarded": "host=evil.example;proto=https"},
    ],
    ids=lambda headers: next(iter(headers)),
)
def test_no_header_changes_the_addresses(program, served, headers):
    for path in ("oauth-protected-resource/mcp", "oauth-authorization-server"):
        said = program.http.get(f"/.well-known/{path}", headers=headers).text
        assert "evil" not in said
        assert "https:" not in said
        assert served.url in said


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1", "::1", "fd00::1", "::ffff:127.0.0.1"]
)
async def test_a_document_is_never_fetched_from_inside(monkeypatch, address):
    """Not even if the name also has a public address: which of them is used must not depend on luck."""
    asked = []

    def answer(host, *_, **__):
        asked.append(host)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [
            (family, socket.SOCK_STREAM, 6, "", (address, 443)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 443)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    assert await Clients().get("https://claude.ai/oauth/another-document") is None
    assert asked == ["claude.ai"]


async def test_a_flood_of_unknown_documents_makes_few_requests_and_nobody_waits_long(monkeypatch):
    asked = []

    async def fetch(_, client_id):
        asked.append(client_id)
        await asyncio.sleep(1)  # as a search for the host's address, which cannot be stopped
        raise CIMDFetchError

    monkeypatch.setattr(CIMDFetcher, "fetch", fetch)
    monkeypatch.setattr("kb_mcp.oauth.clients.FETCH_SECONDS", 0.1)
    clients = Clients()
    for _ in range(3):
        found = asyncio.gather(*(clients.get(f"https://claude.ai/oauth/{number}") for number in range(20)))
        assert set(await asyncio.wait_for(found, 0.8)) == {None}
    assert len(asked) == 2
    await asyncio.sleep(1)
    await clients.get("https://claude.ai/oauth/later")
    assert len(asked) == 3


async def test_documents_are_fetched_only_from_known_hosts(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("it asked for an address"))
    clients = Clients(["https://example.org/callback"])
    for client_id in (*FORGED_CLIENTS.values(), "https://example.org/", "https://example.org"):
        assert await asyncio.wait_for(clients.get(client_id), 5) is None


def test_a_token_of_a_revoked_or_expired_key_is_refused_at_once(program, make_key, admin):
    name, key = make_key()
    tokens = program.sign_in(key)
    admin.ok("DELETE", f"keys/{name}")
    assert program.call(tokens["access_token"]).status_code == 401
    assert program.consent(key).status_code == 401


def test_only_keys_with_all_rights_see_or_end_access(served, make_key, tokens):
    for path, method in (("grants", "GET"), ("grants/0123456789abcdef", "DELETE"), ("grant/find", "POST")):
        assert Api(served.url, make_key()[1])(method, path).status_code == 403
        assert Api(served.url, None)(method, path).status_code == 401


@pytest.mark.parametrize("url", ["http://kb.example.org", "https://kb.example.org/?a=b", "https://u:p@kb.example.org"])
def test_a_public_address_without_tls_or_with_more_than_a_path_stops_the_start(url):
    with pytest.raises(SettingError, match=r"^KB_PUBLIC_URL"):
        GatewaySettings.read({"KB_PUBLIC_URL": url})
