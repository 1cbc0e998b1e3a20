"""Engines that only answer, and workers that only work, over one database."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx2
import psycopg
import pytest

from tests.support.eventually import SECONDS, eventually
from tests.support.postgres import database_url

pytestmark = pytest.mark.postgres
KB_WORKER = ("kb_cli.main", "worker")
PATIENCE = 300
"""What is asked to wait so long ends with the job, or with the test."""

LONG = "The clerks of the counting house kept their ledgers in good order. " * 800
END_UNHEARD = "UPDATE kb.jobs SET status = 'done', document_id = 1, finished_at = now(), text = NULL"


@pytest.fixture
def url(tmp_path):
    return database_url(tmp_path)


@pytest.fixture
def start(start_server, tmp_path, url):
    """Starts processes over one database, each with a folder of its own: `start("kb_cli.main", "worker")`."""
    with ExitStack() as stack:

        def begin(*program, **environment):
            folder = tmp_path / f"process-{len(list(tmp_path.iterdir()))}"
            environment |= {"KB_DATABASE_URL": url, "KB_MAX_WAIT_SECONDS": str(PATIENCE)}
            options = {"program": program} if program else {}
            return stack.enter_context(start_server(folder, **options, **environment))

        yield begin


def api(server):
    return httpx2.Client(base_url=f"{server.url}/api/v1", timeout=PATIENCE)


def add(http, text, wait=0):
    answer = http.post("/jobs", json={"text": text}, params={"wait": wait})
    assert answer.is_success, answer.text
    return answer.json()


def job(http, answer):
    return http.get(f"/jobs/{answer['job_id']}").json()


def test_a_worker_does_the_jobs_of_an_engine_without_one_which_hears_of_the_end(start):
    with api(start(KB_WORKERS="0")) as http:
        waiting = http.post("/jobs", files={"file": ("first.txt", b"first")}).json()
        assert job(http, waiting)["status"] == "queued"
        start(*KB_WORKER)
        eventually("the worker did it", lambda: job(http, waiting)["status"], lambda status: status == "done")
        began = time.monotonic()
        second = http.post("/jobs", params={"wait": PATIENCE}, files={"file": ("second.txt", b"second")}).json()
        assert second["status"] == "done"
        assert time.monotonic() - began < PATIENCE / 2
        assert http.get("/documents").json()["documents"]


def test_an_end_whose_word_was_lost_is_noticed(start, url):
    with (
        api(start(KB_WORKERS="0")) as http,
        psycopg.connect(url, autocommit=True) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(add, http, "first", PATIENCE)
        eventually("it is accepted", lambda: other.execute(END_UNHEARD).rowcount)
        assert waiting.result(SECONDS)["status"] == "done"


def test_a_worker_reads_a_file_that_an_engine_without_one_received(start):
    with api(start(KB_WORKERS="0")) as http:
        accepted = http.post("/jobs", files={"file": ("a.txt", b"words of a lighthouse")}).json()
        start("kb_cli.main", "worker")
        done = eventually(
            "the file is read",
            lambda: http.get(f"/jobs/{accepted['job_id']}").json(),
            lambda job: job["status"] == "done",
        )
        assert http.get(f"/documents/{done['document_id']}/file").content == b"words of a lighthouse"


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_what_a_worker_leaves_behind_another_one_does(start, end):
    with api(start(KB_WORKERS="0")) as http:
        first = start(*KB_WORKER)
        accepted = [add(http, f"{number} {LONG}") for number in range(2)]
        eventually("it is at work", lambda: {job(http, each)["status"] for each in accepted} & {"running", "done"})
        first.process.send_signal(end)
        code = first.process.wait(SECONDS)
        assert code == (0 if end == signal.SIGTERM else -end)
        start(*KB_WORKER)
        for each in accepted:
            assert http.get(f"/jobs/{each['job_id']}", params={"wait": PATIENCE}).json()["status"] == "done"
        assert len(http.get("/documents").json()["documents"]) == len(accepted)


def test_a_worker_says_how_it_is_and_answers_nothing_else(start):
    server = start(*KB_WORKER)
    assert httpx2.get(f"{server.url}/healthz").text == "ok"
    assert "kb_jobs" in httpx2.get(f"{server.url}/metrics").text
    assert httpx2.get(f"{server.url}/api/v1/status").status_code == 404
