"""Refusals use the words of a shell, not of the API."""

from __future__ import annotations

import re

import httpx2
import pytest

from tests.conftest import KEY


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("search", "x", "-n", "101"), "kb: -n: at most 100 (KB_MAX_TOP).\n"),
        (("search", "x", "--fts-only", "--vec-only"), "kb: Use --fts-only or --vec-only, not both"),
        (("search", "x", "--tags", ","), "kb: --tags is empty. Name one or more tags, or leave out the option.\n"),
        (("list", "--any", ""), "kb: --any is empty. Name one or more tags, or leave out the option.\n"),
        (("search", "x", "--not", ""), "kb: --not is empty. Name one or more tags, or leave out the option.\n"),
        (
            ("list", "--after", ""),
            "kb: --after is empty. Enter a date such as 2026-01-31 or 7d, or leave out the option.\n",
        ),
        (("list", "--before", "soon"), "kb: --before: kb does not understand the date 'soon'"),
        (("search", "x", "--under", ""), "kb: --under is empty. Add a value, or leave out the option.\n"),
        (("addnote", "x", "--title", "x" * 501), "kb: --title: at most 500 characters\n"),
        (("addnote", "x", f"--source={'x' * 501}"), "kb: --source: at most 500 characters\n"),
        (("addnote", "x", "--thread", "x" * 201), "kb: --thread: a tag can have at most 200 characters"),
        (("search", "x", "--any", "x" * 201), "kb: --any: a tag can have at most 200 characters"),
        (("search", "x", "--tags", "ok", "--any", "x" * 201), "kb: --any: a tag can have at most 200 characters"),
        (("list", "--tags", "x" * 201, "--not", "ok"), "kb: --tags: a tag can have at most 200 characters"),
        (("tag", "1", "--add", "ok", "--remove", "x" * 300), "kb: --remove: a tag can have at most 200 characters"),
        (("addnote", "x", "--thread", "x" * 201, "--tags", "a"), "kb: --thread: a tag can have at most 200 characters"),
        (("addnote", "x", "--tags", "x" * 201), "kb: --tags: a tag can have at most 200 characters"),
        (("audit", "--by", "x" * 101), "kb: --by: at most 100 characters"),
        (("addnote", ""), "kb: The note is empty; kb sent nothing.\n"),
    ],
)
def test_a_wrong_option_is_named_as_it_was_typed(kb, words, message):
    ended = kb(*words)
    assert ended.returncode in (2, 6)
    assert ended.stderr.startswith(message)


def test_a_setting_that_is_no_number_says_so(outside):
    ended = outside("serve", env={"KB_PORT": "abc"})
    assert (ended.returncode, ended.stderr) == (2, "kb: KB_PORT: it must be a whole number\n")


def test_a_note_that_is_there_already_is_not_told_as_new(kb, tag):
    text = f"the mast is of pine {tag}"
    first = kb("addnote", text, "--wait").stdout
    assert first.endswith("is searchable\n")
    assert kb("addnote", text, "--wait").stdout == first.replace("is searchable", "already has this text")
    assert kb("add", "-", "--wait", text=f"{text} in a file").stdout == "1 file: 1 added\n"
    assert kb("add", "-", "--wait", text=f"{text} in a file").stdout == "1 file: 1 already existed\n"
    note = kb.json("addnote", text, "--tags", tag, "--wait")
    assert f"{note['document_id']} (already existed)\n" in kb("jobs", note["id"]).stdout
    assert note["existed"]
    assert kb.json("get", note["document_id"])["tags"] == [tag]


def test_dates_may_be_short(kb, tag):
    kb.note(f"a note of today {tag}")
    assert kb.json("list", "--tags", tag, "--added-after", "7d") == kb.json(
        "list", "--tags", tag, "--added-after", "7 days ago"
    )
    assert kb("list", "--after", "7x").returncode == 2


def test_a_body_that_does_not_say_that_it_is_json_is_told_how(server):
    answer = httpx2.post(
        f"{server.url}/api/v1/search", content='{"query": "x"}', headers={"Authorization": f"Bearer {KEY}"}
    )
    assert (answer.status_code, answer.json()["detail"]) == (
        422, "body: send it as JSON, with 'Content-Type: application/json'.",
    )  # fmt: skip


def test_a_document_in_the_bin_is_named_with_the_command_that_brings_it_back(kb, tag):
    note = kb.note(f"A note that goes {tag}")
    kb("delete", note, "--yes")
    said = kb("get", note, env={"TZ": "Asia/Kathmandu"}).stderr
    since = kb("bin", env={"TZ": "Asia/Kathmandu"}).stdout
    found = re.fullmatch(
        rf"kb: Document {note} has been in the bin since (\d{{4}}-\d\d-\d\d \d\d:\d\d)\. "
        rf"To restore it: kb restore {note}\n",
        said,
    )
    assert found
    assert found[1] in next(line for line in since.splitlines() if line.startswith(f"{note}\t"))


def test_the_date_of_a_document_is_readable(kb, tag):
    kb.note(f"---\ndate: 2026-11-03T10:00:00+02:00\n---\nA dated note {tag}", "--tags", tag)
    assert kb("list", "--tags", tag).stdout.split("\t")[2] == "2026-11-03 10:00"


def test_an_empty_knowledge_base_says_what_to_do(outside, start_server, tmp_path):
    with start_server(tmp_path / "empty", KB_API_KEY=KEY) as server:
        for words, said in {
            ("list",): "the knowledge base is empty; add files with 'kb add FOLDER', or a note with 'kb addnote TEXT'",
            ("search", "key"): "nothing found: the knowledge base is empty; add files",
            ("tags",): "no document has a tag; add some with 'kb tag ID --add A,B'",
            ("jobs",): "no jobs; add files with 'kb add FOLDER'",
            ("jobs", "--status", "failed"): "no job has failed",
            ("bin",): "the bin is empty",
            ("audit",): "the log has no changes",
            ("keys",): "no keys with rights exist; make one with 'kb keys make NAME'",
        }.items():
            ended = outside(*words, env={"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY})
            assert (ended.stdout, ended.stderr[: len(said) + 4]) == ("", f"kb: {said}")
