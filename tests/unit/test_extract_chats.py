"""Exports of ChatGPT and Claude: a document for each conversation."""

from __future__ import annotations

import json

import pytest

from kb.formats.extract import extract


def chatgpt(number, text="The keel is green."):
    def node(name, role, words, parent, child):
        message = {
            "id": name, "author": {"role": role, "name": None}, "create_time": 1700000000.5 + number,
            "content": {"content_type": "text", "parts": [words]},
        }  # fmt: skip
        return {"id": name, "message": message, "parent": parent, "children": [child] if child else []}

    return {
        "title": f"Boat {number}: the keel",
        "create_time": 1700000000.25 + number,
        "update_time": 1700000100.0,
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["s"]},
            "s": node("s", "system", "", "root", "q"),
            "q": node("q", "user", "# Which colour?", "s", "a"),
            "old": node("old", "assistant", "An answer that was made anew.", "q", None),
            "a": node("a", "assistant", text, "q", None),
        },
        "current_node": "a",
        "conversation_id": f"{number:08}-e29b",
    }


def claude(number, text="The sail is red."):
    at = f"2025-02-{1 + number % 28:02}T10:00:00.123456Z"
    return {
        "uuid": f"{number:08}-5a1f", "name": f"Sail {number}", "created_at": at, "updated_at": at,
        "account": {"uuid": "x"},
        "chat_messages": [
            {"uuid": "1", "sender": "human", "text": "Which colour?", "created_at": at, "attachments": [
                {"file_name": "log.txt", "extracted_content": "From the log."}], "content": [{"type": "text", "text": "Which colour?"}]},
            {"uuid": "2", "sender": "assistant", "text": text, "created_at": at, "content": [], "attachments": []},
        ],
    }  # fmt: skip


def conversations(export):
    """The documents that an export becomes in the end, by name."""
    _, read = extract(json.dumps(export).encode(), "conversations.json")
    found = {}
    for each in read.attachments:
        if each.filename.endswith(".json"):
            found |= conversations(json.loads(each.data))
        else:
            found[each.filename] = extract(each.data, each.filename)
    return found


def test_a_conversation_of_chatgpt_keeps_title_date_speakers_and_the_branch_that_was_kept():
    [(name, (doc_type, read))] = conversations([chatgpt(7)]).items()
    assert (name, doc_type) == ("Boat 7- the keel 00000007.md", "markdown")
    assert (read.title, read.date) == ("Boat 7: the keel", "2023-11-14T22:13:27+00:00")
    assert "## You, 2023-11-14 22:13\n\n### Which colour?\n" in read.text
    assert "## Assistant, 2023-11-14 22:13\n\nThe keel is green.\n" in read.text
    assert "made anew" not in read.text


def test_a_conversation_of_claude_keeps_its_files_too():
    [(name, (_, read))] = conversations([claude(3)]).items()
    assert name == "Sail 3 00000003.md"
    assert read.date == "2025-02-04T10:00:00+00:00"
    assert "## You, 2025-02-04 10:00\n\nWhich colour?\n\nlog.txt:\n\nFrom the log.\n" in read.text
    assert "## Assistant, 2025-02-04 10:00\n\nThe sail is red.\n" in read.text


@pytest.mark.parametrize("make", [chatgpt, claude])
def test_a_large_export_loses_no_conversation(make):
    found = conversations([make(number, f"Answer {number}.") for number in range(230)])
    assert len(found) == 230
    texts = [read.text for _, read in found.values()]
    assert all(any(f"Answer {number}." in text for text in texts) for number in range(230))


@pytest.mark.parametrize(
    "value", [[], [{"mapping": 1}], {"mapping": {}}, [{"mapping": {}}, 1], [{"chat_messages": "x"}], "chat_messages"]
)
def test_other_json_stays_what_it_is(value):
    _, read = extract(json.dumps(value).encode(), "x.json") if value != [] else ("", None)
    assert read is None or read.attachments == ()


def test_an_export_that_is_damaged_is_read_as_far_as_it_goes():
    odd = chatgpt(1)
    odd["mapping"]["a"]["parent"] = "a"
    odd["create_time"] = "never"
    odd["mapping"]["a"]["message"]["content"]["parts"] = [None, {"text": "From a picture."}, 3]
    [(_, (_, read))] = conversations([odd]).items()
    assert "From a picture." in read.text
    assert read.date is None


@pytest.mark.parametrize(
    "value",
    [
        [{"mapping": {"field": {"type": "text"}, "other": {"type": "date"}}}],
        [{"mapping": {"a": "b"}}],
        [{"mapping": {"a": {"message": None, "children": 3}}, "current_node": ["a"]}],
        [{"mapping": {"a": {"parent": {}, "message": {"content": {"parts": "x"}}}}}],
        [{"chat_messages": ["hello"]}],
        [{"chat_messages": [{"sender": "x", "text": 3}]}],
    ],
)
def test_json_that_has_an_exports_words_for_other_things_stays_what_it_is(value):
    doc_type, read = extract(json.dumps(value).encode(), "x.json")
    assert (doc_type, read.attachments) == ("json", ())
    assert next(iter(value[0])) in read.text


def test_a_conversation_without_turns_is_left_out():
    _, read = extract(json.dumps([chatgpt(1), chatgpt(2, "") | {"mapping": {}}]).encode(), "x.json")
    assert read.text.startswith("1 conversation\n")
    assert len(read.attachments) == 1


def test_code_in_a_turn_stays_as_it_is_and_no_word_of_it_is_a_tag():
    text = "Run #this:\n\n```sh\n# all boats\nls\n```\n# Then\n\n```\n# unclosed"
    [(_, (_, read))] = conversations([chatgpt(1, text)]).items()
    assert text.replace("# Then", "### Then") in read.text
    assert read.tags == ()
