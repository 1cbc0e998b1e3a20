"""The guide at `/help`."""

from __future__ import annotations

import re
import subprocess
import sys
from html import unescape
from urllib.parse import urljoin, urlsplit
from zipfile import ZipFile

import httpx2
import pytest

from kb_web import guide
from kb_web.guide_search import GuideSearch
from tests.conftest import ALL_APPS, KEY, ROOT

PAGE = {"accept": "text/html"}
IDS = re.compile(r' id="([^"]+)"')
LINK = re.compile(r'<(?:a href|img src)="([^"]+)"')


@pytest.fixture(scope="module")
def help_at(start_server, tmp_path_factory):
    """Return an answer of a server with a key, for a visitor who has none."""
    with (
        start_server(
            tmp_path_factory.mktemp("guide-locked"), KB_APPS=ALL_APPS, KB_API_KEY=KEY, KB_MCP_API_KEY=KEY
        ) as server,
        httpx2.Client(base_url=server.url, headers=PAGE) as http,
    ):
        yield http.get


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A guide of its own, next to a file that is not part of it."""
    (tmp_path / "secret.md").write_text("# secret")
    folder = tmp_path / "guide"
    (folder / "reference").mkdir(parents=True)
    (folder / "README.md").write_text("# Guide\n\n## Start\n\n- [One](one.md)\n- [All](reference/all.md)\n")
    (folder / "one.md").write_text("# One\n\nSee [All](reference/all.md#same-1).\n")
    (folder / "reference/all.md").write_text(
        "# All\n\n## Same\n\n## Same\n\n[One](../one.md), [code](../../src/a.py)\n"
    )
    monkeypatch.setattr(guide, "FOLDERS", (folder,))
    guide.files.cache_clear()
    yield folder
    guide.files.cache_clear()


@pytest.mark.slow
def test_every_link_and_picture_of_the_guide_is_answered_without_a_key(help_at):
    assert help_at("/help").headers["location"] == "./help/"
    open_pages, seen = ["/help/"], {}
    while open_pages:
        path = open_pages.pop()
        answer = help_at(path)
        assert answer.status_code == 200, path
        seen[path] = answer
        if answer.headers["content-type"].startswith("text/html"):
            assert "style=" not in answer.text, path
            for target in map(unescape, LINK.findall(answer.text)):
                found = urlsplit(urljoin(path, target))
                if not found.netloc and found.path.startswith("/help/") and found.path not in seen:
                    open_pages.append(found.path)
    pages = {path.removeprefix("/help/") for path in seen}
    written = {each.relative_to(ROOT / "docs").as_posix() for each in (ROOT / "docs").rglob("*.md")}
    assert pages >= {name.removesuffix(".md") for name in written} - {"README"}
    assert {path.rpartition(".")[2] for path in pages if "." in path} >= {"svg"}


@pytest.mark.slow
def test_an_installed_wheel_has_the_guide_and_the_licence(start_server, tmp_path):
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=ROOT, check=True)
    [wheel] = tmp_path.glob("*.whl")
    installed = tmp_path / "installed"
    with ZipFile(wheel) as archive:  # what an installer does with it
        archive.extractall(installed)
    assert {file.name for file in installed.glob("*.dist-info/licenses/*")} == {"LICENSE", "NOTICE"}
    (installed / "kb_web/guide/start.md").write_text("# The page in the wheel\n")
    with start_server(tmp_path / "data", KB_APPS="api,web", PYTHONPATH=str(installed)) as server:
        assert "kb documentation" in httpx2.get(f"{server.url}/help/").text
        assert "The page in the wheel" in httpx2.get(f"{server.url}/help/start").text


def test_a_page_may_load_nothing_from_elsewhere(help_at):
    answer = help_at("/help/start")
    assert answer.headers["content-security-policy"].startswith(
        "default-src 'none'; script-src 'self'; style-src 'self'"
    )
    assert "<h1 " in answer.text
    assert 'data-copy="before"' in answer.text
    assert "notest" not in answer.text


def test_a_visitor_without_a_key_searches_the_guide_by_words(help_at, tmp_path_factory):
    assert "<mark>" in help_at("/help/", params={"q": "what is kept of a deleted note"}).text
    assert not [*tmp_path_factory.getbasetemp().glob("guide-locked*/**/guide-*.npy")]


def test_a_link_to_a_part_leads_to_its_heading(folder):
    assert '<a href="reference/all#same-1">' in guide.page_named("one").html
    page = guide.page_named("reference/all")
    assert [section.anchor for section in page.sections] == ["all", "same", "same-1"]
    assert '<h2 id="same-1">' in page.html
    assert '<a href="../one">One</a>, <span>code</span>' in page.html


def test_no_heading_has_an_id_of_the_layout_or_its_script():
    folder = ROOT / "src/kb_web"
    names = ("templates/layout.html", "static/app.js", "static/palette.js", "static/many.js")
    layout, *scripts = ((folder / name).read_text() for name in names)
    script = "".join(scripts)
    used = {*re.findall(r' id="([\w-]+)"', layout), *re.findall(r'[("]#([\w-]+)|\bid: "([\w-]+)"', script)}
    used = {part for each in used for part in ([each] if isinstance(each, str) else each) if part}
    assert used <= guide.TAKEN
    assert '<h2 id="keys-section">' in guide.page_named("agents").html
    ids = {
        id
        for name in guide.files()
        if (page := guide.page_named(name.removesuffix(".md")))
        for id in IDS.findall(page.html)
    }
    assert not ids & guide.TAKEN


def test_a_changed_page_is_rendered_again(folder):
    assert guide.page_named("one").title == "One"
    (folder / "one.md").write_text("# Two\n")
    assert guide.page_named("one").title == "Two"


def test_a_page_that_an_upgrade_removes_is_missing_and_stops_no_search(folder):
    assert guide.page_named("one")
    (folder / "one.md").unlink()
    assert guide.page_named("one") is None
    assert [page.name for page, _, _ in GuideSearch(lambda: None, folder).search("same")] == ["reference/all"]


@pytest.mark.parametrize(
    "path",
    [
        *("..%2fsecret", "%2e%2e/secret", "reference/..%2f..%2fsecret", "/etc/passwd", "..%2f..%2fpyproject.toml"),
        *("%00", "x" * 300, "%ff", "one.md", "README.html", "nothing"),
    ],
)
def test_no_other_file_is_shown(help_at, path):
    answer = help_at(f"/help/{path}")
    assert answer.status_code == 404
    assert "root:" not in answer.text
    assert "<h1>" in answer.text  # a page of the web interface


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("KB_PARSE_SECONDS", "reference/settings#"),
        ("kbignore", "sync#"),
        ("rotate a key", "keys#"),
        ("restore a backup", "backup"),
        ("undo", "history#undo"),
    ],
)
def test_a_search_finds_the_page(help_at, query, page):
    text = help_at("/help/", params={"q": query}).text
    found = re.findall(r'<h2><a href="[./]*help/([^"]+)"', text)
    assert any(each.startswith(page) for each in found[:5]), found
    assert "<mark>" in text


def test_a_search_without_a_result_says_so_and_quotes_nothing_as_html(help_at):
    text = help_at("/help/", params={"q": "<b>xyzzy"}).text
    assert "No page contains these words." in text
    assert "<b>xyzzy" not in text


def test_without_its_pages_the_guide_answers_404(monkeypatch, tmp_path):
    monkeypatch.setattr(guide, "FOLDERS", (tmp_path,))
    guide.files.cache_clear()
    try:
        assert guide.page_named("README") is None
        assert GuideSearch(lambda: None, tmp_path).search("word") == []
    finally:
        guide.files.cache_clear()
