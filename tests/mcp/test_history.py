"""An agent can see and restore earlier states of a document."""

from __future__ import annotations

import re
from contextlib import suppress

import httpx2
import pytest
from fastmcp import Client
from mcp_types import Implementation

from kb.api.errors import Invalid, NotFound
from kb_mcp.tools.documents import DocumentTools
from kb_mcp.tools.token_budget import NOTICE, AnswerLimiter
from tests.conftest import MCP_KEY
from tests.mcp.conftest import ERAS, call, done, noted, refusal


async def test_an_agent_takes_its_mistakes_back(agent, word):
    id_ = await done(agent, await call(agent, "kb_addnote", text=f"{word} one", tags=[word]))
    await call(agent, "kb_update_note", document_id=id_, text=f"{word} two")
    listed = await call(agent, "kb_history", document_id=id_)
    assert listed["notice"] == NOTICE
    assert [(version["number"], version["title"]) for version in listed["versions"]] == [
        (2, f"{word} two"),
        (1, f"{word} one"),
    ]
    assert (await call(agent, "kb_history", document_id=id_, version=1))["text"] == f"{word} one"
    reverted = await call(agent, "kb_undo", document_id=id_, version=1)
    assert (reverted["id"], reverted["title"]) == (id_, f"{word} one")
    await call(agent, "kb_delete", document_id=id_)
    assert "deleted_at" in await call(agent, "kb_history", document_id=id_)
    assert (await call(agent, "kb_undo", document_id=id_))["tags"] == [word]
    [found] = (await call(agent, "kb_search", query=word, fts_only=True))["results"]
    assert found["text"] == f"{word} one"


async def test_history_says_who_came_by_the_gateway(agent, engine, word):
    id_ = await done(agent, await call(agent, "kb_addnote", text=word))
    [version] = (await engine.history(id_))["versions"]
    assert version["client"].startswith("kb/")
    assert re.search(r" \(mcp(; .+)?\)$", version["client"])


async def test_undo_takes_either_a_document_or_a_time(agent, word):
    note = await done(agent, await call(agent, "kb_addnote", text=word))
    for arguments in ({}, {"document_id": note, "since": "1 hour ago"}):
        assert (await refusal(agent, "kb_undo", **arguments)).startswith("document_id, since: pass exactly one")
    assert (await refusal(agent, "kb_undo", since="1 hour ago", version=1)).startswith("version: ")
    refused = await refusal(agent, "kb_undo", document_id=note)
    assert refused.startswith("version: this document is not in the bin.")
    assert "since: kb does not understand" in await refusal(agent, "kb_undo", since="a while ago")
    assert (await refusal(agent, "kb_history", document_id=note, start=3)).startswith("start: ")


async def test_an_agent_undoes_only_its_own_changes_since_a_time_and_sees_them_first(server, engine, word):
    def connected(name):
        return Client(
            f"{server.url}/mcp", auth=MCP_KEY, mode="2026-07-28", client_info=Implementation(name=name, version="1")
        )

    kept = (await engine.add_note(text=f"{word} of a person", tags=[word], wait=30))["document_id"]
    async with connected(f"other-{word}") as other:
        others = (await noted(other, text=f"{word} of another agent", tags=[word]))["document_id"]
    async with connected(f"agent-{word}") as agent:
        own = (await noted(agent, text=f"{word} of the agent", tags=[word]))["document_id"]
        await call(agent, "kb_update_note", document_ids=[kept, others], tags_add=[f"wrong-{word}"])
        shown = await agent.call_tool("kb_undo", {"since": "10 minutes ago"})
        assert {step["document_id"] for step in shown.structured_content["steps"]} == {kept, others, own}
        assert (await call(agent, "kb_list", tags=[f"wrong-{word}"]))["total"] == 2
        undone = await agent.call_tool("kb_undo", confirmation(shown))
        assert undone.content[0].text.endswith("Undone: 1 added, 2 changed.")
        listed = await call(agent, "kb_list", tags=[word])
        assert {(each["id"], tuple(each["tags"])) for each in listed["documents"]} == {
            (kept, (word,)),
            (others, (word,)),
        }
        assert (await call(agent, "kb_undo", document_id=own))["id"] == own


def confirmation(shown):
    """Return the arguments of the call that an answer names."""
    since, confirm = re.findall(r"kb_undo\(since='(\S+)', confirm='(\w+)'\)", shown.content[0].text)[0]
    return {"since": since, "confirm": confirm}


