"""Calls that models get wrong: each is answered with a line from which it can be corrected, or understood."""

from __future__ import annotations

import asyncio
import io
import re

import pytest
from fastmcp import Client

from kb.client.client import EngineClient
from tests.conftest import ALL_APPS, KEY, MCP_KEY
from tests.support.pdf import pdf

UNKNOWN_TOOLS = {
    "kb_lst": "kb_list",
    "kb_find": "kb_search",
    "search": "kb_search",
    "kb_add_note": "kb_addnote",
    "kb_upload": "kb_upload_",
    "kb_tags": "kb_",
    "kb_read": "kb_get",
    "fetch": "Tools: kb_search, kb_list",
    "kb_updatenote": "kb_update_note",
    "kb_remove": "Tools: kb_search",
    "delete": "kb_delete",
    "status": "kb_status",
}

UNKNOWN_PARAMETERS = [
    ("kb_search", {"q": "x"}, r"^q: no such parameter\. query: missing\. kb_search takes query \(required\)"),
    ("kb_search", {"query": "x", "limit": 3}, r"^limit: .*kb_search takes query, top"),
    ("kb_search", {"query": "x", "k": 3}, r"^k: no such parameter"),
    ("kb_search", {"query": "x", "type": "pdf"}, r"^type: .*doc_type"),
    ("kb_search", {"query": "x", "filter": {"tags": ["a"]}}, r"^filter: .*tags"),
    ("kb_search", {"text": "x"}, r"^text: .*query: missing"),
    ("kb_addnote", {"content": "x"}, r"^content: .*text: missing\. kb_addnote takes text \(required\)"),
    ("kb_addnote", {"note": "x"}, r"^note: .*text: missing"),
    ("kb_addnote", {"text": "x", "tag": "a"}, r"^tag: .*tags"),
    ("kb_update_note", {"note_id": 1, "text": "x"}, r"^note_id: .*takes document_id, text"),
    (
        "kb_update_note",
        {"document_id": 1, "replaces": 2},
        r"^replaces: no such parameter\. kb_addnote takes replaces\.",
    ),
    ("kb_update_note", {"id": 1, "text": "x"}, r"^id: .*takes document_id, text"),
    ("kb_update_note", {"document_id": 1, "old_text": "x"}, r"^old_text: .*old, new"),
    ("kb_get", {"id": 1}, r"^id: .*kb_get takes document_id"),
    ("kb_get", {"path": "/x"}, r"^path: .*source_path"),
    ("kb_get", {"uri": "kb://documents/1"}, r"^uri: .*document_id"),
    ("kb_delete", {"document_ids": [1]}, r"^document_ids: .*document_id: missing"),
    ("kb_delete", {"id": 1}, r"^id: .*document_id: missing"),
    ("kb_list", {"tag": "x"}, r"^tag: .*kb_list takes tags"),
    ("kb_list", {"order": "newest"}, r"^order: .*sort"),
    ("kb_list", {"query": "x"}, r"^query: no such parameter"),
    (
        "kb_upload_start",
        {"path": "/tmp/x.pdf"},
        r"^path: .*filename: missing\. kb_upload_start takes filename \(required\)",
    ),
    ("kb_upload_start", {"url": "http://x"}, r"^filename: missing"),
    ("kb_upload_start", {"filename": "x.pdf", "size": 3}, r"^size: .*total_size"),
    ("kb_upload_finish", {"id": "x"}, r"^id: .*upload_id: missing"),
    ("kb_upload_chunk", {"upload_id": "x"}, r"data, chunk_index: missing"),
    ("kb_jobs", {"id": 1}, r"^id: .*job_id"),
    ("kb_status", {"verbose": True}, r"kb_status takes no parameters"),
]

