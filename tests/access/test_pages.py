"""Every page of the web interface requires a key, unless it is listed as open. A new page needs a guard."""

from __future__ import annotations

import re
from contextlib import ExitStack

import httpx2
import pytest

from kb.app import create_app
from kb.asgi.subapps import AppContext
from kb_web.app import create_app as create_pages
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
def signed_in():
    """A function that returns a browser that has signed in with a key, and the token of its forms."""
    with ExitStack() as stack:

        def sign_in(url, key):
            browser = stack.enter_context(httpx2.Client(base_url=url, follow_redirects=False))
            for _ in range(2):  # the first visit gives the cookie that the form's token belongs to
                token = token_of(browser.get("/sign-in"))
            form = {"key": key.token, "token": token}
            assert browser.post("/sign-in", data=form).status_code in (302, 303)
            return browser, token_of(browser.get("/documents"))

        yield sign_in


def token_of(page):
    return re.search(r'name="token" value="([^"]+)"', page.text)[1]


def test_no_form_changes_anything_for_a_key_that_only_reads_or_is_limited_to_a_tag(
    guarded, admin, reader, tagged, tmp_path, signed_in
):
    secret = admin.note("# Zanzibar\n\nthe zanzibar vault", tags=["zanzibar"])
    environment = {"KB_DATA_DIR": str(tmp_path), "KB_API_KEY": KEY}
    routes = create_pages(AppContext(environment, create_app(AppContext(environment)))).routes
    for key in (reader, tagged):
        browser, token = signed_in(guarded.url, key)
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


PLACES = (
    *("", "?q=quay", "documents", "overview", "bin", "jobs", "changes", "duplicates?kind=near", "tags"),
    *("tags?edit=quay", "folders", "settings", "connect", "map"),
)
FORMS_OF_READERS = {"sign-out", "settings/theme"}
PLACES_OF_WRITERS = re.compile(r"(add|new|changes/\d+|d/\d+/edit|backups|doctor|keys|tags\?edit=.*)$")


@pytest.fixture
def quay(admin):
    """A note, the like of it, a deleted note, and an operation that can be undone."""
    note, twin, gone = (admin.note(f"# Quay {name}\n\nthe quay ledger", tags=["quay"]) for name in ("A", "B", "C"))
    admin.ok("PATCH", f"documents/{note}/tags", json={"add": ["harbour"]})
    admin.ok("DELETE", f"documents/{gone}")
    [operation, *_] = admin.ok("GET", "operations")["operations"]
    yield f"d/{note}", f"d/{twin}", f"d/{gone}", f"changes/{operation['number']}"
    for each in (note, twin):
        admin.ok("DELETE", f"documents/{each}")


def test_a_reader_sees_no_form_and_no_link_that_only_other_keys_may_use(guarded, quay, reader, writer, signed_in):
    note, twin, gone, operation = quay
    places = [*PLACES, note, f"{note}/history", f"{note}/history/1", f"{note}?show=chunks", gone]
    places += [f"{note}/compare/{twin.removeprefix('d/')}"]
    seen = {}
    for key in (reader, writer):
        browser, _ = signed_in(guarded.url, key)
        forms, links = seen.setdefault(key.token, (set(), set()))
        for place in places:
            page = browser.get(f"/{place}")
            assert page.status_code in (200, 410), place
            forms |= {
                each.lstrip("./") for each in re.findall(r'<form[^>]*method="post"[^>]*action="([^"]*)"', page.text)
            }
            links |= {each.lstrip("./") for each in re.findall(r'href="([^"]*)"', page.text)}
    forms, links = seen[reader.token]
    assert forms == FORMS_OF_READERS
    assert [each for each in links if PLACES_OF_WRITERS.match(each)] == []
    forms, links = seen[writer.token]
    assert {"many", f"{note}/tags", f"{note}/delete", f"{gone.replace('d/', 'bin/')}/restore", "tags"} <= forms
    assert {"add", "new", f"{note}/edit", "tags?edit=quay", operation} <= links


def test_a_reader_is_refused_before_the_form_is_filled_in(guarded, quay, reader, signed_in):
    browser, _ = signed_in(guarded.url, reader)
    for place in ("add", "new", f"{quay[0]}/edit"):
        page = browser.get(f"/{place}", headers={"Accept": "text/html"})
        assert page.status_code == 403
        assert "This key may only read. To change documents, sign in with another key." in page.text


def test_a_reader_who_deletes_nothing_is_told_of_no_links(guarded, admin, reader, signed_in):
    note = admin.note("# Windlass\n\nthe windlass")
    linking = admin.note("# Of the windlass\n\n[[Windlass]]")
    browser, token = signed_in(guarded.url, reader)
    assert browser.post("/many", data={"token": token, "act": "delete", "id": str(note)}).status_code == 303
    told = re.search(r'class="toast notice".*?</span>', browser.get("/documents").text)[0]
    assert "Deleted 0 documents." in told
    assert "links" not in told
    for each in (note, linking):
        admin.ok("DELETE", f"documents/{each}")
