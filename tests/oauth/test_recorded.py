"""The orders of requests of real clients, from their public reports, replayed.

- claude.ai: anthropics/claude-ai-mcp#103, #217, #490, #716
- ChatGPT: BasedHardware/omi#8824, django-oauth/django-oauth-toolkit#1857
- Visual Studio Code: a server's log with its document, and elmohq/elmo#684
- Codex: elmohq/elmo#684
- Claude Code: anthropics/claude-code#37747
- mcp-remote: agentserver/agentserver#270
- Cursor: erp-mafia/accounted#2225
"""

from __future__ import annotations

import pytest

from tests.oauth.conftest import CLAUDE, CLAUDES_CALLBACK, Program

PROBES = ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server")
OLD_PROBES = (
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-authorization-server/mcp",
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/mcp",
    "/mcp/.well-known/openid-configuration",
    "/mcp/.well-known/oauth-protected-resource",
)

RECORDED = {
    "claude.ai": (CLAUDE, CLAUDES_CALLBACK, {"scope": "read write offline_access"}, {}),
    "claude.ai that registers": (
        None,
        CLAUDES_CALLBACK,
        {"scope": "claudeai read write"},
        {
            "client_name": "Claude",
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "client_secret_post",
            "scope": "claudeai",
        },
    ),
    "claude.com": (CLAUDE, "https://claude.com/api/mcp/auth_callback", {"scope": None}, {}),
    "ChatGPT": (
        "https://chatgpt.com/oauth/client.json",
        "https://chatgpt.com/connector_platform_oauth_redirect",
        {"scope": "read write offline_access"},
        {},
    ),
    "ChatGPT with an id of the connector": (
        "https://chatgpt.com/oauth/kDmjx77UnKOM/client.json",
        "https://chatgpt.com/connector/oauth/kDmjx77UnKOM",
        {},
        {},
    ),
    "ChatGPT that registers": (
        None,
        "https://chatgpt.com/connector/oauth/OUbdUMlL15Ct",
        {"scope": "read write"},
        {"client_name": "ChatGPT", "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"]},
    ),
    "Visual Studio Code": (
        "https://vscode.dev/oauth/client-metadata.json",
        "http://127.0.0.1:33418/",
        {"state": "gXVXo0/iMD8WMolDHKxSTg=="},
        {},
    ),
    "Visual Studio Code that registers": (
        None,
        "http://127.0.0.1:33418/",
        {},
        {
            "client_name": "Visual Studio Code",
            "client_uri": "https://code.visualstudio.com",
            "grant_types": ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
            "redirect_uris": [
                *("https://insiders.vscode.dev/redirect", "https://vscode.dev/redirect", "http://127.0.0.1/"),
                *("http://127.0.0.1:33418/", "http://localhost/", "http://localhost:33418/"),
            ],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        },
    ),
    "Codex": ("https://chatgpt.com/oauth/codex/client.json", "http://127.0.0.1:37819/callback", {}, {}),
    "Codex that registers": (
        None,
        "http://127.0.0.1:37819/callback/fQ2x",
        {},
        {"client_name": "Codex", "application_type": "native", "token_endpoint_auth_method": "none"},
    ),
    "Claude Code": (
        "https://claude.ai/oauth/claude-code-client-metadata",
        "http://localhost:3118/callback",
        {"scope": "read write"},
        {},
    ),
    "mcp-remote": (
        None,
        "http://localhost:3334/oauth/callback",
        {"scope": None},
        {
            "client_name": "MCP CLI Proxy",
            "client_uri": "https://github.com/modelcontextprotocol/mcp-cli",
            "software_id": "2e6dc280-f3c3-4e01-99a7-8181dbd1d23d",
            "software_version": "0.15.1",
            "token_endpoint_auth_method": "none",
        },
    ),
    "Cursor": (
        None,
        "cursor://anysphere.cursor-mcp/oauth/callback",
        {},
        {
            "client_name": "Cursor",
            "redirect_uris": [
                *("cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/agents/mcp/oauth/callback"),
                *("https://www.cursor.com/bot/mcp/oauth/callback", "http://localhost:8787/callback"),
                "grokbot://mcp/oauth/callback",
            ],
            "token_endpoint_auth_method": "none",
        },
    ),
    "a client of before resources": (None, "http://localhost:7777/oauth/callback", {"resource": None}, {}),
}


@pytest.mark.parametrize(("client_id", "callback", "asked", "registration"), RECORDED.values(), ids=RECORDED.keys())
def test_a_real_client_gets_in(served, make_key, client_id, callback, asked, registration):
    with Program(served.url, client_id or "", callback) as client:
        assert client.call(None).status_code == 401
        for path in PROBES:
            assert client.http.get(path, headers={"MCP-Protocol-Version": "2025-11-25"}).status_code == 200
        if client_id is None:
            registered = client.register(**registration)
            assert registered.status_code == 201, registered.text
            assert "refresh_token" in registered.json()["grant_types"]
            client.client_id = registered.json()["client_id"]
        asked_tokens = {"resource": None} if "resource" in asked else {}
        tokens = client.exchange(client.code(make_key()[1], **asked), **asked_tokens).json()
        assert client.is_let_in(tokens["access_token"])
        renewed = client.refresh(tokens["refresh_token"], **asked_tokens).json()
        assert client.is_let_in(renewed["access_token"])


@pytest.mark.parametrize("path", OLD_PROBES)
def test_what_clients_look_for_in_vain_is_said_in_json_and_asks_for_no_key(program, path):
    answer = program.http.get(path)
    assert answer.status_code in (200, 404)
    assert answer.headers["content-type"].startswith("application/")
    if answer.status_code == 200:
        assert answer.json()["resource"] == program.resource


def test_a_page_of_another_origin_may_ask_for_tokens_but_not_show_the_page_of_consent(program):
    origin = {"Origin": "http://localhost:6274"}
    for path in (*PROBES, "/token", "/register", "/revoke"):
        method = "POST" if path.startswith(("/token", "/reg", "/rev")) else "GET"
        asked = origin | {
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": "mcp-protocol-version",
        }
        allowed = program.http.request("OPTIONS", path, headers=asked)
        assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, "*"), path
    page = program.browser.get("/authorize", params=program.request(), headers=origin)
    assert "access-control-allow-origin" not in page.headers
