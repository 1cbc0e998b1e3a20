"""What is said where filters leave nothing, or leave out less than was meant."""

from __future__ import annotations

import pytest

from tests.conftest import ALL_APPS
from tests.mcp.conftest import call, connected, noted


@pytest.fixture(scope="module")
def empty(start_server, tmp_path_factory):
    with start_server(tmp_path_factory.mktemp("empty"), KB_APPS=ALL_APPS) as server:
        yield server


@pytest.fixture
async def family(agent, word):
    """Two notes, of which one has a tag more, and that tag."""
    for name in ("one", "two"):
        await noted(agent, text=f"{word} {name}", tags=[word, f"{word}-{name}"])
    return word


CALLS = [("kb_search", {"query": "x"}), ("kb_list", {})]


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_a_tag_that_must_not_be_is_understood_but_for_its_case(agent, family, tool, arguments):
    shown = (await agent.call_tool(tool, {**arguments, "tags": [family], "tag_not": [f"{family}-ONE"]})).content[0].text
    assert f'There is no tag "{family}-ONE": "{family}-one" was taken.' in shown
    assert f"{family} two" in shown
    assert f"{family} one" not in shown


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
@pytest.mark.parametrize("filters", [{"tag_not": ["{}-won"]}, {"tag_any": "{}-two,{}-won"}])
async def test_a_tag_that_is_not_there_is_named_also_where_something_was_found(agent, family, tool, arguments, filters):
    [(name, given)] = filters.items()
    tags = given.replace("{}", family) if isinstance(given, str) else [each.format(family) for each in given]
    shown = (await agent.call_tool(tool, {**arguments, "tags": [family], name: tags})).content[0].text
    assert f'There is no tag "{family}-won": did you mean ' in shown
    assert f"{family} two" in shown


async def test_where_every_tag_is_known_nothing_is_said_of_tags(agent, family):
    filters = {"tag_any": [f"{family}-one"], "tag_not": [f"{family}-two"]}
    for tool, arguments in CALLS:
        assert "There is no tag" not in (await agent.call_tool(tool, arguments | filters)).content[0].text


@pytest.mark.slow
async def test_an_empty_list_speaks_of_no_word_and_of_what_is_being_read(empty):
    async with connected(empty) as agent:
        assert (await call(agent, "kb_list"))["rest"] == "There is no document yet."
        for number in range(2):  # so long that they are being read yet
            text = f"{number} " + "The okapi is shy, and is seen at dusk where the forest is dense. " * 10_000
            await call(agent, "kb_addnote", text=text, tags=["okapi"])
        for filters, reason in (({}, "There is no document yet."), ({"tags": ["okapi"]}, 'There is no tag "okapi".')):
            told = (await call(agent, "kb_list", **filters))["rest"]
            assert told == f"{reason} 2 more not searchable yet: they are still being read."


async def test_behind_its_end_a_list_says_that_it_ended(agent, family):
    first = await call(agent, "kb_list", tags=[family], limit=1)
    last = await call(agent, "kb_list", tags=[family], limit=1, cursor=first["next_cursor"])
    assert (len(last["documents"]), last["next_cursor"]) == (1, None)
    past = await call(agent, "kb_list", tags=[family], sort="id", cursor=f"{10**17}.")
    assert past["documents"] == []
    assert past["rest"] == "There are no more: the list ended before this cursor."


async def test_a_new_note_says_which_day_was_understood(agent, word):
    added = await noted(agent, text=word, date="3 Nov 2026")
    assert added["date"] == "2026-11-03"
    assert "date" not in await noted(agent, text=f"{word} without")


async def test_a_dated_note_is_shown_once_with_its_date(agent, word):
    await noted(agent, text=f"{word} the ferry leaves", date="2026-11-03")
    shown = (await agent.call_tool("kb_search", {"query": word, "fts_only": True})).content[0].text
    assert shown.count("2026-11-03") == 1
    assert shown.count("the ferry leaves") == 1
    own = f"---\ndate: 2026-11-03\nstatus: open\n---\n{word}x is kept whole"
    await noted(agent, text=own)
    assert "status: open" in (await agent.call_tool("kb_search", {"query": f"{word}x"})).content[0].text
