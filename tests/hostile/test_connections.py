"""Connections and requests that cost a server more than their sender, before and after the check of the key."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import time
from contextlib import contextmanager, suppress
from itertools import count, islice
from pathlib import Path

import httpx2
import pytest

from kb.worker.job import MAX_ATTEMPTS
from tests.conftest import ALL_APPS, KEY, MCP_KEY
from tests.support.eventually import eventually
from tests.support.hostile import parser_of
from tests.support.rare_cases import mostly_rare
from tests.support.raw import Probe, answer, asked, connect, connected, memory, request

BEARER = f"Authorization: Bearer {KEY}"
JSON = "Content-Type: application/json"
GUARDED = {"KB_API_KEY": KEY, "KB_MCP_API_KEY": MCP_KEY}
MEBIBYTE = 1 << 20

MANY = [pytest.param(100, id="100"), pytest.param(1000, id="1000", marks=pytest.mark.hostile)]
LONG = [pytest.param(16, id="16MiB"), pytest.param(200, id="200MiB", marks=pytest.mark.hostile)]


def status_of(said):
    return int(said.split(maxsplit=2)[1])


def problem_of(said):
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head, said[:300]
    return json.loads(body)


@pytest.fixture(scope="module")
def start_limited(start_server):
    """Starts servers with other limits."""

    def start(folder, **limits):
        program = ("tests.hostile.limited",)
        return start_server(folder, program=program, LIMITS=json.dumps(limits), KB_APPS=ALL_APPS, **GUARDED)

    return start


@pytest.fixture(scope="module")
def hasty(start_limited, tmp_path_factory):
    """A server that waits for nobody longer than a second."""
    with start_limited(tmp_path_factory.mktemp("hasty"), RECEIVE_SECONDS=1) as server:
        yield server


@contextmanager
def undisturbed(server, timed):
    """Asks whether the server lives, all the while; where it is `timed`, each answer comes soon."""
    before = memory(server)
    with Probe(server) as probe:
        time.sleep(0.2)
        yield
    assert probe.wrong == []
    assert not timed or probe.worst < 100, f"{probe.worst:.0f} ms"
    eventually("the memory is given back", lambda: memory(server) - before, until=lambda grown: grown < 50)


HALVES = {
    "nothing": b"",
    "a line": b"GET /api/v1/status HTTP/1.1\r\n",
    "a header": b"GET /api/v1/status HTTP/1.1\r\nHost: local",
    "a body": request("POST", "/api/v1/search", BEARER, JSON, "Content-Length: 50") + b'{"query": "lighth',
    "a body without a key": request("POST", "/api/v1/search", JSON, "Content-Length: 50") + b'{"query": "lighth',
    "a call": request("POST", "/mcp", f"Authorization: Bearer {MCP_KEY}", JSON, "Content-Length: 50") + b'{"jsonrpc"',
}


@pytest.mark.slow
@pytest.mark.parametrize("half", mostly_rare(HALVES.values()), ids=HALVES)
@pytest.mark.parametrize("number", MANY)
def test_requests_that_are_begun_and_not_ended_are_closed(hasty, number, half):
    with undisturbed(hasty, timed=number == 1000), connected(hasty, number, half) as opened:
        for each in opened:
            answer(each)  # comes to an end


def test_a_head_that_comes_drop_by_drop_is_closed(hasty):
    with connect(hasty) as connection, suppress(ConnectionError):
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Drops: ")
        for _ in range(100):
            connection.sendall(b"x")
            time.sleep(0.1)
        pytest.fail("ten seconds of a head were taken")


@pytest.mark.parametrize("mebibytes", LONG)
@pytest.mark.parametrize("line", [b"x", b"x" * 4000 + b"\r\nX-More: "], ids=["one header", "many headers"])
def test_a_head_without_an_end_is_refused_early(hasty, mebibytes, line):
    part = (line * (MEBIBYTE // len(line) + 1))[:MEBIBYTE]
    with undisturbed(hasty, timed=mebibytes == 200):
        said = asked(hasty, b"GET / HTTP/1.1\r\nX-Long: ", *[part] * mebibytes)
    assert not said or problem_of(said)["status"] == 431


@pytest.mark.parametrize("head", [["X-Long: " + "x" * (64 << 10)], [f"X-{number}: x" for number in range(300)]])
def test_a_head_over_the_limit_is_told_so(hasty, head):
    said = asked(hasty, request("GET", "/healthz", *head))
    assert (status_of(said), problem_of(said)["type"]) == (431, "urn:kb:problem:head-too-large")
    assert status_of(asked(hasty, request("GET", "/healthz", "X-Long: " + "x" * 60_000, "Connection: close"))) == 200


def test_requests_that_nobody_waits_for_are_not_all_taken(hasty):
    with undisturbed(hasty, timed=False):
        said = asked(hasty, request("GET", "/api/v1/status") * 20_000)
    assert said.count(b"HTTP/1.1 ") < 2_000


def test_an_answer_that_nobody_takes_is_dropped(hasty):
    page = request("GET", "/openapi.json")
    with connect(hasty) as connection:
        connection.settimeout(0.5)
        with suppress(TimeoutError, ConnectionError):
            for _ in range(2_000):
                connection.sendall(page)
                time.sleep(0.001)
        eventually("the server closes", lambda: connections_of(hasty), until=lambda number: number == 0)


@pytest.mark.slow
def test_an_answer_that_is_taken_slowly_and_steadily_comes_whole(hasty):
    page = b"<p>The lamp is lit at dusk.</p><!--" + b"oil " * (2 * MEBIBYTE) + b"-->"
    with httpx2.Client(base_url=hasty.url, headers={"Authorization": f"Bearer {KEY}"}) as http:
        job = http.post("/api/v1/jobs?wait=60", files={"file": ("lamp.html", page)}).json()
    with connect(hasty) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        connection.sendall(request("GET", f"/api/v1/documents/{job['document_id']}/file", BEARER, "Connection: close"))
        received = 0
        for _ in range(50):
            received += len(connection.recv(20_000))
            time.sleep(0.1)
        assert received + len(answer(connection)) > len(page)


def connections_of(server):
    """How many connections are established at the server's port."""
    port, number = f":{server.port:04X}", 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_, inode = line.split()[:10]
        number += local.endswith(port) and state in ("01", "08") and inode != "0"
    return number


