"""Exports of other programs: each bookmark, source, conversation and note is a document of its own."""

from __future__ import annotations

import csv
import io
import json
import re
from base64 import b64encode
from contextlib import suppress
from hashlib import md5

import pytest

from kb.api.errors import Unreadable
from kb.formats.extract import extract
from kb.formats.text.batches import MAX_PARTS, batch_name, batches, is_batch
from tests.support.rare_cases import mostly_rare

RAINDROP = ["id", "title", "note", "excerpt", "url", "folder", "tags", "created", "cover", "highlights", "favorite"]
ZOTERO = [
    "Key",
    "Item Type",
    "Publication Year",
    "Author",
    "Title",
    "Publication Title",
    "DOI",
    "Url",
    "Abstract Note",
    "Date",
]
ZOTERO += ["Manual Tags", "Automatic Tags"]


def table(header, *rows):
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, header, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def test_each_bookmark_is_a_document_with_address_tags_and_date():
    row = {
        "id": "7",
        "title": "Tide: tables",
        "note": "For May,\nand June",
        "excerpt": "High water",
        "url": "https://example.org/t",
        "folder": "Boat",
        "tags": "sea, tides",
        "created": "2026-05-01T10:00:00.000Z",
    }
    doc_type, export = extract(
        table(RAINDROP, row, row | {"id": "8", "title": "Knots", "created": "2026-04-01T00:00:00Z"}), "a.csv"
    )
    assert (doc_type, export.title, export.text) == ("csv", "Bookmarks", "2 bookmarks\n\nKnots\nTide: tables\n")
    assert [each.filename for each in export.attachments] == ["Knots 8.md", "Tide tables 7.md"]
    _, bookmark = extract(export.attachments[1].data, export.attachments[1].filename)
    assert (bookmark.title, bookmark.tags, bookmark.date[:10]) == ("Tide: tables", ("sea", "tides"), "2026-05-01")
    for said in ("https://example.org/t", "Folder: Boat", "High water", "For May,\nand June"):
        assert said in bookmark.text


def test_each_source_is_a_document_with_its_authors_and_abstract():
    row = {
        "Key": "ABCD1234",
        "Item Type": "journalArticle",
        "Author": "Doe, Ann; Roe, Bob",
        "Title": 'On "ropes"',
        "Publication Title": "Knots",
        "DOI": "10.1/x",
        "Abstract Note": "Ropes hold.",
        "Date": "2020-03-01",
        "Manual Tags": "rope; knot",
        "Automatic Tags": "sea",
    }
    [source] = extract(table(ZOTERO, row), "library.csv")[1].attachments
    _, read = extract(source.data, source.filename)
    assert (read.title, read.tags, read.date) == ('On "ropes"', ("rope", "knot", "sea"), "2020-03-01")
    for said in ("By Doe, Ann; Roe, Bob", "In Knots", "DOI: 10.1/x", "Ropes hold."):
        assert said in read.text


def test_a_large_export_becomes_exports_in_the_order_of_time():
    rows = [
        {
            "id": str(number),
            "title": f"Page {number}",
            "url": "https://example.org",
            "created": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z",
        }
        for number in range(250)
    ]
    _, export = extract(table(RAINDROP, *reversed(rows)), "a.csv")
    assert [each.filename for each in export.attachments] == ["00001-00100.csv", "00101-00200.csv", "00201-00300.csv"]
    _, last = extract(export.attachments[2].data, "b.csv")
    assert [each.filename for each in last.attachments][::49] == ["Page 200 200.md", "Page 249 249.md"]


def test_other_tables_stay_tables():
    assert extract(b"id,title,url\n1,a,b\n", "a.csv")[1].attachments == ()


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
        *([{"mapping": 1}], {"mapping": {}}, [{"mapping": {}}, 1], [{"chat_messages": "x"}]),
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
    assert next(iter(value[0] if isinstance(value, list) else value)) in read.text


def test_a_conversation_without_turns_is_left_out():
    _, read = extract(json.dumps([chatgpt(1), chatgpt(2, "") | {"mapping": {}}]).encode(), "x.json")
    assert read.text.startswith("1 conversation\n")
    assert len(read.attachments) == 1