async def test_an_undo_leaves_changes_alone_that_it_did_not_show(server, word):
    info = Implementation(name=f"session-{word}", version="1")
    async with (
        Client(f"{server.url}/mcp", auth=MCP_KEY, client_info=info) as agent,
        Client(f"{server.url}/mcp", auth=MCP_KEY, client_info=info) as another_session,
    ):
        own = (await noted(agent, text=f"{word} of the agent", tags=[word]))["document_id"]
        shown = await agent.call_tool("kb_undo", {"since": "10 minutes ago"})
        later = (await noted(another_session, text=f"{word} of the other session", tags=[word]))["document_id"]
        for arguments in (confirmation(shown), {"since": "10 minutes ago", "confirm": "true"}):
            refused = await agent.call_tool("kb_undo", arguments)
            assert refused.content[0].text.splitlines()[-1].startswith("Nothing has been undone, ")
            assert {step["document_id"] for step in refused.structured_content["steps"]} == {own, later}
            assert (await call(agent, "kb_list", tags=[word]))["total"] == 2
        undone = await agent.call_tool("kb_undo", confirmation(refused))
        assert undone.content[0].text.endswith("Undone: 2 added.")


async def test_tags_of_several_documents_change_although_one_refuses_them(agent, word):
    full = [f"{word}-{number}" for number in range(100)]
    tags = ([word], full, [word])
    ids = [(await noted(agent, text=f"{word} {number}", tags=each))["document_id"] for number, each in enumerate(tags)]
    changed = await call(agent, "kb_update_note", document_ids=ids, tags_add=[f"new-{word}"])
    assert [document["id"] for document in changed["documents"]] == [ids[0], ids[2]]
    assert changed["rest"].startswith(f"Document {ids[1]} is unchanged: ")


async def test_a_list_with_texts_leaves_out_a_document_that_is_deleted_meanwhile(engine, word, monkeypatch):
    ids = [(await engine.add_note(text=f"{word} {number}", tags=[word], wait=30))["document_id"] for number in (1, 2)]
    listed = engine.documents

    async def and_delete(**filters):
        reply = await listed(**filters)
        with suppress(NotFound):
            await engine.delete_document(ids[0])
        return reply

    monkeypatch.setattr(engine, "documents", and_delete)
    answer = await DocumentTools(engine, AnswerLimiter(10_000)).kb_list(tags=[word], text=50)
    assert [document["id"] for document in answer.structured_content["documents"]] == [ids[1]]


async def test_the_bin_is_listed_with_the_time_of_deletion(agent, word):
    note = await done(agent, await call(agent, "kb_addnote", text=f"{word} to delete", tags=[word]))
    await call(agent, "kb_delete", document_id=note)
    result = await agent.call_tool("kb_list", {"deleted": True, "limit": 1})
    [binned] = result.structured_content["documents"]
    assert (binned["id"], binned["title"]) == (note, f"{word} to delete")
    assert " · deleted 20" in result.content[0].text
    assert "kb_undo(document_id=…) restores one." in result.content[0].text
    assert (await refusal(agent, "kb_list", deleted=True, tags=[word])).startswith("tag: the bin has no filters")


async def test_tags_change_on_several_documents_at_once(agent, word):
    first, second = [(await noted(agent, text=f"{word} {number}", tags=[word]))["document_id"] for number in (1, 2)]
    changed = await call(
        agent, "kb_update_note", document_ids=[first, second, 10**9], tags_add=["both"], tags_remove=[word]
    )
    assert [(each["id"], each["tags"]) for each in changed["documents"]] == [(first, ["both"]), (second, ["both"])]
    assert "1000000000" in changed["rest"]
    for arguments in (
        {"document_ids": [first], "document_id": second, "tags_add": ["a"]},
        {"document_ids": [first], "title": "New"},
        {"document_ids": [first]},
        {"tags_add": ["a"]},
    ):
        assert (await refusal(agent, "kb_update_note", **arguments)).startswith("document_id")


async def test_a_wrong_version_or_document_is_answered_with_where_to_find_the_right_one(agent, word):
    note = await done(agent, await call(agent, "kb_addnote", text=word))
    wrong = {"version": 7}
    refused = await refusal(agent, "kb_history", document_id=note, **wrong)
    assert refused == f"version: Document {note} has no version 7. kb_history(document_id=…) lists the versions."
    assert (await refusal(agent, "kb_history", document_id=10**9, **wrong)).startswith("document_id: ")


async def test_a_list_of_versions_keeps_to_the_budget(agent, engine, word):
    id_ = await done(agent, await call(agent, "kb_addnote", text=word))
    for number in range(55):
        await engine.change_tags(id_, add=[f"{word}{number}"], remove=[f"{word}{number - 1}"])
    listed = await call(agent, "kb_history", document_id=id_)
    assert len(listed["versions"]) == 50
    assert "Older versions" in listed["rest"]


