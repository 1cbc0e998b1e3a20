from __future__ import annotations

import json
import re
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest

from tests.support.eventually import eventually
from tests.support.rare_cases import mostly_rare


@pytest.mark.requirement("L-2")
def test_jobs_lists_the_newest_first(kb, tag):
    receipt = kb.json("addnote", tag, "--title", f"title {tag}")
    assert kb.json("jobs", "-n", "1")["jobs"][0]["id"] == receipt["job_id"]
    assert f"title {tag}" in kb("jobs", "-n", "1").stdout


@pytest.mark.requirement("L-2")
def test_a_failed_job_says_why(kb, folder):
    (folder / "empty.txt").touch()
    [each] = json.loads(kb("add", "papers/empty.txt", "--wait", "--json").stdout)
    job = kb.json("jobs", each["job"]["id"])
    assert job["status"] == "failed"
    assert f"error        {job['error']}\n" in kb("jobs", job["id"]).stdout
    assert job["id"] in [listed["id"] for listed in kb.json("jobs", "--status", "failed")["jobs"]]


def test_a_job_that_does_not_exist_is_not_found(kb):
    assert kb("jobs", 10**12).returncode == 5


def test_an_unknown_state_is_refused_with_the_states_there_are(kb):
    ended = kb("jobs", "--status", "lost")
    assert ended.returncode == 2
    assert "queued, running, done, failed" in ended.stderr


@pytest.mark.requirement("L-2")
def test_status_tells_what_the_engine_is(kb):
    answer = kb.json("status")
    shown = kb("status").stdout
    assert re.search(rf"(?m)^engine +{answer['version']} at http://", shown)
    assert "all-MiniLM-L6-v2, 384 dimensions" in shown


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines processes")
def test_status_tells_what_is_impossible_where_files_are_read(kb):
    confined = eventually("the parser has started", lambda: kb.json("status")["parser"]["confined"])
    assert re.search(rf"(?m)^readers +no {', no '.join(confined)}", kb("status").stdout)


@contextmanager
def engine_of(version):
    """An engine of another version: no such engine exists to be run, so this one only knows what it is."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(200, {"version": version})

        def do_PATCH(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.answer(404, {"detail": "Not Found"})

        def answer(self, status, body):
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {"KB_ENGINE_URL": f"http://127.0.0.1:{server.server_port}"}
        server.shutdown()


@pytest.mark.requirement("S-9")
@pytest.mark.parametrize(
    ("version", "verdict"),
    mostly_rare(
        [("2.9.1", "needs 3.0.0 or later. Upgrade the engine"), ("4.0.0", "Upgrade kb"), ("3.7.0", ""), ("3.0.0", "")],
        2,
    ),
)
def test_status_says_when_the_engine_is_of_a_version_it_cannot_talk_to(outside, version, verdict):
    with engine_of(version) as env:
        ended = outside("status", env=env)
    assert version in ended.stdout
    assert verdict in ended.stderr
    assert bool(ended.stderr) == bool(verdict)


@pytest.mark.requirement("L-1")
@pytest.mark.requirement("S-9")
def test_updatenote_says_when_the_engine_is_too_old_for_it(outside):
    with engine_of("2.4.0") as env:
        ended = outside("updatenote", 1, "text", env=env)
    assert ended.returncode == 6
    assert ended.stderr == "kb: The engine has version 2.4.0, but kb needs 3.0.0 or later. Upgrade the engine.\n"


@pytest.mark.requirement("S-9")
def test_the_engine_refuses_a_client_that_is_too_old_and_says_what_to_upgrade(server):
    for agent, status in (("kb/2.9.1", 426), ("kb/3.0.0", 401), ("kb/4.1", 401), ("curl/8", 401)):
        answer = httpx2.get(f"{server.url}/api/v1/tags", headers={"User-Agent": agent})
        assert answer.status_code == status
        assert answer.headers["Kb-Version"] == "3.0.0"
    old = httpx2.get(f"{server.url}/api/v1/tags", headers={"User-Agent": "kb/2.9.1"}).json()
    assert old["type"] == "urn:kb:problem:wrong-version"
    assert old["detail"] == "This is kb 2.9.1, but the engine 3.0.0 needs 3.0.0 or later. Upgrade kb."


def test_jobs_are_followed_until_none_is_left(kb, folder, tag):
    kb("addnote", f"A note {tag}", "--title", f"Note {tag}")
    (folder / "noise.bin").write_bytes(bytes(range(256)) * 9)
    kb("add", "papers")
    ended = kb("jobs", "--follow")
    assert kb.json("jobs", "--status", "queued")["jobs"] == []
    newest = kb.json("jobs", "-n", "1")["jobs"][0]["id"]
    one = kb("jobs", newest, "--follow")
    assert one.stdout.startswith(f"job {newest} ")
    assert one.returncode == (1 if "failed" in one.stdout else 0)
    assert ended.returncode in (0, 1)
    lines = kb.start("jobs", newest, "--follow", "--json", stdout=-1).communicate()[0].splitlines()
    assert [json.loads(line)["id"] for line in lines] == [newest]


def test_a_job_whose_content_is_gone_cannot_be_tried_again(kb, folder):
    (folder / "noise.bin").write_bytes(bytes(range(256)) * 9)
    [each] = json.loads(kb("add", "papers/noise.bin", "--wait", "--json").stdout)
    job = each["job"]["id"]
    ended = kb("jobs", "retry", job)
    assert ended.returncode == 6
    assert "Send the content again" in ended.stderr
    assert kb("jobs", "retry", 10**9).returncode == 5
    for words in (["retry"], ["retry", "x"], ["drop"], ["drop", "x"], ["1", "2"], ["x"], ["0"]):
        assert kb("jobs", *words).returncode == 2


def test_a_failed_job_is_dropped_and_one_that_is_done_is_not(kb, folder, tag):
    (folder / "noise.bin").write_bytes(bytes(range(256)) * 9)
    [each] = json.loads(kb("add", "papers/noise.bin", "--wait", "--json").stdout)
    failed, done = each["job"]["id"], kb.json("addnote", tag, "--wait")["id"]
    ended = kb("jobs", "drop", failed, done, 10**9)
    assert ended.stdout == f"job {failed} dropped (was failed)\n"
    assert f"Job {done} is done, and its document is " in ended.stderr
    assert f"Job {10**9} does not exist." in ended.stderr
    assert ended.returncode in (5, 6)
    assert kb("jobs", failed).returncode == 5
    assert kb.json("jobs", done)["status"] == "done"