def test_code_in_a_turn_stays_as_it_is_and_no_word_of_it_is_a_tag():
    text = "Run #this:\n\n```sh\n# all boats\nls\n```\n# Then\n\n```\n# unclosed"
    [(_, (_, read))] = conversations([chatgpt(1, text)]).items()
    assert text.replace("# Then", "### Then") in read.text
    assert read.tags == ()


# What is taken out keeps its name: it is where its document is found again

TITLE = f'Re: 1/2 \\ a#b "c" ? {"x" * 100}'


def mailbox(*subjects):
    head = "From ann@example.org Mon Jan  1 10:00:00 2024\nSubject: "
    return "".join(f"{head}{subject}\nFrom: Ann\n\nwords\n" for subject in subjects).encode()


def chats(*titles):
    return json.dumps([claude(1) | {"uuid": "0123456789", "name": title} for title in titles]).encode()


def references(*titles):
    return table(ZOTERO, *({"Key": "K#EY", "Title": title, "Date": "2025"} for title in titles))


def names_in(data, filename):
    return [each.filename for each in extract(data, filename)[1].attachments]


@pytest.mark.parametrize(
    ("made", "filename", "names"),
    [
        (mailbox, "a.mbox", [f"0001 Re- 1-2 - a#b -c- - {'x' * 80}.eml", "0002 message.eml"]),
        (chats, "a.json", [f"Re- 1-2 - a-b -c- - {'x' * 80} 01234567.md", "Conversation 01234567.md"]),
        (references, "a.csv", [f"Re 1 2 a b c {'x' * 80} K EY.md", "K EY.md"]),
    ],
)
def test_a_part_has_the_name_that_its_title_always_gave_it(made, filename, names):
    assert names_in(made(TITLE, ""), filename) == names


@pytest.mark.parametrize(
    ("made", "filename", "names"),
    mostly_rare(
        [
            (mailbox, "a.mbox", ["0001-10000.mbox", "10001-10001.mbox"]),
            (chats, "a.json", ["00001-10000.json", "10001-20000.json"]),
            (references, "a.csv", ["00001-10000.csv", "10001-20000.csv"]),
        ]
    ),
)
def test_more_than_a_hundred_batches_are_batches_of_batches(made, filename, names):
    assert names_in(made(*(f"Part {number}" for number in range(10_001))), filename) == names


def test_only_the_files_of_batches_are_called_like_them():
    [first, second] = batches(range(150))
    assert [batch_name(each, ".mbox") for each in (first, second)] == ["0001-0100.mbox", "0101-0150.mbox"]
    assert is_batch("0001-0100.mbox")
    assert not any(map(is_batch, ("0001 Trip.enex", "0001-0100.eml", "a 0001-0100.mbox")))


PNG = b"\x89PNG\r\n\x1a\n" + bytes(3000)


def note(title="Cave trip", body="<div>We meet at the cave.</div>", more=""):
    content = f'<?xml version="1.0"?><!DOCTYPE en-note SYSTEM "http://x/enml2.dtd"><en-note>{body}</en-note>'
    return f"<note><title>{title}</title><content><![CDATA[{content}]]></content>{more}</note>"


def export(*notes):
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE en-export SYSTEM "http://x/evernote-export4.dtd">\n'
    return f'{head}<en-export export-date="20260301T080000Z" version="10">{"".join(notes)}</en-export>'.encode()


def resource(data, mime, name=""):
    attributes = f"<resource-attributes><file-name>{name}</file-name></resource-attributes>" if name else ""
    coded = b64encode(data).decode()
    return f'<resource><data encoding="base64">\n{coded}\n</data><mime>{mime}</mime>{attributes}</resource>'


def media(data, mime="image/png"):
    return f'<en-media style="a > b" hash="{md5(data, usedforsecurity=False).hexdigest()}" type="{mime}"/>'


def read(*notes):
    doc_type, extracted = extract(export(*notes), "notes.enex", pictures=True)
    assert doc_type == "enex"
    return extracted


