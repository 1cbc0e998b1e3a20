"""What comes from elsewhere: web pages, archives of notes, exported conversations."""

from __future__ import annotations

import json
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.unit.test_extract_exports import chatgpt, claude


@pytest.fixture
def site(tmp_path):
    """A web server of a folder; its address."""
    folder = tmp_path / "site"
    folder.mkdir()

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_web_page_goes_in_by_its_address_and_is_refreshed_in_its_place(kb, site, tag):
    folder, address = site
    page = f"{address}/{tag}/tides"
    (folder / tag).mkdir()
    (folder / tag / "tides").write_text(f"<html><title>Tides</title><p>High water of {tag} at six.</p></html>")
    [first] = kb.json("add", page, "--wait")
    document = kb.json("get", first["document_id"])
    assert (document["source_path"], document["title"], document["doc_type"]) == (page, "Tides", "html")
    (folder / tag / "tides").write_text(f"<html><title>Tides</title><p>High water of {tag} at seven.</p></html>")
    [again] = kb.json("add", page, "--wait")
    assert again["document_id"] == first["document_id"]
    assert "at seven" in kb("get", first["document_id"], "--text").stdout
    missing = kb("add", f"{address}/{tag}/none", page.replace("http://", "http://me:secret@"), "--wait")
    assert (missing.returncode, missing.stderr) == (1, f"kb: {address}/{tag}/none: the server answered 404\n")
    assert missing.stdout == "2 files: 1 there already, 1 failed\n"
    assert len(kb.json("list", "--under", f"{address}/{tag}")["documents"]) == 1


def test_an_archive_goes_in_as_the_files_in_it(kb, tmp_path, tag):
    inner = tmp_path / "Part-1.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("Home/Boat 1234.md", f"# Boat\n\nThe keel of {tag}.\n")
        archive.writestr("Home/picture.png", b"\x89PNG")
        archive.writestr("../../outside.md", f"Not outside {tag}.\n")
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.write(inner, "Part-1.zip")
        archive.writestr(".gitignore", "*.md\n")
    inner.unlink()
    added = kb("add", "export.zip", "--wait")
    assert (added.returncode, added.stdout) == (0, "2 files: 2 added, 1 passed over (1 .png)\n")
    held = {
        each["source_path"]: each["title"] for each in kb.json("list", "--under", f"{tmp_path}/export.zip")["documents"]
    }
    assert held == {f"{tmp_path}/export.zip/Home/Boat 1234.md": "Boat", f"{tmp_path}/export.zip/outside.md": "outside"}
    assert kb("add", "export.zip", "--wait").stdout.startswith("2 files: all up to date")
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    assert kb("add", "broken.zip").returncode == 2
    assert "--title is for a single file" in kb("add", "export.zip", "--title", "Boats").stderr


@pytest.mark.parametrize("make", [chatgpt, claude])
def test_conversations_are_found_by_what_was_said(kb, tmp_path, tag, make):
    export = [make(number, f"The answer of {tag} is number{number}x.") for number in range(5)]
    (tmp_path / "conversations.json").write_text(json.dumps(export))
    kb("add", "conversations.json", "--wait", "--tags", tag)
    kb("jobs", "--follow")
    [found, *_] = kb.json("search", f"{tag} number3x", "--tags", tag, "--fts-only")["results"]
    assert found["title"] in ("Boat 3: the keel", "Sail 3")
    assert found["date"]
    assert found["place"]["heading"][-1].startswith("Assistant, 20")
