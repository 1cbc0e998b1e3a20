"""The help finds pages by meaning, with the engine's model, and apart from the user's documents."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kb_web import guide
from kb_web.guide_search import GuideSearch

QUESTIONS = {
    "my scanned papers are not found": "scans troubleshooting",
    "can it read handwriting or photographed receipts": "scans",
    "keep a folder up to date automatically": "sync",
    "use it together with obsidian": "sync import comparison",
    "I deleted something by mistake": "history",
    "bring back an older version of a note": "history",
    "undo what the agent did": "history",
    "make a copy of everything in case the disk dies": "backup",
    "move to a new laptop": "backup containers moving",
    "what does it cost in memory and disk space": "performance install",
    "is my data sent to the internet": "privacy",
    "let claude use it": "first-memory agents",
    "connect chatgpt": "sign-in phone",
    "give someone read only access": "keys",
    "reach it from my phone": "phone",
    "search only in emails": "query find",
    "find things from last month": "query",
    "exact phrase instead of similar": "query",
    "why is this result shown": "web find",
    "search in german and french": "query models",
    "change the language model": "models",
    "tag many documents at once": "web",
    "get rid of duplicates": "find web",
    "keyboard shortcuts": "web",
    "import my evernote notes": "import",
    "leave kb and take my files with me": "export",
    "start it when the computer starts": "start systemd",
    "update to the newest version": "upgrade",
    "remove the program completely": "install",
    "run in docker": "containers",
    "which file types can it read": "file-types",
    "it says engine not running": "troubleshooting",
    "a file could not be read": "troubleshooting",
    "save a web page": "import web",
    "use postgres instead of sqlite": "postgresql",
    "how good is the search compared with others": "quality comparison",
    "how do I put my PDFs into it": "start import",
    "forgot the password": "keys sign-in",
    "dark mode": "web",
    "write a script that adds notes": "scripts api reference/commands",
}
"""What newcomers ask, with the pages that answer."""


@pytest.fixture(scope="module")
def made(embedder, tmp_path_factory):
    """The search of the guide, with its vectors."""
    search = GuideSearch(lambda: embedder, tmp_path_factory.mktemp("guide"))
    search.prepare().join()
    return search


@pytest.mark.slow
def test_a_newcomer_finds_the_page_with_one_search(made):
    found = {query: [page.name for page, _, _ in made.search(query)[:3]] for query in QUESTIONS}
    missed = {query: names for query, names in found.items() if not {*names} & {*QUESTIONS[query].split()}}
    print("missed:", missed)
    assert len(missed) <= 4, missed


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """A guide of three pages."""
    folder = tmp_path / "guide"
    folder.mkdir()
    for name, text in [
        ("README", "# Guide\n"),
        ("bin", "# The bin\n\nDeleted documents stay there for a month. Choose *Restore*.\n"),
        ("phone", "# Telephones\n\nOpen the address of your computer in the browser of the telephone.\n"),
        ("keys", "# Keys\n\nA key lets a program read. KB_API_KEY names it.\n"),
    ]:
        (folder / f"{name}.md").write_text(text)
    monkeypatch.setattr(guide, "FOLDERS", (folder,))
    guide.files.cache_clear()
    yield folder
    guide.files.cache_clear()


def names(search, query):
    return [page.name for page, _, _ in search.search(query)]


def test_a_page_is_found_without_any_of_its_words_once_there_are_vectors(pages, embedder, tmp_path):
    search = GuideSearch(lambda: None, tmp_path)
    assert names(search, "undelete something lost") == []
    search = GuideSearch(lambda: embedder, tmp_path)
    search.prepare().join()
    assert names(search, "undelete something lost")[0] == "bin"
    assert names(search, "use my mobile")[0] == "phone"
    assert names(search, "KB_API_KEY")[0] == "keys"


def test_a_search_by_words_does_not_use_the_model(pages, tmp_path):
    search = GuideSearch(lambda: pytest.fail("used"), tmp_path)
    assert [page.name for page, *_ in search.search("deleted documents", by_meaning=False)] == ["bin"]


def test_the_vectors_are_made_once_for_a_model_and_the_guide_of_a_version(pages, embedder, tmp_path):
    calls = []

    def model(digest):
        def embed_passages(texts, *, alone):
            calls.append(len(texts))
            return embedder.embed_passages(texts, alone=alone)

        spec = SimpleNamespace(digest=digest)
        return SimpleNamespace(spec=spec, embed_passages=embed_passages, embed_queries=embedder.embed_queries)

    def ready(digest):
        made = model(digest)
        search = GuideSearch(lambda: made, tmp_path)
        search.prepare().join()
        assert search.prepare() is None
        return search

    ready("one")
    ready("one")
    assert calls == [3]
    [file] = tmp_path.glob("guide-*.npy")
    for damage in (b"damaged", b""):
        file.write_bytes(damage)
        assert names(ready("one"), "use my mobile")[0] == "phone"
    ready("two")
    (pages / "phone.md").unlink()
    guide.files.cache_clear()
    assert "phone" not in names(ready("two"), "use my mobile")
    assert calls == [3, 3, 3, 3, 2]
    assert len([*tmp_path.glob("guide-*.npy")]) == 1
