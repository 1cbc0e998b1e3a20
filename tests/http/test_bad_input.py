"""Whatever is sent: a clear 4xx or a failed job with a reason, never a 500 and never a look inside."""

from __future__ import annotations

import io
import json
import random

import httpx2
import pytest

from kb.api.models import DocumentWithChunks, SearchReply
from kb.routes.openapi import read_examples
from kb.routes.thread_route import MANY, rendered
from tests.http.conftest import finished
from tests.support.raw import memory


def is_problem(reply, status):
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    body = reply.json()
    assert body["status"] == status
    assert body["type"].startswith("urn:kb:problem:")
    assert body["detail"]
    assert "Traceback" not in reply.text
    return body


@pytest.mark.parametrize(
    "query",
    ['"', '""', '"unbalanced', "NEAR(", "NEAR(a b, 2)", "*", "a*", "^a", "a AND", "OR", "NOT", "text:a", "{text}: a",
     "(", ")", "a\x00b", "\x00", "-", "+", "'; DROP TABLE chunks; --", "x" * 20_000, "a " * 10_000, "%", "\\", "日本語"],
)  # fmt: skip
@pytest.mark.parametrize("mode", [{}, {"fts_only": True}, {"vec_only": True}])
async def test_a_hostile_query_is_just_a_query(http, query, mode):
    reply = await http.post("/search", json={"query": query} | mode)
    assert reply.status_code == 200, reply.text


BLANKS = ("\x1f", "\x85", "\xa0", "\u2028", "\u3000", "\ufeff")
"""White space, to one reader of patterns or another."""


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "  "}, "query"),
        *(({"query": blank}, "query") for blank in BLANKS),
        *(({"query": "x", "tags": [blank]}, "tags.0") for blank in BLANKS),
        ({"query": None}, "query"),
        ({"query": 7}, "query"),
        ({"query": ["x"]}, "query"),
        ({"query": "x" * 20_001}, "query"),
        ({"query": "x", "top": "5"}, "top"),
        ({"query": "x", "top": 0}, "top"),
        ({"query": "x", "top": 101}, "top"),
        ({"query": "x", "top": 10**30}, "top"),
        ({"query": "x", "tags": "a"}, "tags"),
        ({"query": "x", "tags": [1]}, "tags.0"),
        ({"query": "x", "tags": ["a,b"]}, "tags.0"),
        ({"query": "x", "tag": ["a"]}, "tag"),
        ({"query": "x", "fts_only": True, "vec_only": True}, "fts_only"),
        ([], "body"),
        ("text", "body"),
    ],
)
async def test_a_wrong_search_names_the_field(http, body, field):
    problem = is_problem(await http.post("/search", json=body), 422)
    assert problem["detail"].startswith(field)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"text": "\\ud800"}', b"[" * 100_000, b"null"])
@pytest.mark.parametrize("path", ["/search", "/jobs"])
async def test_a_body_that_is_no_such_json_is_refused(http, content, path):
    reply = await http.post(path, content=content, headers={"Content-Type": "application/json"})
    is_problem(reply, reply.status_code)
    assert reply.status_code in (400, 422)


@pytest.mark.requirement("E-3")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/documents/999999", 404),
        ("/documents/0", 422),
        ("/documents/-1", 422),
        ("/documents/x", 422),
        (f"/documents/{2**63}", 422),
        ("/documents?limit=0", 422),
        ("/documents?limit=501", 422),
        ("/documents?sort=title", 422),
        ("/documents?cursor=%00", 422),
        ("/documents?cursor=x", 422),
        ("/documents?cursor=5.6", 422),
        ("/documents?cursor=%C2%B2.", 422),
        ("/documents?cursor=9999999999999999999.", 422),
        ("/documents?cursor=-1.00", 422),
        ("/jobs/999999", 404),
        ("/jobs?status=lost", 422),
        ("/jobs?cursor=x", 422),
        ("/jobs?cursor=%C2%B2", 422),
        ("/jobs?lines=5", 422),
        ("/jobs?cursor=99999999999999999999", 422),
        ("/nothing", 404),
    ],
)
async def test_a_wrong_address_is_refused(http, path, status):
    is_problem(await http.get(path), status)


FORM = {"Content-Type": "multipart/form-data; boundary=x"}


@pytest.mark.parametrize(
    ("method", "path", "sent", "statuses"),
    [
        ("PUT", "/search", {"json": {}}, {405}),
        ("POST", "/jobs", {"content": b"text", "headers": {"Content-Type": "text/plain"}}, {415}),
        ("POST", "/jobs", {"data": {"title": "no file"}, "files": {"other": ("a.txt", b"x")}}, {400, 422}),
        ("POST", "/jobs", {"files": {"file": ("a.txt", b"x"), "title": ("t.txt", b"x")}}, {400, 422}),
        ("POST", "/jobs", {"files": {"file": ("a.txt", b"x")}, "data": {"tags": "x" * 201}}, {400, 422}),
        ("POST", "/jobs", {"content": b"--x\r\nContent-Disposition: form-data", "headers": FORM}, {400, 422}),
    ],
    ids=["method", "kind of body", "no file", "a file as title", "a long tag", "a form without its end"],
)
async def test_a_wrong_request_is_refused(http, method, path, sent, statuses):
    reply = await http.request(method, path, **sent)
    is_problem(reply, reply.status_code)
    assert reply.status_code in statuses