def fields(start):
    return b", ".join(b'"%d": 1' % number for number in range(start, start + 10_000))


BODIES = {
    "unknown fields": lambda: b'{"query": "x", ' + b", ".join(map(fields, range(0, 1_000_000, 10_000))) + b"}",
    "numbers": lambda: b'{"query": "x", "tags": [' + b"1, " * 3_999_999 + b"1" + b"]}",
    "nested": lambda: b'{"query": ' + b"[" * 6_000_000 + b"]" * 6_000_000 + b"}",
    "quotes": lambda: b'{"text": "' + b'\\"' * 6_000_000 + b'"}',
    "blanks": lambda: b'{"text": "' + b" " * 11_000_000 + b'"}',
    "in UTF-16": lambda: ('{"query": "x", "tags": [' + "\u2200, " * 1_900_000 + "1]}").encode("utf-16"),
}
PATHS = [("POST", "/search"), ("POST", "/jobs"), ("PATCH", "/notes/1"), ("PATCH", "/documents/1/tags")]


@pytest.mark.rare
@pytest.mark.parametrize("timed", [False, pytest.param(True, marks=pytest.mark.hostile)])
@pytest.mark.parametrize("make", mostly_rare(BODIES.values(), 2), ids=BODIES)
def test_twelve_megabytes_of_mistakes_are_answered_in_a_few_lines(hasty, make, timed):
    body = make()
    for method, path in PATHS:
        with undisturbed(hasty, timed):
            said = asked(hasty, request(method, f"/api/v1{path}", BEARER, JSON, "Connection: close", body=body))
        assert not said or status_of(said) in (400, 413, 422), said[:500]
        assert len(said) < 5000


def test_a_few_mistakes_are_named_and_the_rest_counted(server):
    fields = dict.fromkeys(map(str, range(200)), 1)
    reply = httpx2.post(
        f"{server.url}/api/v1/search", json={"query": "x"} | fields, headers={"Authorization": f"Bearer {KEY}"}
    )
    assert reply.status_code == 422
    assert (len(reply.json()["errors"]), reply.json()["more_errors"]) == (20, 180)


def tool_call(arguments):
    return b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "kb_search", "arguments": %b}}' % (
        arguments
    )


ARGUMENTS = {
    "numbers": b'{"query": "x", "tags": [' + b",".join([b"1"] * 1_300_000) + b"]}",
    "numbers in a text": b'{"query": "x", "tags": "[' + b",".join([b"1"] * 1_300_000) + b']"}',
    "unknown parameters": b"{" + b",".join(b'"%d": 1' % number for number in range(300_000)) + b"}",
    "a long query": b'{"query": "' + b"x" * 3_900_000 + b'"}',
}


@pytest.mark.parametrize("timed", [False, pytest.param(True, marks=pytest.mark.hostile)])
@pytest.mark.parametrize(
    "era",
    [(), ("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: kb_search")],
    ids=["legacy", "modern"],
)
@pytest.mark.parametrize("arguments", mostly_rare(ARGUMENTS.values()), ids=ARGUMENTS)
def test_a_call_of_a_tool_with_millions_of_mistakes_is_answered_in_a_line(hasty, arguments, era, timed):
    headers = ["Accept: application/json, text/event-stream", f"Authorization: Bearer {MCP_KEY}", JSON, *era]
    call = request("POST", "/mcp", *headers, "Connection: close", body=tool_call(arguments))
    with undisturbed(hasty, timed):
        said = asked(hasty, call)
    assert said
    assert len(said) < 2000
    assert b"Traceback" not in said