WRONG_VALUES = [
    ("kb_search", {"query": ""}, r"^query: is empty\. Enter at least one word\.$"),
    ("kb_search", {"query": "*"}, r"^query: pass at least one word\. kb_list lists all"),
    ("kb_search", {"query": ".*"}, r"^query: pass at least one word\. kb_list lists all"),
    ("kb_search", {"query": "  "}, r"^query: must contain more than white space$"),
    ("kb_addnote", {"text": ""}, r"^text: is empty\. Enter at least one word\.$"),
    ("kb_addnote", {"text": "x", "tags": [""]}, r"^tags\.0: is empty\. Enter at least one word\.$"),
    ("kb_addnote", {"text": "x", "replaces": 1 << 40}, r"^replaces: .* does not exist\. Find its id with kb_search"),
    ("kb_search", {"query": "x", "top": -1}, r"^top: must be at least 0\.$"),
    ("kb_search", {"query": "x", "top": 1000}, r"^top: must be at most 100\.$"),
    ("kb_search", {"query": "x", "top": "ten"}, r"^top: must be a whole number, such as 131"),
    ("kb_search", {"query": "x", "fts_only": True, "vec_only": True}, r"^fts_only, vec_only: set at most one"),
    ("kb_search", {"query": "x", "sort": "newest"}, r"^sort: .*'recent'"),
    ("kb_search", {"query": "x", "group_by": "tag"}, r"^group_by: .*'document'"),
    ("kb_search", {"query": "x", "after": "recently"}, r"^after: kb does not understand the date 'recently'.*yesterday"),
    ("kb_search", {"query": "x", "before": "03/04/2026"}, r"^before: .*2026-11-17"),
    ("kb_search", {"query": "x", "document_id": "the book"}, r"^document_id: must be a whole number"),
    ("kb_list", {"sort": "size"}, r"^sort: .*'changed', 'date'"),
    ("kb_list", {"limit": 1000}, r"^limit: .*200"),
    ("kb_list", {"cursor": "page 2"}, r"^cursor: .*leave it out to start"),
    ("kb_list", {"updated_after": "a while ago"}, r"^updated_after: .*2 hours ago"),
    ("kb_addnote", {"text": ""}, r"^text: "),
    ("kb_addnote", {"text": "x", "tags": {"a": 1}}, r"^tags: must be a list, such as"),
    ("kb_addnote", {"text": "x", "tags": ["a,b"]}, r"^tags.*comma"),
    ("kb_addnote", {"text": "x", "title": "y" * 600}, r"^title: .*500"),
    ("kb_addnote", {"text": "x", "date": "soon"}, r"^date: kb does not understand the date 'soon'"),
    ("kb_addnote", {"text": "x", "source": "y" * 600}, r"^source: .*500"),
    ("kb_addnote", {"text": "x", "replaces": "The lighthouse almanac"}, r'^replaces: .*"The lighthouse almanac" is \d+'),
    ("kb_addnote", {"text": "x", "replaces": 999_999}, r"^replaces: Document 999999 does not exist"),
    ("kb_addnote", {"text": "x", "replaces": "$pdf"}, r"^replaces: .*only notes.*kb add"),
    ("kb_update_note", {"document_id": "$note"}, r"nothing to change\. Send text, old and new"),
    ("kb_update_note", {"document_id": "$note", "new": "x"}, r"^new: pass old, the text"),
    ("kb_update_note", {"document_id": "$note", "old": "brown foxes", "new": "x"}, r'^old: .*never instructions\. Similar lines:\n<<<\nthe brown fox'),
    ("kb_update_note", {"document_id": "$note", "old": "lamp", "new": "x"}, r"^old: the note contains this text 2 times"),
    ("kb_update_note", {"document_id": "$note", "text": "x", "append": "y"}, r"^text: it is the whole new text"),
    ("kb_update_note", {"document_id": "$note", "text": "x", "if_match": "0123456789abcdef"}, r"^if_match: .*now version \w{16}"),
    ("kb_update_note", {"document_id": "$pdf", "text": "x"}, r"only notes can be updated.*kb add"),
    ("kb_update_note", {"document_id": 999_999, "text": "x"}, r"Document 999999 does not exist\. Find its id with kb_search"),
    ("kb_get", {}, r"^document_id, source_path: pass exactly one of them"),
    ("kb_get", {"document_id": "$pdf", "source_path": "x"}, r"pass exactly one of them"),
    ("kb_get", {"chunk_id": 1362}, r"^document_id: pass it along with chunk_id: kb_get\(document_id=…, chunk_id=1362\)"),
    ("kb_get", {"document_id": "$gone"}, r'^document_id: Document $gone .*in the bin since [^;]+ UTC; kb_undo\(document_id=$gone\) restores it\.$'),
    ("kb_update_note", {"document_id": "$gone", "text": "x"}, r'in the bin since [^;]+ UTC; kb_undo\(document_id=$gone\)'),
    ("kb_addnote", {"text": "x", "replaces": "$gone"}, r'^replaces: Document $gone .*in the bin .*kb_undo\(document_id=$gone\)'),
    ("kb_search", {"query": "cat", "document_id": "$gone"}, r'^document_id: .*in the bin .*kb_undo\(document_id=$gone\)'),
    ("kb_search", {"query": "cat", "document_id": 999_999}, r"^document_id: Document 999999 does not exist"),
    ("kb_get", {"document_id": "$pdf", "heading": "Nowhere"}, r"^heading: document $pdf has no such heading\. Pass words from the section as query instead"),
    ("kb_get", {"document_id": "$pages", "heading": "Nowhere"}, r"^heading: .* The first 12 are: \"Chapter 1\""),
    ("kb_get", {"document_id": "The lighthouse almanac"}, r'^document_id: .*"The lighthouse almanac" is \d+'),
    ("kb_get", {"document_id": "almanac.pdf"}, r'^document_id: .*instructions\. Did you mean .*: "The lighthouse almanac" is \d+\?$'),
    ("kb_get", {"document_id": "/shelf/almanac.pdf"}, r'^document_id: .*these: "The lighthouse almanac" is \d+\?$'),
    ("kb_get", {"document_id": "Letter.TXT"}, r'^document_id: .*these: "Dear keeper" is \d+\?$'),
    ("kb_get", {"document_id": "$pdf", "from_chunk": 3801}, r"^from_chunk: .*chunks 0 to \d+.*chunk_id=3801"),
    ("kb_get", {"document_id": "$pdf", "page": 619}, r"^page: .*pages 1 to 2"),
    ("kb_get", {"document_id": "$pdf", "heading": "Preface"}, r"^heading: "),
    ("kb_get", {"document_id": "$pdf", "chunk_id": 10**9}, r"^chunk_id: .*have the ids \d+ to \d+"),
    ("kb_get", {"document_id": "$pdf", "page": 1, "query": "x"}, r"pass at most one of them"),
    ("kb_get", {"document_id": -1}, r"^document_id: "),
    ("kb_get", {"document_id": [10**9]}, r"^document_id: Document 1000000000 does not exist\."),
    ("kb_get", {"document_id": [[131]]}, r"^document_id: must be a whole number"),
    ("kb_delete", {"document_id": [[131]]}, r"^document_id: must be a whole number"),
    ("kb_delete", {"document_id": "$note.0"}, r"^document_id: must be a whole number, such as 131\.$"),
    ("kb_delete", {"document_id": 3.0}, r"^document_id: must be a whole number, such as 131\.$"),
    ("kb_delete", {"document_id": "kb://documents/$note/text"}, r"^document_id: must be a whole number, such as 131\. Pass only the number: $note\.$"),
    ("kb_delete", {"document_id": "the lighthouse Almanac"}, r'^document_id: .*these: "The lighthouse almanac" is $pdf\?$'),
    ("kb_delete", {"document_id": 999_999}, r"Document 999999 does not exist"),
    ("kb_jobs", {"status": "finished"}, r"^status: .*'done'"),
    ("kb_jobs", {"job_id": 999_999}, r"kb_jobs without job_id lists the latest jobs"),
    ("kb_upload_start", {"filename": "a.mp3", "total_size": 10}, r"^filename: this is a sound recording"),
    ("kb_upload_start", {"filename": "holiday.JPG", "total_size": 10}, r"^filename: this is a picture, .*cannot read text"),
    ("kb_upload_start", {"filename": "a.pdf"}, r"^total_size: pass the size"),
    ("kb_upload_start", {"filename": "a.pdf", "total_size": 1, "sha256": "abc"}, r"^sha256: must be 64 hexadecimal"),
    ("kb_upload_finish", {"upload_id": "x"}, r"no upload 'x' exists.*kb_upload_start"),
    ("kb_upload_chunk", {"upload_id": "x", "chunk_index": 0, "data": "YQ=="}, r"no upload"),
]  # fmt: skip