def test_an_export_lists_its_notes_and_each_is_a_document():
    extracted = read(note("Cave trip"), note("Bread &amp; salt", "<div>The rye starter.</div>"))
    assert extracted.text == "2 notes\n\nCave trip\nBread & salt\n"
    assert [each.filename for each in extracted.attachments] == ["0001 Cave trip.enex", "0002 Bread & salt.enex"]
    doc_type, second = extract(extracted.attachments[1].data, extracted.attachments[1].filename)
    assert (doc_type, second.title, second.text) == ("enex", "Bread & salt", "Bread & salt\n\nThe rye starter.\n")


def test_a_note_has_its_tags_dates_and_where_it_is_from():
    about = "<note-attributes><source-url>https://x.example/cave</source-url><author>Petra</author></note-attributes>"
    extracted = read(
        note(
            more=f"<created>20260214T080000Z</created><updated>20260301T090000Z</updated><tag>outdoors</tag><tag>night walk</tag>{about}"
        )
    )
    assert (extracted.title, extracted.tags, extracted.date) == (
        "Cave trip",
        ("outdoors", "night walk"),
        "2026-02-14T08:00:00Z",
    )
    assert "Source: https://x.example/cave\nAuthor: Petra\n" in extracted.text


def test_a_picture_is_a_few_words_in_its_place_and_another_file_a_document():
    lease = b"The lease ends in March."
    body = f"<div>Before</div><div>{media(PNG)}</div><div>between {media(lease, 'text/plain')} after</div>"
    extracted = read(note(body=body, more=resource(PNG, "image/png") + resource(lease, "text/plain", "lease.txt")))
    assert extracted.text == "Cave trip\n\nBefore\n[picture: image/png, 3 kB]\nbetween [lease.txt] after\n"
    assert [(each.filename, each.data) for each in extracted.attachments] == [("lease.txt", lease)]
    assert [each.read() for each in extracted.pictures] == [PNG]


def test_boxes_to_tick_lists_and_entities_are_read():
    body = "<div><en-todo checked='true'/>rope</div><div><en-todo/>lamp&nbsp;oil</div><ul><li>one</li></ul>"
    assert read(note(body=body)).text.endswith("[x] rope\n[ ] lamp oil\n\n- one\n")


def test_what_is_encrypted_is_said_and_counted():
    extracted = read(note(body="<div>Code: <en-crypt hint='h'>AbCd1234</en-crypt></div>"))
    assert extracted.text.endswith("Code: [encrypted]\n")
    assert extracted.omitted == {"encrypted": 1}


def test_files_that_are_damaged_are_counted_and_the_note_is_read():
    extracted = read(note(more="<resource><data>A</data><mime>application/pdf</mime></resource>"))
    assert "We meet at the cave." in extracted.text
    assert extracted.omitted == {"files": 1}


def test_a_large_export_becomes_exports_that_become_notes():
    extracted = read(*(note(f"Note {number}") for number in range(MAX_PARTS + 5)))
    assert [each.filename for each in extracted.attachments] == ["0001-0100.enex", "0101-0105.enex"] or len(
        extracted.attachments
    ) <= MAX_PARTS
    inner = [extract(each.data, each.filename)[1] for each in extracted.attachments]
    assert sum(len(each.attachments) or 1 for each in inner) == MAX_PARTS + 5


def test_a_note_that_was_cut_off_is_read_as_far_as_it_goes():
    source = export(note("First"), note("Second", "<div>The last words</div>"))
    extracted = extract(source[:-30], "notes.enex")[1]
    assert len(extracted.attachments) == 2
    assert "The last words" in extract(extracted.attachments[1].data, "n.enex")[1].text


def test_an_export_of_nothing_says_so():
    with pytest.raises(Unreadable, match="no note"):
        extract(export(), "notes.enex")


def test_bombs_are_not_unpacked():
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    bomb = (
        f'<?xml version="1.0"?><!DOCTYPE en-export [<!ENTITY e0 "lol">{entities}]><en-export>{note("&e9;")}</en-export>'
    )
    _, extracted = extract(bomb.encode(), "bomb.enex")
    assert len(extracted.text) < 10 * len(bomb)
    for piece in (
        "<note>",
        "<note><title>",
        "<note><content><![CDATA[<en-note><en-crypt>",
        "<note><content><![CDATA[<en-media ",
    ):
        source = f"<en-export>{piece * 20_000}</en-export>".encode()
        with suppress(Unreadable):
            extract(source, "bomb.enex")


