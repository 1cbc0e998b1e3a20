"""The MCP SDK's own client signs in, against a gateway in a process of its own, with its tokens kept through restarts."""

from __future__ import annotations

import html
from contextlib import asynccontextmanager
from datetime import datetime
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from tests.access.conftest import Api
from tests.conftest import KEY, MCP_KEY, free_port
from tests.mcp.conftest import start_gateway  # noqa: F401 - a fixture
from tests.oauth.conftest import CALLBACK, HIDDEN, Program, answered


class Storage:
    """The tokens and the registration, as a client keeps them."""

    def __init__(self):
        self.tokens = self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class Person:
    """A person with a browser and a key."""

    def __init__(self, key):
        self.key = key
        self.answer = {}
        self.visits = 0

    async def visit(self, address):
        self.visits += 1
        async with httpx2.AsyncClient() as browser:
            page = await browser.get(address)
            assert page.status_code == 200, page.text
            form = {html.unescape(name): html.unescape(value) for name, value in HIDDEN.findall(page.text)}
            parts = urlsplit(address)
            target = f"{parts.scheme}://{parts.netloc}/authorize"
            decided = await browser.post(target, data=form | {"key": self.key, "decision": "allow"})
        self.answer = dict(parse_qsl(urlsplit(decided.headers["location"]).query))

    async def bring(self):
        return AuthorizationCodeResult(**{name: self.answer.get(name) for name in ("code", "state", "iss")})


@asynccontextmanager
async def signed_in(url, storage, person, document=None):
    metadata = OAuthClientMetadata(
        client_name="python", redirect_uris=[CALLBACK], token_endpoint_auth_method="none", scope="read write"
    )
    provider = OAuthClientProvider(url, metadata, storage, person.visit, person.bring, document)
    async with (
        httpx2.AsyncClient(auth=provider, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


@pytest.mark.parametrize("document", [None, "https://claude.ai/oauth/claude-code-client-metadata"])
async def test_the_python_client_registers_or_names_its_document_and_signs_in(served, make_key, document):
    storage, person = Storage(), Person(make_key()[1])
    async with signed_in(f"{served.url}/mcp", storage, person, document) as client:
        assert len((await client.list_tools()).tools) == 13
    assert person.visits == 1
    assert storage.tokens.refresh_token
    storage.tokens.access_token = "kb_expired"
    async with signed_in(f"{served.url}/mcp", storage, person, document) as client:
        await client.call_tool("kb_status", {})


async def test_a_token_works_at_every_gateway_of_an_engine_and_after_a_restart(served, make_key, start_gateway):  # noqa: F811
    issuer = f"http://127.0.0.1:{free_port()}"
    settings = {"KB_ENGINE_URL": served.url, "KB_API_KEY": KEY, "KB_MCP_API_KEY": MCP_KEY, "KB_PUBLIC_URL": issuer}
    with start_gateway(**settings) as first, start_gateway(**settings) as second, Program(first.url) as program:
        resource = f"{issuer}/mcp"
        tokens = program.exchange(
            answered(program.consent(make_key()[1], headers={"Origin": issuer}, resource=resource))["code"],
            resource=resource,
        ).json()
        with Program(second.url, program.client_id) as other:
            assert other.is_let_in(tokens["access_token"])
            renewed = other.refresh(tokens["refresh_token"], resource=resource).json()
            assert program.is_let_in(renewed["access_token"])
            assert not other.is_let_in(tokens["access_token"])
    with start_gateway(**settings) as again, Program(again.url, program.client_id) as program:
        assert program.is_let_in(renewed["access_token"])
        assert program.http.get("/.well-known/oauth-protected-resource/mcp").json()["resource"] == resource


async def test_tokens_survive_a_restart_of_the_engine_and_end_with_the_agents_key(start_server, tmp_path):
    port, settings = free_port(), {"KB_API_KEY": KEY, "KB_APPS": "api,mcp"}
    with (
        start_server(tmp_path, port=port, KB_MCP_API_KEY=MCP_KEY, **settings) as server,
        Program(server.url) as program,
    ):
        tokens = program.sign_in(MCP_KEY)
        assert program.is_let_in(tokens["access_token"])
    with start_server(tmp_path, port=port, KB_MCP_API_KEY=f"new,{MCP_KEY}", **settings), Program(server.url) as again:
        [grant] = Api(server.url, KEY).ok("GET", "grants")["grants"]
        made, used, until = (datetime.fromisoformat(grant[name]) for name in ("created_at", "used_at", "until"))
        assert made <= used < until
        assert again.is_let_in(tokens["access_token"])
    with start_server(tmp_path, port=port, KB_MCP_API_KEY="another-key", **settings), Program(server.url) as later:
        assert not later.is_let_in(tokens["access_token"])
        later.client_id = program.client_id
        assert later.refresh(tokens["refresh_token"]).status_code == 400


@pytest.mark.parametrize("settings", [{"KB_MCP_OAUTH": "0", "KB_MCP_API_KEY": MCP_KEY, "KB_API_KEY": KEY}, {}])
def test_without_oauth_or_without_a_key_its_addresses_are_unknown(start_server, tmp_path, settings):
    with (
        start_server(tmp_path, KB_APPS="api,mcp,web", **settings) as server,
        httpx2.Client(base_url=server.url) as http,
    ):
        for path in (
            *("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"),
            *("/.well-known/oauth-authorization-server", "/mcp/.well-known/openid-configuration", "/authorize"),
        ):
            answer = http.get(path)
            assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json"), path
        assert http.post("/register", json={}).status_code == 404
        refused = http.post("/mcp", json={})
        assert "resource_metadata" not in refused.headers.get("www-authenticate", "")


def test_the_first_key_turns_the_sign_in_on(start_server, tmp_path):
    with start_server(tmp_path, KB_APPS="api,mcp") as server, Program(server.url) as program:
        assert program.register().status_code == 404
        key = Api(server.url, None).ok("POST", "first-key")["key"]
        assert program.is_let_in(program.sign_in(key)["access_token"])


def test_without_its_engine_a_gateway_asks_programs_to_try_later(start_gateway):  # noqa: F811
    settings = {"KB_ENGINE_URL": f"http://127.0.0.1:{free_port()}", "KB_API_KEY": KEY, "KB_MCP_API_KEY": MCP_KEY}
    with (
        start_gateway(**settings, KB_PUBLIC_URL=f"http://127.0.0.1:{free_port()}") as gateway,
        Program(gateway.url) as program,
    ):
        program.request()
        for answer in (
            program.refresh("a.b"),
            program.exchange("a.b"),
            program.http.post("/revoke", data={"client_id": program.client_id, "token": "a.b"}),
        ):
            assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
