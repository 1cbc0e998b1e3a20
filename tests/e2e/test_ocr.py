"""Scans and photos of text are found by their words when Tesseract reads them."""

from __future__ import annotations

import json
import re
import shutil
import sys

import httpx2
import pytest

from tests.conftest import without_settings
from tests.support.eventually import eventually
from tests.support.fork_server import run
from tests.support.pdf import pdf
from tests.support.scans import bound, photo, scan

pytestmark = [
    pytest.mark.requirement("E-10"),
    pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed"),
]
WORDS_OF_PAGE = 90
WORDS_ASKED_FOR = 150


@pytest.fixture(params=[4, pytest.param(20, marks=pytest.mark.long)])
def texts(request, test_data):
    """Texts of real English."""
    lines = (test_data / "cranfield" / "corpus.jsonl").read_text().splitlines()
    found = [json.loads(line)["text"].split() for line in lines[:200]]
    return [" ".join(words[:WORDS_OF_PAGE]) for words in found if len(words) > WORDS_OF_PAGE][: request.param]


@pytest.fixture
def folder(texts, tmp_path):
    """The texts as they are, and half of them as photos, half as scans."""
    folder = tmp_path / "papers"
    folder.mkdir()
    for kind in ("reference", "pictures"):
        (folder / kind).mkdir()
    for number, text in enumerate(texts):
        (folder / "reference" / f"{number}.txt").write_text(text)
        is_photo = number % 2
        picture = photo(text, number) if is_photo else scan(text, seed=number)
        (folder / "pictures" / f"{number}.{'jpg' if is_photo else 'pdf'}").write_bytes(picture)
    return folder


def kb(server, *arguments):
    command = [sys.executable, "-m", "kb_cli.main", *map(str, arguments)]
    environment = without_settings() | {"KB_ENGINE_URL": server.url}
    return run(command, env=environment)


@pytest.mark.slow
def test_words_of_scans_and_photos_are_found_where_an_extractor_reads_them(start_server, folder, texts, tmp_path):
    with start_server(tmp_path / "data", KB_APPS="api") as server:
        without = kb(server, "sync", folder)
    half = len(texts) // 2
    assert f"kb doesn't read .jpg files: {half}" in without.stdout
    assert without.stderr.count("(a scan); OCR is not done") == half
    with start_server(tmp_path / "data", KB_APPS="api", KB_OCR="1") as server:
        done = kb(server, "sync", folder)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert f"{len(texts)} added" in done.stdout
        recall = recall_of(server, texts)
        assert "up to date" in kb(server, "sync", folder).stdout
    print(f"words found: {recall:.1%}")
    assert recall >= 0.95


def recall_of(server, texts):
    """Return which part of the hits for words in the texts as they are are hits in their pictures, too."""
    words = sorted({word for text in texts for word in re.findall(r"\b[a-z]{4,}\b", text)})
    expected = found = 0
    for word in words[:: max(1, len(words) // WORDS_ASKED_FOR)]:
        reference, pictures = (pages_with(server, word, kind) for kind in ("reference", "pictures"))
        expected += len(reference)
        found += len(reference & pictures)
    return found / expected


def pages_with(server, word, kind):
    query = {"query": word, "top": 100, "fts_only": True}
    answer = httpx2.post(f"{server.url}/api/v1/search", json=query).json()
    paths = (each["source_path"] for hit in answer["results"] for each in (hit, *hit["copies"]))
    return {path.rpartition("/")[2].partition(".")[0] for path in paths if f"/{kind}/" in path}


@pytest.mark.slow
def test_pages_that_were_passed_over_are_found_with_their_number_once_there_is_ocr(start_server, tmp_path):
    file = tmp_path / "minutes.pdf"
    file.write_bytes(bound(pdf("Minutes of the harbour board"), scan("The crane is to be repainted in October")))
    with start_server(tmp_path / "data", KB_APPS="api") as server:
        assert kb(server, "add", file, "--wait").returncode == 0
        [hit] = hits(server, "harbour board")
        assert "[Page 2 is a picture: OCR is not done.]" in hit["text"]
        assert hits(server, "crane repainted") == []
        before = json.loads(kb(server, "get", "1", "--json").stdout)
    with start_server(tmp_path / "data", KB_APPS="api", KB_OCR="1") as server:
        [hit] = eventually("it is read again", lambda: hits(server, "crane repainted"), bool)
        assert (hit["document_id"], hit["place"]["page"]) == (1, 2)
        after = json.loads(kb(server, "get", "1", "--json").stdout)
        assert [after[name] for name in ("created_at", "updated_at")] == [
            before[name] for name in ("created_at", "updated_at")
        ]
        assert "is a picture" not in kb(server, "get", "1", "--text").stdout
        jobs = httpx2.get(f"{server.url}/api/v1/jobs").json()["jobs"]
    with start_server(tmp_path / "data", KB_APPS="api", KB_OCR="1") as server:
        assert httpx2.get(f"{server.url}/api/v1/jobs").json()["jobs"] == jobs


def hits(server, query):
    answer = httpx2.post(f"{server.url}/api/v1/search", json={"query": query, "fts_only": True}).json()
    return answer["results"]