def test_pictures_and_files_without_data_are_counted_each_for_itself():
    empty = "<resource><data></data><mime>{}</mime></resource>"
    extracted = read(note(more=empty.format("image/png") + empty.format("image/png") + empty.format("application/pdf")))
    assert (extracted.pictures, extracted.attachments, extracted.omitted) == ((), (), {"files": 3})


CLAUDE_CODE = [
    {"type": "summary", "summary": "Oil the pump", "leafUuid": "u4"},
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    {
        "type": "user",
        "isMeta": True,
        "message": {"role": "user", "content": "<local-command-caveat>x</local-command-caveat>"},
    },
    {"type": "user", "message": {"role": "user", "content": "# Where is the pump?\nThe token=abc123def is in .env"}},
    {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "thinking", "thinking": "hidden"}]}},
    {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "I'll look."}]}},
    {
        "type": "assistant",
        "message": {"role": "assistant", "content": [{"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}]},
    },
    {
        "type": "user",
        "toolUseResult": {"stdout": "a listing"},
        "message": {"role": "user", "content": [{"type": "tool_result", "content": "a listing"}]},
    },
    {"type": "assistant", "isSidechain": True, "message": {"role": "assistant", "content": "a subagent's words"}},
    {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "In the cellar."}]}},
    {"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": "This session continues."}},
]
CODEX = [
    {"type": "session_meta", "payload": {"id": "s", "cwd": "/home/ann", "base_instructions": {"text": "You code."}}},
    {
        "type": "response_item",
        "payload": {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}]},
    },
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "<environment_context>\n/home\n</environment_context>"},
                {"type": "input_text", "text": "# Where is the pump?"},
            ],
        },
    },
    {"type": "event_msg", "payload": {"type": "user_message", "message": "# Where is the pump?"}},
    {"type": "response_item", "payload": {"type": "function_call", "name": "shell", "arguments": "{}"}},
    {"type": "response_item", "payload": {"type": "function_call_output", "output": "a listing"}},
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "In the cellar."}],
        },
    },
]
GEMINI = [
    {"sessionId": "s", "projectHash": "h", "startTime": "2026-03-01T10:00:00Z", "kind": "main"},
    {"$set": {"messages": [{"id": "0", "type": "user", "content": "<session_context>a listing</session_context>"}]}},
    {"id": "1", "type": "user", "content": [{"text": "# Where is the pump?"}]},
    {"id": "2", "type": "gemini", "content": "In the c", "toolCalls": [{"name": "ls", "result": "a listing"}]},
    {"id": "2", "type": "gemini", "content": "In the cellar.", "toolCalls": [{"name": "ls", "result": "a listing"}]},
    {"id": "3", "type": "user", "content": "This was taken back."},
    {"$rewindTo": "3"},
    {"id": "4", "type": "info", "content": "Request cancelled."},
]


def session(entries):
    """A session as its program keeps it, which notes the time of each entry."""
    common = {"sessionId": "s", "parentUuid": None, "timestamp": "2026-03-01T10:20:30.123Z"}
    return "".join(
        json.dumps(common | each if "payload" not in each else each | {"timestamp": common["timestamp"]}) + "\n"
        for each in entries
    ).encode()


@pytest.mark.parametrize("entries", [CLAUDE_CODE, CODEX, GEMINI], ids=["Claude Code", "Codex", "Gemini CLI"])
def test_of_a_session_is_read_what_was_said_and_no_output_of_tools(entries):
    doc_type, read = extract(session(entries), "session.jsonl")
    assert (doc_type, read.date, read.tags) == ("json", "2026-03-01T10:20:30.123Z", ())
    assert read.text.startswith("## User, 2026-03-01 10:20\n\n### Where is the pump?\n")
    assert read.text.rstrip().endswith("In the cellar.")
    assert read.text.count("## Assistant") == 1
    for other in (
        "a listing",
        "hidden",
        "taken back",
        "continues",
        "You code",
        "a subagent's",
        "cancelled",
        "abc123def",
    ):
        assert other not in read.text