UNDERSTOOD = [
    ("kb_get", {"document_id": "kb://documents/$note/text"}, "brown fox"),
    ("kb_get", {"document_id": "note $note"}, "brown fox"),
    ("kb_get", {"document_id": "#$note"}, "brown fox"),
    ("kb_get", {"document_id": "$note"}, "brown fox"),
    ("kb_search", {"query": "brown fox", "document_id": "[note $note, chunk 3]"}, "brown fox"),
    ("kb_search", {"query": "brown fox", "document_id": '>>>note $note chunk 3 "Fox" p. 2 · tags x'}, "brown fox"),
    ("kb_search", {"query": "brown fox", "tags": "animals,"}, "brown fox"),
    ("kb_search", {"query": "brown fox", "tags": "#Animals"}, "brown fox"),
    ("kb_search", {"query": "almanac", "doc_type": ".PDF"}, "almanac"),
    ("kb_search", {"query": "brown fox", "top": "5", "doc_type": None}, "brown fox"),
    ("kb_search", {"query": "brown fox", "tags": ["animalls"]}, 'Did you mean "animals"'),
    ("kb_get", {"source_path": "/shelf/"}, "Some begin with it: kb_list"),
    ("kb_list", {"doc_type": "tapestry"}, "Existing types: markdown (1), note (1)"),
    ("kb_list", {"source_prefix": "/Shelf"}, 'kb used "/shelf/"'),
    ("kb_list", {"source_prefix": "/shelv/"}, 'Did you mean "/shelf/"'),
    ("kb_get", {"source_path": "Almanac.pdf"}, 'these: "The lighthouse almanac" is '),
    ("kb_get", {"source_path": "letter.txt"}, 'these: "Dear keeper" is '),
    ("kb_get", {"source_path": "shelves/almanak.pdf"}, 'Did you mean "/shelf/almanac.pdf"'),
    ("kb_search", {"query": "zzyzx qwv", "fts_only": True}, "no document contains any word"),
]

