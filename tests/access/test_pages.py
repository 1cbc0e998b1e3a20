"""Every page there is asks for a key, or is known to be open: whoever adds one must guard it."""

from __future__ import annotations

import re

import httpx2

from kb.app import create_app
from kb.asgi.subapps import Context
from kb.web.app import create_app as create_pages
from tests.conftest import KEY

OPEN = {
    "/sign-in",
    "/sign-out",
    "/open",
    "/manifest.webmanifest",
    "/opensearch.xml",
    "/static",
    "/help",
    "/help/{path:path}",
}
"""What is the same for everybody, and ways in and out."""


def test_every_page_is_shut_to_strangers(guarded, admin, tmp_path):
    secret = admin.note("# Zanzibar\n\nthe zanzibar ledger", tags=["zanzibar"])
    environment = {"KB_DATA_DIR": str(tmp_path), "KB_API_KEY": KEY}
    routes = create_pages(Context(environment, create_app(Context(environment)))).routes
    asked = 0
    for route in routes:
        for method in sorted((getattr(route, "methods", None) or {"GET"}) - {"HEAD"}):
            if route.path in OPEN:
                continue
            place = re.sub(r"{number:id}", "1", re.sub(r"{id:id}", str(secret), route.path))
            answer = httpx2.request(method, f"{guarded.url}{place}", timeout=60)
            assert answer.status_code in (401, 403), f"{method} {place}: {answer.status_code}"
            assert "ledger" not in answer.text, place
            asked += 1
    assert asked > 30