def test_a_session_is_called_as_its_program_calls_it_or_by_its_first_line():
    _, read = extract(session(CLAUDE_CODE), "a.jsonl")
    assert read.title == "Oil the pump"
    _, read = extract(session([*CLAUDE_CODE, {"type": "custom-title", "customTitle": "The pump of Ann"}]), "a.jsonl")
    assert read.title == "The pump of Ann"
    command = {"type": "user", "message": {"role": "user", "content": "<command-name>/x</command-name>"}}
    _, read = extract(session([command, *CLAUDE_CODE[3:]]), "a.jsonl")
    assert read.title == "Where is the pump?"


def test_a_whole_session_of_gemini_in_one_object_and_one_of_a_subagent_are_read():
    whole = GEMINI[0] | {"messages": [each for each in GEMINI if "id" in each][:3]}
    _, read = extract(json.dumps(whole, indent=2).encode(), "session.json")
    assert "### Where is the pump?" in read.text
    assert read.text.count("In the c") == 1
    alone = [each | {"isSidechain": True} for each in CLAUDE_CODE if each["type"] in ("user", "assistant")]
    _, read = extract(session(alone), "agent-1.jsonl")
    assert "In the cellar." in read.text


def test_a_session_in_which_nothing_was_said_and_other_lines_of_json_are_read_too():
    _, read = extract(session(CLAUDE_CODE[:2]), "a.jsonl")
    assert "nothing was said" in read.text
    other = b'{"role": "user", "content": "hello"}\n{"role": "assistant", "payload": "sessionId"}\n'
    assert extract(other, "a.jsonl")[1].text == other.decode()
    recipes = [{"id": 1, "timestamp": "2026-03-01", "instructions": "Bake the walrus cake."}]
    assert "walrus cake" in extract(json.dumps(recipes).encode(), "recipes.json")[1].text
    for broken in (
        b'{"sessionId": "s", "parentUuid": 1}\n{"$set": 1}\n{"$rewindTo": []}\n[1]\n"x',
        b'{"sessionId": [], "projectHash": {}, "messages": 5}',
    ):
        assert extract(broken, "a.jsonl")[1].text


def test_messages_without_ids_that_are_set_at_once_are_all_kept_and_many_are_taken_back_soon():
    written = {"$set": {"messages": [{"type": "user", "content": f"Pump {number}."} for number in range(3)]}}
    many = [{"id": str(number), "type": "user", "content": f"Hose {number}."} for number in range(20_000)]
    back = [{"$rewindTo": "none"}] * 20_000
    _, read = extract(session([GEMINI[0], written, *many, *back, {"$rewindTo": "1"}]), "a.jsonl")
    assert all(f"Pump {number}." in read.text for number in range(3))
    assert ("Hose 0." in read.text, "Hose 1." in read.text) == (True, False)


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-Ab3dEf6hIj9kLmN0pQrS",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "AKIAIOSFODNN7EXAMPLE",
        f"kb_{'Ab3dEf' * 7}",
        "gsk_Ab3dEf6hIj9kLmN0pQrS",
        '{\\"passwort\\": \\"swordfish7\\"}',
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END PGP PRIVATE KEY BLOCK-----",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----",
        *("password: swordfish7", "DB_PASSWORD='swordfish7'", '"api_key": "swordfish7"'),
        *("https://ann:swordfish7@git.example.org/x.git", "Authorization: Bearer swordfish7swordfish7"),
    ],
)
def test_secrets_of_known_forms_are_left_out_of_a_session(secret):
    said = [
        {"type": "user", "message": {"role": "user", "content": f"Use {secret} for kb_upload_finish, npm_config_cache"}}
    ]
    _, read = extract(session(said), "a.jsonl")
    assert "[secret left out]" in read.text
    assert "for kb_upload_finish, npm_config_cache" in read.text
    assert not re.search(r"swordfish7|AKIAI|Ab3dEf|16C7e4|b3Blbn|eyJhbG", f"{read.title}{read.text}")
