"""Outlines, several documents, shorter answers, threads, and lists with text and changes."""

from __future__ import annotations

import asyncio
import re

import pytest
import quicktok

from kb.client.client import EngineClient
from tests.conftest import KEY
from tests.mcp.conftest import call, done, noted, refusal

SECTIONS = "\n\n".join(
    f"## {number}. Section {number}\n\n" + f"Section {number} tells of the harbour and its ships. " * 40
    for number in range(1, 7)
)


@pytest.fixture(scope="module")
def book(server):
    """The id of a note of several sections."""

    async def add():
        async with EngineClient(server.url, KEY) as engine:
            note = await engine.add_note(text=f"# The harbour\n\nIntroduction.\n\n{SECTIONS}", wait=60)
            return note["document_id"]

    return asyncio.run(add())


def tokens(result):
    return len(quicktok.get_encoding("o200k_base").encode(result.content[0].text))


async def test_an_outline_lists_the_headings_with_their_chunks(agent, book):
    result = await agent.call_tool("kb_get", {"document_id": book, "outline": True})
    entries = result.structured_content["outline"]
    assert [entry.get("heading") for entry in entries][-6:] == [f"{number}. Section {number}" for number in range(1, 7)]
    assert tokens(result) < 300
    third = next(entry for entry in entries if entry.get("heading") == "3. Section 3")
    read = await call(agent, "kb_get", document_id=book, from_chunk=third["chunk"], around=0)
    assert "Section 3 tells" in read["chunks"][0]["text"]
    by_name = await call(agent, "kb_get", document_id=book, heading="Section 3")
    assert by_name["chunks"][0]["index"] == third["chunk"]
    assert (await refusal(agent, "kb_get", document_id=book, outline=True, page=1)).startswith("outline: ")


async def test_a_long_outline_says_how_to_go_on_and_reaches_the_end_without_a_gap(agent, word):
    text = "".join(f"## {word} part {number}\n\nx\n\n" for number in range(900))
    document = (await call(agent, "kb_addnote", text=text))["document_id"]
    found, start = list[str](), 0
    while start is not None:
        answer = await call(agent, "kb_get", document_id=document, outline=True, max_tokens=4000, from_chunk=start)
        found += [entry["heading"] for entry in answer["outline"]]
        more = re.search(rf"kb_get\(document_id={document}, outline=true, from_chunk=(\d+)\)", answer["rest"])
        start = int(more[1]) if more else None
    assert found == [f"{word} part {number}" for number in range(900)]


async def test_a_document_without_headings_has_an_outline_of_first_lines(agent, word):
    document = await done(agent, await call(agent, "kb_addnote", text=f"{word}.\n" + "One more line here.\n" * 200))
    entries = (await call(agent, "kb_get", document_id=document, outline=True))["outline"]
    assert entries[0] == {"chunk": 0, "line": f"{word}."}


async def test_the_length_of_an_answer_can_be_given(agent, book):
    result = await agent.call_tool("kb_get", {"document_id": book, "max_tokens": 1000})
    assert 300 < tokens(result) < 1000
    assert result.structured_content["next_chunk"]
    assert f"kb_get(document_id={book}, from_chunk=" in result.content[0].text


@pytest.mark.parametrize("most", [150, 200, 320, 600])
async def test_the_length_is_a_limit_and_reading_on_reaches_the_end_without_a_gap(agent, book, most):
    whole = "".join(chunk["text"] for chunk in (await call(agent, "kb_get", document_id=book))["chunks"])
    text, calls, arguments = "", 0, {"from_chunk": 0, "max_tokens": most}
    while arguments:
        result = await agent.call_tool("kb_get", {"document_id": book, **arguments})
        data, calls = result.structured_content, calls + 1
        assert tokens(result) <= arguments["max_tokens"]
        if found := re.search(
            r"is cut at …; kb_get\(document_id=\d+, from_chunk=(\d+), max_tokens=(\d+)\)", data["rest"]
        ):
            arguments = {"from_chunk": int(found[1]), "max_tokens": int(found[2])}
            continue
        text += "".join(chunk["text"] for chunk in data["chunks"])
        arguments = {"from_chunk": data["next_chunk"], "max_tokens": most} if data["next_chunk"] else None
    assert text == whole
    several = await agent.call_tool(
        "kb_get", {"document_ids": [book, book + 1], "max_tokens": most}, raise_on_error=False
    )
    assert tokens(several) <= most
    outline = await agent.call_tool("kb_get", {"document_id": book, "outline": True, "max_tokens": most})
    assert tokens(outline) <= most


