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
