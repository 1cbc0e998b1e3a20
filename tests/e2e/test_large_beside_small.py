"""A large file does not hold up small ones."""

from __future__ import annotations

import httpx2
import pytest

from tests.support.eventually import eventually
from tests.support.pdf import pdf
from tests.support.stores import Database

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
