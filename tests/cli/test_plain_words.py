"""What is refused is told in the words of a shell, not of the API."""

from __future__ import annotations

import socket

import httpx2
import pytest

from tests.conftest import KEY


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("search", "x", "-n", "101"), "kb: -n: at most 100 (KB_MAX_TOP).\n"),
        (("search", "x", "--fts-only", "--vec-only"), "kb: Say --fts-only or --vec-only, not both"),
        (("search", "x", "--tags", ","), "kb: --tags names no tag\n"),
        (("list", "--any", ""), "kb: --any names no tag\n"),
        (("addnote", ""), "kb: The note is empty; nothing was sent.\n"),
    ],
)
def test_a_wrong_option_is_named_as_it_was_typed(kb, words, message):
    ended = kb(*words)
    assert ended.returncode in (2, 6)
    assert ended.stderr.startswith(message)


def test_a_setting_that_is_no_number_says_so(outside):
    ended = outside("serve", env={"KB_PORT": "abc"})
    assert (ended.returncode, ended.stderr) == (2, "kb: KB_PORT: it must be a whole number\n")


def test_a_port_that_is_taken_is_said_once(outside):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = outside("serve", env={"KB_PORT": str(taken.getsockname()[1])})
    assert ended.returncode == 2
    assert ended.stderr.endswith("Address already in use; --port takes another one\n")


def test_a_note_that_is_there_already_is_not_told_as_new(kb, tag):
    text = f"the mast is of pine {tag}"
    first = kb("addnote", text, "--wait").stdout
    assert first.endswith("is searchable\n")
    assert kb("addnote", text, "--wait").stdout == first.replace("is searchable", "says this already")
    assert kb("add", "-", "--wait", text=f"{text} in a file").stdout == "1 file: 1 added\n"
    assert kb("add", "-", "--wait", text=f"{text} in a file").stdout == "1 file: 1 there already\n"
    note = kb.json("addnote", text, "--tags", tag, "--wait")
    assert f"{note['document_id']} (was there already)\n" in kb("jobs", note["id"]).stdout
    assert note["existed"]
    assert kb.json("get", note["document_id"])["tags"] == [tag]


def test_dates_may_be_short(kb, tag):
    kb.note(f"a note of today {tag}")
    assert kb.json("list", "--tags", tag, "--after", "7d") == kb.json("list", "--tags", tag, "--after", "7 days ago")
    assert kb("list", "--after", "7x").returncode == 2


def test_a_body_that_does_not_say_that_it_is_json_is_told_how(server):
    answer = httpx2.post(
        f"{server.url}/api/v1/search", content='{"query": "x"}', headers={"Authorization": f"Bearer {KEY}"}
    )
    assert (answer.status_code, answer.json()["detail"]) == (
        422, "body: send it as JSON, with 'Content-Type: application/json'",
    )  # fmt: skip