async def test_several_documents_are_read_at_once_and_share_the_length(agent, word, book):
    short = (await noted(agent, text=f"{word} is short", tags=[word]))["document_id"]
    result = await agent.call_tool("kb_get", {"document_ids": [short, book, 10**9], "max_tokens": 1500})
    first, second = result.structured_content["documents"]
    assert [first["id"], second["id"]] == [short, book]
    assert first["chunks"][0]["text"] == f"{word} is short"
    assert tokens(result) < 1500
    text = result.content[0].text
    assert "from_chunk=" in text
    assert "These documents do not exist or are in the bin: 1000000000." in text
    for ids in (f"[{short}, {book}]", f"{short},{book}"):
        assert len((await call(agent, "kb_get", document_ids=ids))["documents"]) == 2
    assert len((await call(agent, "kb_get", document_id=[short, book]))["documents"]) == 2
    assert "document_id" in await refusal(agent, "kb_get", document_ids=[10**9])
    assert (await refusal(agent, "kb_get", document_ids=[short], page=1)).startswith("document_ids: ")
    assert "at most 50" in await refusal(agent, "kb_get", document_ids=list(range(1, 60)))


async def test_a_short_answer_cuts_no_text_without_a_call_that_reads_on(agent, word):
    ids = [(await noted(agent, text=f"{word} {number} " + "and so on " * 40, date="2026-01-02"))["document_id"]
           for number in range(6)]  # fmt: skip
    seen, left = [], ids
    while left:
        result = await agent.call_tool("kb_get", {"document_ids": left, "max_tokens": 50})
        found = result.structured_content["documents"]
        for each in found:  # a long tag can divide a note into two chunks
            is_whole = each["next_chunk"] is None and each["chunks"][-1]["text"].endswith("and so on ")
            assert is_whole or f"kb_get(document_id={each['id']}, from_chunk=" in each["rest"]
        assert result.content[0].text.count("never instructions") == 1
        seen += [each["id"] for each in found]
        left = [id_ for id_ in ids if id_ not in seen]
        assert (f"kb_get(document_ids={left})" in result.content[0].text) == bool(left)
    assert seen == ids
    outlined = await call(agent, "kb_get", document_id=ids[0], outline=True)
    assert outlined["outline"][0]["line"].startswith(f"{word} 0 and so on")


async def test_around_gives_the_notes_before_and_after_in_a_thread(agent, word):
    dates = ("2026-03-03", "2026-03-01", "2026-03-05", "2026-03-02", "2026-03-04")
    ids = {
        date: (await noted(agent, text=f"{word} said on {date}", date=date, thread=word))["document_id"]
        for date in dates
    }
    read = await call(agent, "kb_get", document_id=ids["2026-03-03"], around=1)
    assert [each["id"] for each in read["documents"]] == [ids[f"2026-03-0{day}"] for day in (2, 3, 4)]
    result = await agent.call_tool("kb_get", {"document_id": ids["2026-03-01"], "around": 9})
    assert [each["id"] for each in result.structured_content["documents"]] == [ids[date] for date in sorted(dates)]
    assert f"{word} said on 2026-03-05" in result.content[0].text


async def test_a_list_shows_the_first_characters_of_each_document(agent, word):
    for number in (1, 2):
        await noted(agent, text=f"{word} {number}. " + "The pump was oiled again. " * 30, tags=[word], thread=word)
    result = await agent.call_tool("kb_list", {"tags": [f"thread:{word}"], "text": 200, "sort": "id"})
    texts = [each["text"] for each in result.structured_content["documents"]]
    assert [text[: len(word) + 3] for text in texts] == [f"{word} 1.", f"{word} 2."]
    assert all(len(text) == 201 and text.endswith("…") for text in texts)
    assert texts[0] in result.content[0].text


async def test_a_list_says_what_changed_and_when(agent, word):
    ids = [(await noted(agent, text=f"{word} {number}", tags=[word]))["document_id"] for number in range(4)]
    await call(agent, "kb_update_note", document_id=ids[0], tags_add=["more"])
    await call(agent, "kb_update_note", document_id=ids[1], append="More.")
    await call(agent, "kb_update_note", document_id=ids[2], text="Wrong.")
    await call(agent, "kb_undo", document_id=ids[2], version=1)
    result = await agent.call_tool("kb_list", {"tags": [word], "updated_after": "since 2 hours ago"})
    kinds = {each["id"]: each["change"] for each in result.structured_content["documents"]}
    assert kinds == dict(zip(ids, ("tags", "text", "reverted to version 1", "added"), strict=True))
    changed = result.structured_content["documents"][0]["changed"][11:16]
    assert f" · changed {changed}, reverted to version 1\n" in result.content[0].text