@pytest.mark.requirement("E-10")
@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.txt", b"", "empty"),
        ("blank.txt", b" \n\n ", "no text"),
        ("broken.pdf", b"%PDF-1.7\nnothing of a PDF follows", ""),
        ("random.bin", random.Random(1).randbytes(5000), ""),
        ("random.pdf", random.Random(2).randbytes(5000), ""),
        ("broken.docx", b"PK\x03\x04" + random.Random(3).randbytes(500), ""),
        ("../../etc/passwd", b"", "empty"),
    ],
)
async def test_a_file_that_cannot_be_read_is_a_failed_job_with_the_reason(api, name, content, reason):
    job = await finished(api, await api.add_file(name, io.BytesIO(content)))
    assert job["status"] == "failed"
    assert job["document_id"] is None
    assert reason in job["error"]
    assert len(job["error"].splitlines()) == 1
    assert "Traceback" not in job["error"]


async def test_a_file_name_is_only_ever_a_name(api):
    accepted = await api.add_file("..\\..\\x/../../evil.txt", io.BytesIO(b"harmless content"))
    assert (await finished(api, accepted))["filename"] == "evil.txt"


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp5"},
                                    {"Authorization": "Bearer"}, {"Authorization": "Bearer \xff"}])  # fmt: skip
async def test_without_the_key_nothing_is_served_but_the_probes(server, header):
    headers = {name: value.encode("latin-1") for name, value in header.items()}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers) as stranger:
        for path in ("/api/v1/status", "/api/v1/documents", "/api/v1/nothing"):
            reply = await stranger.get(path)
            is_problem(reply, 401)
            assert reply.headers["www-authenticate"].startswith("Bearer")
        assert (await stranger.get("/healthz")).text == "ok"
        assert (await stranger.get("/readyz")).text == "ready"


async def test_a_body_over_the_limit_is_refused(start_server, tmp_path):
    with start_server(tmp_path, KB_MAX_UPLOAD_MB="1") as small:
        async with httpx2.AsyncClient(base_url=f"{small.url}/api/v1") as http:
            is_problem(await http.post("/jobs", files={"file": ("big.txt", b"x" * (2 << 20))}), 413)
            is_problem(await http.post("/search", content=b" " * (17 << 20)), 413)

            async def unannounced():
                for _ in range(40):
                    yield b"x" * (1 << 19)

            is_problem(
                await http.post("/search", content=unannounced(), headers={"Content-Type": "application/json"}), 413
            )
            assert (await http.get("/status")).status_code == 200


async def test_only_where_files_go_may_a_body_be_as_large_as_a_file(http):
    body = b"x" * (17 << 20)
    for path in ("/search", "/documents/1/tags"):
        is_problem(await http.post(path, content=body, headers=FORM), 413)


async def test_a_form_with_too_many_tags_is_refused_though_some_are_blank(http):
    tags = [*(f"t{number}" for number in range(60)), *[" "] * 60]
    problem = is_problem(await http.post("/jobs", files={"file": ("a.txt", b"heron")}, data={"tags": tags}), 422)
    assert problem["detail"] == "tags: at most 100."


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (lambda: {"title": ["x" * (65 << 10)]}, "form: a field has at most 65536 bytes"),
        (lambda: {"tags": ["x"] * 5000}, "tags: at most 100."),
        (lambda: {key: ["x" * (1 << 20)] for key in map(str, range(60))}, "form: a field has at most 65536 bytes"),
    ],
    ids=["a long field", "many tags", "many long fields"],
)
async def test_a_form_that_would_fill_the_memory_is_refused(server, http, fields, said):
    before = memory(server)
    answer = await http.post("/jobs", files={"file": ("a.txt", b"heron")}, data=fields())
    assert is_problem(answer, 422)["detail"].startswith(said)
    assert memory(server) - before < 50


async def test_a_body_has_the_limit_of_what_is_asked_for(http):
    large = {"query": "x", "source_path": "x" * (1 << 20)}
    for method, path in (("POST", "/search"), ("PATCH", "/documents/1/tags"), ("POST", "/jobs/1/retry")):
        is_problem(await http.request(method, path, json=large), 413)
    longest = json.dumps({"text": "\U0001f418" * 999_999 + "."}).encode()
    assert len(longest) > 11 << 20
    answer = await http.post("/jobs", content=longest, headers={"Content-Type": "application/json"})
    assert answer.status_code == 202
    is_problem(await http.post("/jobs", content=longest + b" " * (1 << 20)), 413)


@pytest.mark.parametrize("path", ["/search", "/jobs"])
async def test_a_body_of_more_values_than_any_call_takes_is_refused_by_what_it_is(http, path):
    for body in ({str(number): 1 for number in range(5000)}, {"query": "x", "text": "x", "tags": [1] * 60_000}):
        problem = is_problem(await http.post(path, json=body), 422)
        assert problem["detail"] == "body: it is no JSON in UTF-8, or holds more names and values than any call takes."


async def test_a_query_of_more_parameters_than_any_call_takes_is_refused(http):
    problem = is_problem(await http.get(f"/documents?{'&'.join(f'p{number}=' for number in range(2000))}"), 422)
    assert problem["detail"] == "query: it holds more parameters than any call takes."


async def test_the_name_of_a_field_is_not_repeated_at_length(http):
    answer = await http.post("/search", json={"query": "x", "x" * 100_000: 1})
    is_problem(answer, 422)
    assert len(answer.content) < 2000


EXAMPLES = read_examples()


@pytest.mark.parametrize("items", [0, 1, MANY, MANY + 1, 1000])
def test_a_long_reply_is_the_same_json(items):
    example = EXAMPLES["DocumentWithChunks"]
    document = DocumentWithChunks.model_validate(
        example | {"chunks": example["chunks"] * items, "title": 'a"\n\u2028é🐘'}
    )
    assert rendered(document) == document.model_dump_json().encode()
    example = EXAMPLES["SearchReply"]
    found = SearchReply.model_validate(example | {"results": example["results"] * items})
    assert rendered(found) == found.model_dump_json().encode()