@pytest.mark.slow
async def test_a_long_version_is_shown_part_by_part_to_its_end(agent, word):
    whole = f"{word} " + "Ledgers were kept by patient clerks, line by line. " * 2000
    id_ = await done(agent, await call(agent, "kb_addnote", text=whole))
    read = ""
    while True:
        show = {"document_id": id_, "version": 1, "start": len(read)}
        result = await agent.call_tool("kb_history", show)
        read += result.structured_content["text"]
        if "rest" not in result.structured_content:
            break
        way = f"kb_history(document_id={id_}, version=1, start={len(read)})."
        assert result.content[0].text.endswith(f"to {len(read)} of {len(whole)}. Read on with {way}")
    assert read == whole
    assert (await refusal(agent, "kb_history", **show | {"start": len(whole)})).startswith("start: version 1 has ")
    assert (await refusal(agent, "kb_history", document_id=id_, start=1)).startswith("start: ")


async def test_a_note_replaces_another_one_and_both_say_so(agent, word):
    first = await noted(agent, text=f"{word}: Harbor uses MySQL.", tags=[word], source="Ada, by phone")
    old = first["document_id"]
    new = (await noted(agent, text=f"{word}: Harbor uses PostgreSQL.", tags=[word], replaces=old))["document_id"]
    found = await agent.call_tool("kb_search", {"query": f"{word} does Harbor use MySQL", "tags": [word]})
    heads = [line for line in found.content[0].text.splitlines() if re.match(r">>>\d", line)]
    assert [head.split()[0] for head in heads] == [f">>>{new}", f">>>{old}"]
    assert heads[1].endswith(f'· replaced by {new} · from "Ada, by phone"')
    best, outdated = found.structured_content["results"]
    assert (outdated["replaced_by"], outdated["source"]) == (new, "Ada, by phone")
    assert not best.keys() & {"replaced_by", "source"}
    listed = (await agent.call_tool("kb_list", {"tags": [word]})).content[0].text
    assert f"replaced by {new}" in listed
    assert f"replaces {old}" in listed
    read = (await agent.call_tool("kb_get", {"document_id": old})).content[0].text
    assert f'replaced by {new} · from "Ada, by phone"' in read


async def test_what_was_replaced_is_no_longer_named_as_alike(agent, word):
    text = f"{word}: the ferry to the island leaves at {{}} in the morning"
    old = (await noted(agent, text=text.format("six")))["document_id"]
    new = await noted(agent, text=text.format("seven"), replaces=old)
    assert old not in [each["document_id"] for each in new.get("alike", [])]
    alike = (await noted(agent, text=text.format("eight")))["alike"]
    alike = [each["document_id"] for each in alike]
    assert new["document_id"] in alike
    assert old not in alike


async def test_a_note_that_is_not_there_cannot_be_replaced(agent):
    said = await refusal(agent, "kb_addnote", text="new", replaces=10**15)
    assert said.startswith("replaces: Document 1000000000000000 does not exist")


async def test_a_note_that_is_replaced_already_is_not_replaced_again(agent, word):
    old = (await noted(agent, text=f"{word}: Harbor uses MySQL."))["document_id"]
    new = (await noted(agent, text=f"{word}: Harbor uses PostgreSQL.", replaces=old))["document_id"]
    said = await refusal(agent, "kb_addnote", text=f"{word}: Harbor uses SQLite.", replaces=old)
    assert said == f"replaces: note {new} already replaces note {old}. Replace {new} instead."


@pytest.mark.parametrize("mode", ERAS)
async def test_what_an_agent_writes_names_the_agent_wherever_it_is_shown(server, engine, word, mode):
    info = Implementation(name="harbour agent (beta)", version="1.2")
    async with Client(f"{server.url}/mcp", auth=MCP_KEY, mode=mode, client_info=info) as agent:
        note = (await noted(agent, text=f"{word} by the agent", tags=[word]))["document_id"]
        await call(agent, "kb_update_note", document_id=note, append="And more.")
        own = await engine.add_note(text=f"{word} by hand", tags=[word], wait=30)
        found = (await agent.call_tool("kb_search", {"query": word, "tags": [word]})).content[0].text
        read = await agent.call_tool("kb_get", {"document_id": note})
    [head] = [line for line in found.splitlines() if re.match(rf">>>{note}\b", line)]
    [by_hand] = [line for line in found.splitlines() if line.startswith(f">>>{own['document_id']}")]
    assert " by " not in by_hand
    is_named = mode != "legacy"  # an agent of that era has only the name of its HTTP library
    assert (' · by "' in head) == is_named
    assert (' · by "' in read.content[0].text) == is_named
    versions = (await engine.history(note))["versions"]
    clients = {each["client"] for each in versions}
    assert len(versions) == 2
    assert len(clients) == 1
    [client] = clients
    assert client.startswith("kb/")
    if mode != "legacy":  # there the program's name is in the first message alone, and no session is kept
        assert client.endswith(" harbour agent _beta_ 1.2 (mcp)")
        assert read.structured_content["by"] == "harbour agent _beta_ 1.2"


