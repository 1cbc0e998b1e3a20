"""Real files go in from a shell, and a sentence of each is found again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import httpx2
import pytest

from tests.conftest import KEY, without_settings
from tests.support.eventually import eventually
from tests.support.fork_server import run
from tests.support.pdf import pdf
from tests.support.stores import Database

SENTENCES = {
    "RECEIPT-2024-TXN-98765_retail_purchase.pdf": "Wireless Noise-Cancelling Headphones - Premium Black",
    "REPAIR-2022-INV-001_multipage.pdf": "Suspension damages may be present, but can not be determined until an alignment",
    "SPARSE-2024-INV-1234_borderless_table.pdf": "The primary variance driver is SKU-4563",
    "equations.docx": "The angle is",
    "masterformat_partial_numbering.pdf": "solicit submissions from qualified Construction Managers",
    "movie-theater-booking-2024.pdf": "Customer Name: Universal Studios Distribution",
    "rlink.docx": "Testing Linked Images",
    "test.docx": "AutoGen agents are customizable, conversable, and can operate in various modes",
    "test.epub": "This is a test paragraph with some formatting",
    "test.json": "5b64c88c-b3c3-4510-bcb8-da0b200602d8",
    "test.pdf": "an intuitive approach to scale up the power of agents is to use multiple agents that cooperate",
    "test.pptx": "This is a nested shape with content in 2 shapes",
    "test.xlsx": "6ff4173b-42a5-4784-9b19-f49caff4d93d",
    "test_blog.html": "Code execution is now by default inside docker container",
    "test_mskanji.csv": "佐藤太郎,30,東京",
    "test_outlook_msg.msg": "This is the body of the test email message",
    "test_rss.xml": "Anyone can easily set up Actions right in their Microsoft 365 app",
    "test_notebook.ipynb": "Code Cell Below",
    "test_serp.html": "develop and sell BASIC interpreters for the Altair 8800. It rose to dominate",
    "test_wikipedia.html": "Microsoft Digital Crimes Unit Microsoft Press Microsoft Gaming",
    "test_with_comment.docx": "AutoGen serves as a generic framework for building diverse applications",
}
"""Picked by hand: for each file something that a person reads there."""

REASONS = {
    "MEDRPT-2024-PAT-3847_medical_report_scan.pdf": "its 3 pages have only images (a scan)",
}


@pytest.fixture(scope="module")
def kb(start_server, tmp_path_factory):
    with start_server(tmp_path_factory.mktemp("files"), KB_APPS="api", KB_API_KEY=KEY) as server:
        environment = without_settings() | {"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY}

        yield lambda *arguments: run([sys.executable, "-m", "kb_cli.main", *map(str, arguments)], env=environment)


@pytest.fixture(scope="module")
def added(kb, test_data):
    return kb("add", test_data / "files", "--wait")


@pytest.mark.slow
@pytest.mark.requirement("E-10")
@pytest.mark.requirement("L-2")
def test_each_file_is_searchable_or_failed_with_its_own_reason(kb, added):
    assert added.returncode == 1, added.stderr
    jobs = {job["filename"]: job for job in json.loads(kb("jobs", "-n", 100, "--json").stdout)["jobs"]}
    assert {name for name, job in jobs.items() if job["status"] == "done"} == {*SENTENCES, "SOURCE.md"}
    for name, reason in REASONS.items():
        assert jobs[name]["status"] == "failed"
        assert reason in jobs[name]["error"]
        assert reason in added.stderr


@pytest.mark.slow
@pytest.mark.requirement("E-1")
@pytest.mark.parametrize(("name", "sentence"), SENTENCES.items(), ids=SENTENCES)
def test_a_sentence_of_each_file_is_among_the_first_three_with_its_place(kb, added, name, sentence):
    found = json.loads(kb("search", sentence, "-n", 3, "--json").stdout)["results"]
    if any(copy["source_path"].endswith(f"/{name}") for result in found for copy in result["copies"]):
        return  # another file holds the same passage
    places = [result["place"] for result in found if result["source_path"].endswith(f"/{name}")]
    assert places, [(result["source_path"], result["score"]) for result in found]
    if name.endswith(".pdf"):
        assert places[0]["page"] >= 1
        assert f"page {places[0]['page']} /" in kb("search", sentence, "-n", 3).stdout
    elif places[0]["heading"]:
        assert places[0]["heading"][-1] in kb("search", sentence, "-n", 3).stdout


@pytest.mark.slow
def test_questions_of_strangers_find_their_files_and_passages(kb, added):
    outcomes = json.loads(kb("eval", Path(__file__).with_name("questions.yaml"), "--json").stdout)["both"]
    places = [outcome["place"] or len(outcomes) for outcome in outcomes]
    assert len(places) == 60
    assert sum(place == 1 for place in places) >= 51
    assert sum(place <= 3 for place in places) >= 57
    assert sum(outcome["has_passage"] for outcome in outcomes) >= 51


def documents(server):
    answer = httpx2.get(f"{server.url}/api/v1/documents").json()
    return {each["source_path"]: each for each in answer["documents"]}


def settled(server, path, what, wanted):
    return eventually(what, lambda: documents(server).get(path.as_posix()), lambda found: found and wanted(found))


@pytest.mark.slow
@pytest.mark.requirement("R-3")
def test_what_is_put_into_the_inbox_goes_in_once_and_stays(start_server, tmp_path):
    inbox = tmp_path / "inbox"
    (inbox / "scans").mkdir(parents=True)
    (inbox / ".hidden.txt").write_text("hidden")
    (inbox / "empty.txt").touch()
    (inbox / "link.txt").symlink_to("/etc/hostname")
    note = inbox / "scans" / "note.txt"
    note.write_text("The anchor is in the shed.")
    with start_server(tmp_path / "data", KB_APPS="api", KB_INBOX_DIR=str(inbox)) as server:
        first = settled(server, note, "it went in", lambda _: True)
        note.write_text("The anchor is in the cellar.")
        changed = settled(server, note, "it was replaced", lambda found: found["content_hash"] != first["content_hash"])
        assert changed["id"] == first["id"]
        assert list(documents(server)) == [note.as_posix()]
        httpx2.delete(f"{server.url}/api/v1/documents/{first['id']}").raise_for_status()
    late = inbox / "late.txt"
    late.write_text("Ropes are in the boat.")
    with start_server(tmp_path / "data", KB_APPS="api", KB_INBOX_DIR=str(inbox)) as server:
        settled(server, late, "what came meanwhile went in", lambda _: True)
        assert list(documents(server)) == [late.as_posix()]
    assert note.read_text() == "The anchor is in the cellar."


def test_an_inbox_that_is_not_there_stops_the_start(start_server, tmp_path):
    with pytest.raises(Exception, match=r"KB_INBOX_DIR: the folder .* does not exist"), start_server(tmp_path / "data", KB_APPS="api", KB_INBOX_DIR=str(tmp_path / "nowhere")):  # fmt: skip
        pass


SMALL = 500
PAGES = 800
TEXT = "On day {0} the clerks of the counting house kept their ledgers in good order and lit the lamp at six. " * 4


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_small_files_are_done_before_one_of_800_pages_that_was_there_first(start_server, tmp_path):
    with start_server(tmp_path, KB_APPS="api") as server, httpx2.Client(base_url=f"{server.url}/api/v1") as http:

        def add(name, content):
            http.post("/jobs", files={"file": (name, content)}).raise_for_status()

        def done():
            queue = http.get("/status").json()["queue"]
            assert queue["failed"] == 0
            return queue["done"]

        add("large.pdf", pdf(*(TEXT.format(page) for page in range(PAGES))))
        for number in range(SMALL):
            add(f"{number}.txt", f"The lamp number {number} stands in the hall beside the stairs.".encode())
        eventually("the small ones are done", done, lambda count: count >= SMALL)
        eventually("all are done", done, lambda count: count == SMALL + 1)
    written = [kind for (kind,) in Database(tmp_path).execute("SELECT doc_type FROM documents ORDER BY id")]
    assert len(written) == SMALL + 1
    assert written.index("pdf") == SMALL
