"""The guide at `/help`."""

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kb.web import guide

PAGE = b"<html><script>theme()</script><script src=a.js></script><h1>The guide</h1></html>"


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    monkeypatch.setattr(guide, "SITE", folder)
    (tmp_path / "secret.html").write_text("secret")
    return folder


@pytest.fixture
def client(site):
    with TestClient(Starlette(routes=guide.routes())) as client:
        yield client


def test_the_guide_is_shown_and_may_load_nothing_from_elsewhere(site, client):
    (site / "reference").mkdir(parents=True)
    for name in ("README.html", "reference/commands.html", "a.js"):
        (site / name).write_bytes(PAGE)
    for path in ("/help", "/help/", "/help/README.html", "/help/reference/commands.html"):
        answer = client.get(path)
        assert "The guide" in answer.text
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self' 'sha256-")
        assert "http" not in policy
    assert client.get("/help/a.js").headers["content-type"].startswith("text/javascript")
    assert client.get("/help/nothing.html").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        *("/help/..%2fsecret.html", "/help/%2e%2e/secret.html", "/help/reference/..%2f..%2fsecret.html"),
        *("/help/%00", f"/help/{'x' * 300}", "/help/%ff"),
    ],
)
def test_nothing_beside_the_guide_is_shown(site, client, path):
    (site / "reference").mkdir(parents=True)
    (site / "README.html").write_bytes(PAGE)
    answer = client.get(path)
    assert answer.status_code == 404
    assert "secret" not in answer.text.replace("secret.html", "")


def test_where_it_was_not_built_a_sentence_says_what_to_do(client):
    answer = client.get("/help/")
    assert answer.status_code == 404
    assert "make docs" in answer.text
    assert client.get("/help/_static/a.css").status_code == 404


def test_a_server_shows_it_or_says_so_to_anyone(server):
    answer = httpx2.get(f"{server.url}/help/")
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) in [
        (200, "text/html"),
        (404, "text/plain"),
    ]