async def test_a_file_put_to_the_address_names_the_agent_that_was_given_it(server, engine, word):
    info = Implementation(name="harbour agent", version="1.2")
    content = word.encode()
    async with Client(f"{server.url}/mcp", auth=MCP_KEY, mode="2026-07-28", client_info=info) as agent:
        started = await call(agent, "kb_upload_start", filename="report.txt", total_size=len(content))
        async with httpx2.AsyncClient() as http:
            accepted = (await http.put(started["upload_url"], content=content, headers={"User-Agent": "curl/8"})).json()
        [version] = (await engine.history(await done(agent, accepted)))["versions"]
    assert version["client"].endswith(" harbour agent 1.2 (mcp)")


async def test_what_is_all_of_another_agent_says_so_once_and_of_the_reader_not_at_all(server, word):
    def connected(name):
        info = Implementation(name=name, version="1")
        return Client(f"{server.url}/mcp", auth=MCP_KEY, mode="2026-07-28", client_info=info)

    async with connected("writer") as writer, connected("reader") as reader:
        for number in range(3):
            await noted(writer, text=f"{word} number {number}", tags=[word])
        query = {"query": word, "fts_only": True}  # by meaning, notes of others may come along
        texts = [(await agent.call_tool("kb_search", query)).content[0].text for agent in (writer, reader)]
        document = (await noted(writer, text=f"{word} once", source_path=word))["document_id"]
        await call(writer, "kb_update_note", document_id=document, append="Twice.")
        past = [
            (await agent.call_tool("kb_history", {"document_id": document})).content[0].text
            for agent in (writer, reader)
        ]
        await call(reader, "kb_update_note", document_id=document, append="Thrice.")
        mixed = (await writer.call_tool("kb_history", {"document_id": document})).content[0].text
    assert [text.count(f' · tags {word} · by "writer 1".\n') for text in texts] == [0, 1]
    assert [text.count('All versions by "writer 1".\n') for text in past] == [0, 1]
    assert [text.count(" by ") for text in (*texts, *past)] == [0, 1] * 2
    assert (mixed.count(' · by "writer 1"'), mixed.count(' · by "reader 1"')) == (2, 1)


@pytest.mark.parametrize("name", ["mcp", "python-httpx2", "mcp-client", "node", "FastMCP Client"])
async def test_the_name_of_a_library_is_no_author(server, word, name):
    info = Implementation(name=name, version="0.1.0")
    async with Client(f"{server.url}/mcp", auth=MCP_KEY, mode="2026-07-28", client_info=info) as agent:
        document = (await noted(agent, text=f"{word} is kept"))["document_id"]
        for tool, arguments in (("kb_get", {"document_id": document}), ("kb_search", {"query": word})):
            assert " by " not in (await agent.call_tool(tool, arguments)).content[0].text


async def test_mine_is_refused_without_since(engine):
    with pytest.raises(Invalid, match=r"^mine: can be used only with since"):
        await engine.undo(mine=True)


@pytest.mark.parametrize("is_added", [True, False])
async def test_an_undo_since_the_time_of_a_version_in_the_history_undoes_this_version(agent, word, is_added):
    note = (await noted(agent, text=f"{word} one"))["document_id"]
    await call(agent, "kb_update_note", document_id=note, text=f"{word} two")
    await call(agent, "kb_update_note", document_id=note, append="Three.")
    times = {each["number"]: each["at"] for each in (await call(agent, "kb_history", document_id=note))["versions"]}
    since = times[1 if is_added else 2]
    shown = await call(agent, "kb_undo", since=since)
    arguments = re.findall(r"kb_undo\(since='(\S+)', confirm='(\w+)'\)", shown["rest"])[0]
    assert note in [step["document_id"] for step in shown["steps"]]
    await call(agent, "kb_undo", since=arguments[0], confirm=arguments[1])
    if is_added:
        assert "bin" in await refusal(agent, "kb_get", document_id=note)
    else:
        assert (await call(agent, "kb_get", document_id=note))["chunks"][0]["text"] == f"{word} one"