async def test_a_list_by_date_is_in_the_order_of_the_dates_it_shows(agent, word):
    dates = ("2026-01-05", "2025-12-31", "2026-02-01", "2026-01-05")
    for number, date in enumerate(dates):
        await noted(agent, text=f"{word} {number}", date=date, tags=[word])
    seen, cursor = [], ""
    while cursor is not None:
        page = await call(agent, "kb_list", tags=[word], sort="date", limit=1, cursor=cursor)
        seen += [each["date"] for each in page["documents"]]
        cursor = page["next_cursor"]
    assert seen == sorted(dates, reverse=True)
    assert "changed" not in page["documents"][0]
    recent = await call(agent, "kb_list", tags=[word], sort="recent")
    assert [each["title"] for each in recent["documents"]] == [f"{word} {number}" for number in (3, 2, 1, 0)]


async def test_a_date_and_tags_that_all_results_have_are_said_once(agent, word):
    for number in range(3):
        await noted(agent, text=f"{word} {number}", date="2026-02-03", tags=[word, f"only-{number}"])
    for tool, arguments in (("kb_search", {"query": word, "fts_only": True}), ("kb_list", {"tags": [word]})):
        result = await agent.call_tool(tool, arguments)
        text = result.content[0].text
        assert text.count(f"tags {word}") == 1, tool
        assert all(f" · tags only-{number}" in text for number in range(3)), tool
        found = next(value for value in result.structured_content.values() if isinstance(value, list))
        assert all(word in each["tags"] for each in found), tool
    assert f"\nAll: tags {word}.\n" in text
    searched = (await agent.call_tool("kb_search", {"query": word})).content[0].text
    assert f"\n>>> All: notes · 2026-02-03 · tags {word}.\n" in searched


async def test_a_search_does_not_say_the_tags_that_it_was_asked_for(agent, word):
    for number in range(2):
        await noted(agent, text=f"{word} {number}", date="2026-02-03", tags=[word, f"{word}/below"])
    result = await agent.call_tool("kb_search", {"query": word, "tags": [word]})
    assert f"\n>>> All: notes · 2026-02-03 · tags {word}/below.\n" in result.content[0].text
    assert all(word in found["tags"] for found in result.structured_content["results"])


@pytest.mark.parametrize("tool", ["kb_search", "kb_list"])
async def test_a_tag_includes_the_tags_below_it_unless_the_agent_wants_it_exactly(agent, word, tool):
    for tag in (word, f"{word}/below"):
        await noted(agent, text=f"{word} under {tag}", tags=[tag])
    query = {"query": word} if tool == "kb_search" else {}
    counts = []
    for exact in (False, True):
        found = await call(agent, tool, **query, tags=[word], tag_exact=exact)
        counts.append(len(found["results" if tool == "kb_search" else "documents"]))
    assert counts == [2, 1]


@pytest.mark.parametrize("tool", ["kb_search", "kb_list"])
async def test_the_word_null_in_a_filter_means_no_filter(agent, word, tool):
    await noted(agent, text=f"{word} is kept", tags=[word])
    query = {"query": word} if tool == "kb_search" else {}
    nothing = {"doc_type": "null", "source_prefix": "null", "after": "null", "tag_any": ["null"], "tag_not": "null"}
    found = await call(agent, tool, **query, tags=[word], **nothing)
    assert len(found["results" if tool == "kb_search" else "documents"]) == 1


async def test_a_short_answer_shows_the_place_asked_for_before_its_neighbours(agent, word):
    document = await done(agent, await call(agent, "kb_addnote", text=f"# {word}\n\nBegin.\n\n{SECTIONS}"))
    section = (await call(agent, "kb_get", document_id=document, heading="Section 4"))["chunks"]
    hit = section[0]["index"]
    found = await call(agent, "kb_search", query="Section 4", document_id=document, top=1)
    best = found["results"][0]
    ways = (
        (best["index"], {"query": "Section 4"}),
        (hit, {"chunk_id": section[0]["id"]}),
        (hit, {"from_chunk": hit, "around": 2}),
        (hit, {"heading": "Section 4", "around": 2}),
    )
    for place, way in ways:
        for most in (1, 200, 1000, 1500, 2000, 5000):
            result = await agent.call_tool("kb_get", {"document_id": document, **way, "max_tokens": most})
            shown = [chunk["index"] for chunk in result.structured_content["chunks"]]
            assert place in shown, (way, most)
            assert shown == list(range(shown[0], shown[-1] + 1)), (way, most)
            assert tokens(result) <= most or shown == [place], (way, most)
            if most == 1:
                assert shown == [place], way
        assert len(shown) >= 5, way


async def test_neighbours_of_a_place_are_shown_by_turns(agent, book):
    lengths = []
    for most in range(1000, 5000, 250):
        way = {"from_chunk": 4, "around": 3, "max_tokens": most}
        shown = [chunk["index"] for chunk in (await call(agent, "kb_get", document_id=book, **way))["chunks"]]
        assert 0 <= shown[-1] + shown[0] - 8 <= 1, most
        lengths.append(len(shown))
    assert lengths == sorted(lengths)
    assert lengths[-1] == 7
