"""A decision that another one overrules, as agents keep it and find it."""

from __future__ import annotations

from tests.mcp.conftest import noted, refusal


async def test_a_note_replaces_another_one_and_both_say_so(agent, word):
    first = await noted(agent, text=f"{word}: Harbor uses MySQL.", tags=[word], source="Ada, by phone")
    old = first["document_id"]
    new = (await noted(agent, text=f"{word}: Harbor uses PostgreSQL.", tags=[word], replaces=old))["document_id"]
    found = await agent.call_tool("kb_search", {"query": f"{word} does Harbor use MySQL", "tags": [word]})
    heads = [line for line in found.content[0].text.splitlines() if line.startswith("[note")]
    assert [head.split("]")[0] for head in heads] == [f"[note {new}", f"[note {old}"]
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
    assert said.startswith("replaces: There is no document 1000000000000000")


async def test_a_note_that_is_replaced_already_is_not_replaced_again(agent, word):
    old = (await noted(agent, text=f"{word}: Harbor uses MySQL."))["document_id"]
    new = (await noted(agent, text=f"{word}: Harbor uses PostgreSQL.", replaces=old))["document_id"]
    said = await refusal(agent, "kb_addnote", text=f"{word}: Harbor uses SQLite.", replaces=old)
    assert said == f"replaces: note {old} is replaced by note {new} already; replace {new} instead."