@pytest.mark.rare
def test_a_body_that_comes_slowly_and_steadily_is_taken(hasty):
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n', b"\r\n--x--\r\n"
    parts = [form[0], *[b"lighthouse " * 100] * 10, form[1]]
    length = f"Content-Length: {sum(map(len, parts))}"
    with connect(hasty) as connection:
        kind = "Content-Type: multipart/form-data; boundary=x"
        connection.sendall(request("POST", "/api/v1/jobs", BEARER, kind, length, "Connection: close"))
        for part in parts:
            time.sleep(0.4)
            connection.sendall(part)
        assert status_of(answer(connection)) == 202


@pytest.mark.slow
def test_who_waits_for_a_job_is_not_cut_off(hasty):
    text = "Ledgers were kept by patient clerks. " * 9000
    headers = {"Authorization": f"Bearer {KEY}"}
    with httpx2.Client(base_url=f"{hasty.url}/api/v1", headers=headers) as http:
        begun = time.monotonic()
        reply = http.post("/jobs?wait=4", json={"text": text})
        assert reply.status_code == 200 or time.monotonic() - begun >= 4


@pytest.fixture(scope="module")
def small(start_limited, tmp_path_factory):
    """A server that takes twenty connections."""
    with start_limited(tmp_path_factory.mktemp("small"), MAX_CONNECTIONS=20) as server:
        yield server


@pytest.mark.slow
def test_connections_without_a_request_make_room_for_one_with(small):
    with connected(small, 200, HALVES["a header"]):
        for _ in range(30):
            assert status_of(asked(small, request("GET", "/api/v1/status", BEARER, "Connection: close"))) == 200


def test_where_each_connection_has_a_request_under_way_the_next_is_told_to_come_back(small):
    with connected(small, 20, HALVES["a body"]):
        said = eventually(
            "all of them are under way",
            lambda: asked(small, request("GET", "/api/v1/status", "Connection: close")),
            until=lambda said: status_of(said) == 503,
        )
        assert b"retry-after: 5" in said
        assert problem_of(said)["type"] == "urn:kb:problem:overloaded"
        assert status_of(asked(small, request("GET", "/healthz", "Connection: close"))) == 200
    eventually(
        "there is room again",
        lambda: status_of(asked(small, request("GET", "/api/v1/status", BEARER, "Connection: close"))),
        until=lambda status: status == 200,
    )


@contextmanager
def out_of_files(server, left):
    """The server may open so many more files than it has open."""
    limits = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    taken = {int(entry.name) for entry in Path(f"/proc/{server.process.pid}/fd").iterdir()}
    free = (number for number in count() if number not in taken)
    first_too_many = next(islice(free, left, None))
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (first_too_many, limits[1]))
    try:
        yield
    finally:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, limits)


def test_a_process_may_open_as_many_files_as_the_machine_allows(server):
    soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    assert soft == min(hard, 65536)


@contextmanager
def kept(server):
    """A client whose connection is open before files become scarce."""
    with httpx2.Client(base_url=server.url, headers={"Authorization": f"Bearer {KEY}"}) as http:
        http.get("/healthz")
        yield http


@pytest.fixture(scope="module")
def patient(start_server, tmp_path_factory):
    """A server of its own, all of which has started, for those who take what it needs."""
    with start_server(tmp_path_factory.mktemp("patient"), KB_APPS=ALL_APPS, **GUARDED) as server:
        with kept(server) as http:
            http.get("/")  # the pages start last, and who asks for one waits for them
            http.post("/api/v1/search", json={"query": "x"})
        yield server


@pytest.mark.rare
def test_an_upload_for_which_no_file_can_be_opened_is_told_to_come_back(patient):
    with kept(patient) as http:
        file = {"file": ("a.bin", bytes(5_000_000))}  # there is nothing to read in it, which is soon found
        with out_of_files(patient, left=0):
            refused = http.post("/api/v1/jobs", files=file)
            assert (refused.status_code, refused.json()["type"]) == (503, "urn:kb:problem:overloaded")
            assert refused.headers["retry-after"]
        assert http.post("/api/v1/jobs?wait=60", files=file).json()["status"] == "failed"


@pytest.mark.slow
def test_a_file_whose_parser_cannot_be_started_for_lack_of_files_waits_for_it(patient):
    with kept(patient) as http:
        http.post("/api/v1/jobs?wait=60", files={"file": ("first.txt", b"The parser has started.")})
        os.kill(parser_of(patient.process.pid), signal.SIGKILL)
        blamed = http.post("/api/v1/jobs?wait=60", files={"file": ("a.txt", b"It takes the blame.")}).json()
        assert "crashed" in blamed["error"]
        with out_of_files(patient, left=3):
            job = http.post("/api/v1/jobs", files={"file": ("b.txt", b"The lamp is lit at six.")}).json()
            eventually(
                "the worker has failed more often than a job may",
                lambda: float(re.search(r"(?m)^kb_worker_errors_total (\S+)", http.get("/metrics").text)[1]),
                until=lambda failures: failures > MAX_ATTEMPTS,
            )
        ended = http.get(f"/api/v1/jobs/{job['job_id']}?wait=60").json()
    assert (ended["status"], ended["error"]) == ("done", None)
