"""What an agent can see of a document's past, and bring back."""

from __future__ import annotations

import re

import pytest

from kb_mcp.tools.token_budget import NOTICE
from tests.mcp.conftest import call, done, refusal


async def test_an_agent_takes_its_mistakes_back(agent, word):
    id_ = await done(agent, await call(agent, "kb_addnote", text=f"{word} one", tags=[word]))
    await call(agent, "kb_update_note", document_id=id_, text=f"{word} two")
    listed = await call(agent, "kb_history", document_id=id_)
    assert listed["notice"] == NOTICE
    assert [(version["number"], version["title"]) for version in listed["versions"]] == [
        (2, f"{word} two"),
        (1, f"{word} one"),
    ]
    assert (await call(agent, "kb_history", document_id=id_, action="show", version=1))["text"] == f"{word} one"
    reverted = await call(agent, "kb_history", document_id=id_, action="revert", version=1)
    assert (reverted["id"], reverted["title"]) == (id_, f"{word} one")
    await call(agent, "kb_delete", document_id=id_)
    assert "deleted_at" in await call(agent, "kb_history", document_id=id_)
    assert (await call(agent, "kb_history", document_id=id_, action="restore"))["tags"] == [word]
    [found] = (await call(agent, "kb_search", query=word, fts_only=True))["results"]
    assert found["text"] == f"{word} one"


async def test_history_says_who_came_by_the_gateway(agent, engine, word):
    id_ = await done(agent, await call(agent, "kb_addnote", text=word))
    [version] = (await engine.history(id_))["versions"]
    assert version["client"].startswith("kb/")
    assert re.search(r" \(mcp(; .+)?\)$", version["client"])


@pytest.mark.parametrize(
    "arguments",
    [{"action": "show"}, {"action": "revert"}, {"action": "list", "version": 1}, {"action": "restore", "version": 1}],
)
async def test_a_version_is_given_where_one_is_needed_and_nowhere_else(agent, arguments):
    assert "version: " in await refusal(agent, "kb_history", document_id=1, **arguments)


async def test_a_wrong_version_or_document_is_answered_with_where_to_find_the_right_one(agent, word):
    note = await done(agent, await call(agent, "kb_addnote", text=word))
    wrong = {"action": "show", "version": 7}
    refused = await refusal(agent, "kb_history", document_id=note, **wrong)
    assert refused == f"version: There is no version 7 of document {note}. kb_history without it lists them."
    assert (await refusal(agent, "kb_history", document_id=10**9, **wrong)).startswith("document_id: ")


async def test_a_list_of_versions_keeps_to_the_budget(agent, engine, word):
    id_ = await done(agent, await call(agent, "kb_addnote", text=word))
    for number in range(55):
        await engine.change_tags(id_, add=[f"{word}{number}"], remove=[f"{word}{number - 1}"])
    listed = await call(agent, "kb_history", document_id=id_)
    assert len(listed["versions"]) == 50
    assert "older versions" in listed["rest"]


@pytest.mark.slow
async def test_a_long_version_is_shown_part_by_part_to_its_end(agent, word):
    whole = f"{word} " + "Ledgers were kept by patient clerks, line by line. " * 2000
    id_ = await done(agent, await call(agent, "kb_addnote", text=whole))
    read = ""
    while True:
        show = {"document_id": id_, "action": "show", "version": 1, "start": len(read)}
        result = await agent.call_tool("kb_history", show)
        read += result.structured_content["text"]
        if "rest" not in result.structured_content:
            break
        way = f'kb_history(document_id={id_}, action="show", version=1, start={len(read)}).'
        assert result.content[0].text.endswith(f"to {len(read)} of {len(whole)}: read on with {way}")
    assert read == whole
    assert (await refusal(agent, "kb_history", **show | {"start": len(whole)})).startswith("start: version 1 has ")
    assert (await refusal(agent, "kb_history", document_id=id_, start=1)).startswith("start: ")
