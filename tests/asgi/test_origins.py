"""The refusal of pages of other sites names a remedy only if it helps."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from kb.asgi.hosts import OriginMiddleware


@pytest.fixture
def client():
    app = Starlette(routes=[Route("/", lambda _: PlainTextResponse("answer"))])
    with TestClient(OriginMiddleware(app, ["allowed.example"])) as client:
        yield client


@pytest.mark.parametrize(
    ("headers", "is_helped"),
    [
        ({"origin": "https://other.example"}, True),
        ({"origin": "null"}, False),
        ({"origin": "chrome-extension://abc"}, False),
        ({"sec-fetch-mode": "no-cors", "sec-fetch-site": "cross-site"}, False),
    ],
)
def test_the_setting_is_named_only_if_it_can_allow_the_page(client, headers, is_helped):
    refused = client.get("/", headers=headers)
    assert refused.status_code == 403
    assert ("KB_ALLOWED_HOSTS" in refused.json()["detail"]) == is_helped
    assert client.get("/", headers={"origin": "https://allowed.example"}).text == "answer"


@pytest.mark.parametrize(
    ("origin", "host"), [("https://kb.example:8348", "kb.example"), ("http://localhost:5173", "localhost:8000")]
)
def test_a_lost_port_of_a_proxy_is_named_as_the_cause(client, origin, host):
    said = client.get("/", headers={"origin": origin, "host": host}).json()["detail"]
    assert origin in said
    assert host in said
    assert "$http_host" in said


def test_a_browser_gets_a_page_and_a_program_a_problem(client):
    headers = {"origin": "https://other.example"}
    page = client.get("/", headers=headers | {"accept": "text/html,*/*"})
    assert page.headers["content-type"].startswith("text/html")
    assert "<h1>Forbidden</h1>" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert client.get("/", headers=headers).headers["content-type"] == "application/problem+json"


def test_an_origin_is_shown_as_text(client):
    headers = {"origin": "https://testserver:1/<b>", "accept": "text/html"}
    assert "<b>" not in client.get("/", headers=headers).text
