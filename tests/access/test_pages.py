"""Every page of the web interface requires a key, unless it is listed as open. A new page needs a guard."""

from __future__ import annotations

import re
from contextlib import ExitStack

import httpx2
import pytest

from kb.app import create_app
from kb.asgi.subapps import AppContext
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
    routes = create_pages(AppContext(environment, create_app(AppContext(environment)))).routes
    asked = 0
    for route in routes:
        for method in sorted((getattr(route, "methods", None) or {"GET"}) - {"HEAD"}):
            if route.path in OPEN:
                continue
            place = re.sub(r"{(number|other):id}", "1", re.sub(r"{id:id}", str(secret), route.path))
            answer = httpx2.request(method, f"{guarded.url}{place}")
            assert answer.status_code in (401, 403), f"{method} {place}: {answer.status_code}"
            assert "ledger" not in answer.text, place
            asked += 1
    assert asked > 30


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


def signed_in(url, key):
    """A browser that has signed in with a key, and the token of its forms."""
    browser = httpx2.Client(base_url=url, follow_redirects=False)
    for _ in range(2):  # the first visit gives the cookie that the form's token belongs to
        token = token_of(browser.get("/sign-in"))
    assert browser.post("/sign-in", data={"key": key.token, "token": token}).status_code in (302, 303)
    return browser, token_of(browser.get("/new"))


def token_of(page):
    return re.search(r'name="token" value="([^"]+)"', page.text)[1]


def test_no_form_changes_anything_for_a_key_that_only_reads_or_is_limited_to_a_tag(
    guarded, admin, reader, tagged, tmp_path, stack
):
    secret = admin.note("# Zanzibar\n\nthe zanzibar vault", tags=["zanzibar"])
    environment = {"KB_DATA_DIR": str(tmp_path), "KB_API_KEY": KEY}
    routes = create_pages(AppContext(environment, create_app(AppContext(environment)))).routes
    for key in (reader, tagged):
        browser, token = signed_in(guarded.url, key)
        stack.callback(browser.close)
        for route in routes:
            if "{id:id}" not in route.path or "jobs" in route.path or "changes" in route.path:  # ids of something else
                continue
            place = re.sub(r"{(number|other):id}", "1", re.sub(r"{id:id}", str(secret), route.path))
            for method in route.methods - {"HEAD"}:
                data = {"token": token, "text": "x", "version": "1", "add": "x"} if method == "POST" else None
                answer = browser.request(method, place, data=data)
                if key is tagged:
                    assert answer.status_code in (403, 404), f"{method} {place}: {answer.status_code}"
                    assert "vault" not in answer.text, place
                elif method == "POST":
                    assert 400 <= answer.status_code < 500, f"{method} {place}: {answer.status_code}"
    assert len(admin.ok("GET", f"documents/{secret}/history")["versions"]) == 1
    assert admin.ok("GET", f"documents/{secret}")["tags"] == ["zanzibar"]
