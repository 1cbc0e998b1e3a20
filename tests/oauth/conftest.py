"""A person, a browser and a program that signs in, against a real server."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import secrets
from dataclasses import dataclass, field
from random import randrange
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest

from tests.access.conftest import Api
from tests.cli.conftest import Shell
from tests.conftest import ALL_APPS, KEY, MCP_KEY, without_settings

CALLBACK = "http://127.0.0.1:33418/callback"
CLAUDE = "https://claude.ai/oauth/mcp-oauth-client-metadata"
CLAUDES_CALLBACK = "https://claude.ai/api/mcp/auth_callback"
HIDDEN = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')


@pytest.fixture(scope="session")
def served(start_server, tmp_path_factory):
    """A server whose agents sign in at its address on this machine."""
    settings = {"KB_MCP_COLLECTIONS": "1", "KB_MCP_CHATGPT": "1"}
    folder = tmp_path_factory.mktemp("oauth")
    with start_server(folder, KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY, KB_APPS=ALL_APPS, **settings) as running:
        yield running


@pytest.fixture
def admin(served):
    return Api(served.url, KEY)


@pytest.fixture
def make_key(admin):
    """Makes a key of its own: `make_key(right="write")` returns its name and the key."""

    def make(**fields):
        name = f"key-{secrets.token_hex(6)}"
        return name, admin.ok("POST", "keys", json={"name": name, "right": "write", **fields})["key"]

    return make


@pytest.fixture
def program(served):
    with Program(served.url) as made:
        yield made


@pytest.fixture
def tokens(program, make_key):
    """The tokens of a program that got access under a key of its own."""
    return program.sign_in(make_key()[1])


@dataclass
class Program:
    """A program that signs in over OAuth, and the browser of its person."""

    url: str
    client_id: str = ""
    callback: str = CALLBACK
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    def __enter__(self):
        address = {
            "X-Forwarded-For": f"10.{randrange(256)}.{randrange(256)}.{randrange(256)}"
        }  # wrong keys count by it
        self.http = httpx2.Client(base_url=self.url, headers=address)
        self.browser = httpx2.Client(base_url=self.url, headers=address)
        return self

    def __exit__(self, *_):
        self.http.close()
        self.browser.close()

    @property
    def resource(self):
        return f"{self.url}/mcp"

    def register(self, **fields):
        body = {"client_name": "A program", "redirect_uris": [self.callback]} | fields
        return self.http.post("/register", json=body)

    def request(self, **changes):
        """The parameters of a request for access; None leaves one out."""
        self.client_id = self.client_id or self.register().json()["client_id"]
        digest = hashlib.sha256(self.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.callback,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
            "state": "a/b+c==&d",
            "scope": "read write offline_access",
            "resource": self.resource,
        }
        return {name: value for name, value in (asked | changes).items() if value is not None}

    def authorize(self, **changes):
        """What the browser gets when the program opens it."""
        return self.browser.get("/authorize", params=self.request(**changes))

    def consent(self, key, *, changes=None, decision="allow", headers=None, **asked):
        """What the browser gets when the person decides on the page."""
        page = self.authorize(**asked)
        assert page.status_code == 200, page.text
        return self.decide(page, key, changes=changes, decision=decision, headers=headers)

    def decide(self, page, key, *, changes=None, decision="allow", headers=None):
        form = {html.unescape(name): html.unescape(value) for name, value in HIDDEN.findall(page.text)}
        form |= {"key": key, "decision": decision} | (changes or {})
        return self.browser.post("/authorize", data=form, headers={"Origin": self.url} | (headers or {}))

    def code(self, key, **asked):
        """A code, as the browser brings it to the program."""
        answer = self.consent(key, **asked)
        assert answer.status_code == 303, answer.text
        return answered(answer)["code"]

    def exchange(self, code, **changes):
        asked = {
            "grant_type": "authorization_code",
            "client_id": self.client_id,
            "code": code,
            "redirect_uri": self.callback,
            "code_verifier": self.verifier,
            "resource": self.resource,
        }
        return self.http.post("/token", data={k: v for k, v in (asked | changes).items() if v is not None})

    def refresh(self, token, **changes):
        asked = {
            "grant_type": "refresh_token",
            "client_id": self.client_id,
            "refresh_token": token,
            "resource": self.resource,
        }
        return self.http.post("/token", data={k: v for k, v in (asked | changes).items() if v is not None})

    def sign_in(self, key, **asked):
        answer = self.exchange(self.code(key, **asked))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def call(self, token, tool="kb_status", path="/mcp", **arguments):
        """The answer to a call of a tool."""
        headers = {"Accept": "application/json, text/event-stream"}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        return self.http.post(path, json=body, headers=headers)

    def is_let_in(self, token, path="/mcp"):
        return self.call(token, path=path).status_code == 200


def answered(response):
    """The parameters that a redirect brings to the program."""
    return dict(parse_qsl(urlsplit(response.headers["location"]).query, strict_parsing=True))


@pytest.fixture
def run_kb(served, tmp_path):
    """Runs a command with the engine's key: `run_kb("keys")` returns what it prints."""
    shell = Shell(
        tmp_path, without_settings() | {"KB_ENGINE_URL": served.url, "KB_API_KEY": KEY, "HOME": str(tmp_path)}
    )

    def run(*words):
        ended = shell(*words)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return run