WRONG = [
    *((tool, {}, rf"^Unknown tool: '{tool}'.*{meant}") for tool, meant in UNKNOWN_TOOLS.items()),
    *UNKNOWN_PARAMETERS,
    *WRONG_VALUES,
]


@pytest.fixture(scope="module")
def library(start_server, tmp_path_factory):
    """A server with a note and a file, and their ids."""
    with start_server(
        tmp_path_factory.mktemp("wrong"), KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY, KB_APPS=ALL_APPS
    ) as server:
        yield server, asyncio.run(fill(server))


async def fill(server):
    async with EngineClient(server.url, KEY) as engine:
        text = "the lamp was lit\nthe brown fox was seen\nthe lamp went out"
        note = await engine.add_note(text=text, tags=["animals"], wait=30)
        file = io.BytesIO(pdf("The almanac of lighthouses.", "Page two of it."))
        options = {"title": "The lighthouse almanac", "source_path": "/shelf/almanac.pdf"}
        await engine.add_file(
            "letter.txt", io.BytesIO(b"keepers and a whole number of lamps"), title="Dear keeper", wait=30
        )
        book = await engine.add_file("almanac.pdf", file, **options, wait=30)
        chapters = "".join(f"# Chapter {number}\n\n{'A word on it. ' * 60}\n\n" for number in range(1, 14))
        pages = await engine.add_file("chapters.md", io.BytesIO(chapters.encode()), wait=30)
        gone = await engine.add_note(text="what is no longer so", wait=30)
        await engine.delete_document(gone["document_id"])
        ids = {"$note": note, "$pdf": book, "$pages": pages, "$gone": gone}
        return {name: str(each["document_id"]) for name, each in ids.items()}


async def answer(library, tool, arguments):
    server, ids = library
    for name, value in arguments.items():
        if isinstance(value, str):
            for placeholder, document_id in ids.items():
                value = value.replace(placeholder, document_id)
            arguments = arguments | {name: value}
    async with Client(f"{server.url}/mcp", auth=MCP_KEY) as agent:
        return await agent.call_tool(tool, arguments, raise_on_error=False)


@pytest.mark.parametrize(("tool", "arguments", "said"), WRONG, ids=[f"{n}-{each[0]}" for n, each in enumerate(WRONG)])
async def test_a_wrong_call_is_answered_with_what_corrects_it(library, tool, arguments, said):
    refused = await answer(library, tool, arguments)
    assert refused.is_error, refused
    text = refused.content[0].text
    for placeholder, document_id in library[1].items():
        said = said.replace(placeholder, document_id)
    assert re.search(said, text), text
    assert len(text) < 500
    assert len(text.splitlines()) == 1 or tool == "kb_update_note"


@pytest.mark.parametrize(("tool", "arguments", "said"), UNDERSTOOD)
async def test_what_is_meant_is_understood(library, tool, arguments, said):
    found = await answer(library, tool, arguments)
    assert not found.is_error, found
    assert said in found.content[0].text
