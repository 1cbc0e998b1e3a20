"""The time of a statement: its date, its later change, and its end."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kb.markdown.front_matter import with_date
from kb_mcp.tools.compact_answers import change_of_text
from tests.mcp.conftest import call, noted, refusal


def today():
    return datetime.now(UTC).date().isoformat()


async def text_of(agent, **question):
    return (await agent.call_tool("kb_search", question)).content[0].text


async def test_a_changed_fact_says_since_when_it_stands_and_is_found_by_that_day(agent, word):
    note = (await noted(agent, text=f"Seat of {word}: window.", tags=[word], date="2026-08-07"))["document_id"]
    assert "changed" not in await text_of(agent, query=f"seat {word}", tags=[word])
    await call(agent, "kb_update_note", document_id=note, old="window", new="aisle")
    assert f"2026-08-07 · changed {today()}" in await text_of(agent, query=f"seat {word}", tags=[word])
    found = await call(agent, "kb_search", query=f"seat {word}", tags=[word], after=today())
    assert [each["document_id"] for each in found["results"]] == [note]


async def test_other_tags_another_title_and_a_stay_in_the_bin_change_no_fact(agent, word):
    note = (await noted(agent, text=f"Seat of {word}: window.", tags=[word], date="2026-08-07"))["document_id"]
    await call(agent, "kb_update_note", document_id=note, tags_add=["travel"])
    await call(agent, "kb_update_note", document_id=note, title="Seats on trains")
    await call(agent, "kb_delete", document_id=note)
    await call(agent, "kb_undo", document_id=note)
    said = await text_of(agent, query=f"seat {word}", tags=[word])
    assert "2026-08-07" in said
    assert "changed" not in said
    await call(agent, "kb_update_note", document_id=note, old="window", new="aisle")
    await call(agent, "kb_update_note", document_id=note, tags_remove=["travel"])
    assert "2026-08-07 · changed 2" in await text_of(agent, query=f"seat {word}", tags=[word])


@pytest.mark.parametrize(
    ("versions", "changed"),
    [
        ([(1, "a", "2026-02-01T00:00:00Z")], {}),
        ([(3, "b", "2026-03-01T00:00:00Z"), (2, "b", "2026-02-01T00:00:00Z")], {"changed": "2026-02-01"}),
        ([(3, "b", "2026-03-01T00:00:00Z"), (2, "a", "2026-02-01T00:00:00Z")], {"changed": "2026-03-01"}),
    ],
    ids=["the first text", "earlier versions have expired", "another text"],
)
def test_a_fact_is_as_old_as_its_text(versions, changed):
    rows = [{"number": number, "content_hash": content, "at": at} for number, content, at in versions]
    assert change_of_text(rows) == changed


@pytest.mark.parametrize("tool", ["kb_search", "kb_list"])
async def test_an_answer_about_days_names_the_zone_that_they_are_in(agent, word, tool):
    await noted(agent, text=f"Seat of {word}: window.", tags=[word])
    asked = {"tags": [word]} | ({"query": word} if tool == "kb_search" else {})
    for dates in ({"after": "today"}, {"before": "today"}, {"updated_after": "2099-01-01"}):
        [shown] = (await agent.call_tool(tool, asked | dates)).content
        assert "Days begin at midnight UTC" in shown.text
    for dates in ({}, {"after": "today Asia/Tokyo"}, {"updated_after": "2 hours ago"}):
        [shown] = (await agent.call_tool(tool, asked | dates)).content
        assert "UTC" not in shown.text


async def test_an_edit_can_give_the_date_of_what_it_says(agent, word):
    note = (await noted(agent, text=f"Seat of {word}: window.", tags=[word], date="2026-08-07"))["document_id"]
    changes = ({"old": "window", "new": "aisle"}, {"text": f"Seat of {word}: any."}, {"append": "Near the door."}, {})
    for day, change in zip(("2026-09-01", "2026-09-02", "2026-09-03", "2099-09-04"), changes, strict=True):
        await call(agent, "kb_update_note", document_id=note, date=day, **change)
        document = await call(agent, "kb_get", document_id=note)
        assert document["date"] == day
        assert document["chunks"][0]["text"].count("date:") == 1
    assert "changed" not in await text_of(agent, query=f"seat {word}", tags=[word])
    assert (await refusal(agent, "kb_update_note", document_id=note, date="noon")).startswith("date: ")


async def test_what_has_ended_comes_after_what_holds_and_is_marked(agent, word):
    ended = await noted(agent, text=f"The office of {word} is in Bern.", tags=[word], valid_until="2025-12-31")
    holds = await noted(agent, text=f"The office of {word} is in Basel.", tags=[word], valid_until="2099-12-31")
    found = await call(agent, "kb_search", query=f"office of {word} in Bern", tags=[word])
    assert [each["document_id"] for each in found["results"]] == [holds["document_id"], ended["document_id"]]
    text = await text_of(agent, query=f"office of {word} in Bern", tags=[word])
    assert 'ended "2025-12-31"' in text
    assert 'valid until "2099-12-31"' in text
    await call(agent, "kb_update_note", document_id=holds["document_id"], valid_until="2026-01-31")
    assert 'ended "2026-01-31"' in await text_of(agent, query=f"office of {word} in Bern", tags=[word], top=2)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x", "---\ndate: 2026-01-02\n---\nx"),
        ("---\ntitle: a\n---\nx", "---\ndate: 2026-01-02\ntitle: a\n---\nx"),
        ("---\ntitle: a\nCreated: 1999 # then\n---\nx", "---\ntitle: a\nCreated: 2026-01-02\n---\nx"),
        ("---\r\ndate: 1999\r\n---\r\nx", "---\r\ndate: 2026-01-02\r\n---\r\nx"),
        ("+++\ndate = 1999-01-01\n+++\nx", "+++\ndate = 2026-01-02\n+++\nx"),
    ],
)
def test_a_date_is_written_where_the_front_matter_has_it(before, after):
    assert with_date(before, "2026-01-02") == after


async def test_a_new_note_names_the_nearest_one_with_its_likeness(agent, word):
    first = await noted(agent, text=f"Priya of {word} wants to be reached by Signal if it is urgent.")
    near = await noted(agent, text=f"Urgent matters: Priya of {word} reads Signal on weekends, too.")
    [named] = near.get("alike") or near["nearest"]
    assert named["document_id"] == first["document_id"]
    assert 0 < near["likeness"] <= 1
    other = await noted(agent, text="The kiln cools for nine hours.")
    assert "nearest" in other or "alike" in other
