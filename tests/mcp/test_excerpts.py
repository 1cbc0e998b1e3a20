"""Later results show only the sentences with words of the query, and the structured form has the whole passage."""

from __future__ import annotations

import asyncio

import pytest

from kb.client.client import EngineClient
from kb_mcp.tools.rendering import shown_text
from kb_mcp.tools.shortened_results import excerpt
from tests.conftest import KEY
from tests.http.conftest import until_idle

TAG = "logbooks"
FILLER = "The crew mended the nets and waited for the wind to turn. "
QUESTION = {"query": "Which lighthouse did the pilot sight?", "tags": [TAG]}


def shown(text, *words, front_matter="", title="Log"):
    """The excerpt of a result of the engine that matched words."""
    whole = front_matter + text
    places = sorted((whole.index(word), whole.index(word) + len(word)) for word in words)
    ranges = excerpt({"text": whole, "title": title, "index": 0, "highlights": places})
    return shown_text({"text": text, "shown": ranges} if ranges else {"text": text})


@pytest.fixture(scope="module")
def logbooks(server):
    """Ten long notes that answer alike."""

    async def fill():
        async with EngineClient(server.url, KEY) as engine:
            for number in range(10):
                sighted = f"On day {number} the pilot sighted the lighthouse of Skagen."
                await engine.add_note(text=f"{FILLER * 5}{sighted} {FILLER * 5}", tags=[TAG])
            await until_idle(engine)

    asyncio.run(fill())


async def test_of_a_short_answer_only_the_best_passage_is_whole(agent, logbooks):
    result = await agent.call_tool("kb_search", QUESTION)
    answer = result.content[0].text
    assert answer.count(FILLER.strip()) == 10
    assert answer.count("\n…On day ") == 9
    assert answer.endswith(">>> For the sentences left out at …: top=20.")
    assert all(each["text"].count(FILLER.strip()) == 10 for each in result.structured_content["results"])


@pytest.mark.parametrize("more", [{"top": 10}, {"top": 11}, {"top": 10, "sort": "recent"}])
async def test_passages_are_whole_if_the_agent_says_how_many(agent, logbooks, more):
    result = await agent.call_tool("kb_search", QUESTION | more)
    assert result.content[0].text.count(FILLER.strip()) == 100
    assert not any("shown" in each for each in result.structured_content["results"])


async def test_the_collections_surface_shows_the_same_excerpts(start_gateway, server, logbooks):
    from fastmcp import Client

    settings = {"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY, "KB_MCP_COLLECTIONS": "1"}
    with start_gateway(**settings) as gateway:
        async with Client(f"{gateway.url}/collections/mcp") as agent:
            result = await agent.call_tool("kb_search", QUESTION)
    assert result.content[0].text.count(FILLER.strip()) == 10


@pytest.mark.parametrize(
    "heading", ["## The bell of the chapel", "The bell of the chapel", "**The bell of the chapel**"]
)
def test_an_excerpt_is_never_a_heading_alone(heading):
    text = f"{heading}\n\nIt rang until 14 May 2029. {FILLER * 8}\n\nNothing else."
    said = shown(text, "bell", "chapel", title="The bell of the chapel")
    assert said == f"{heading}\n\nIt rang until 14 May 2029.…"


def test_a_short_passage_and_one_without_words_of_the_query_stay_whole():
    assert shown(FILLER * 3, "crew") == FILLER * 3
    assert shown(FILLER * 20) == FILLER * 20


def test_an_excerpt_has_the_sentences_with_the_most_words_in_their_order():
    text = f"{FILLER * 6}The bell rang. {FILLER * 6}The bell of the chapel rang at noon. {FILLER * 6}"
    assert shown(text, "bell", "chapel", "noon") == "…The bell rang.… The bell of the chapel rang at noon.…"


def test_sentences_that_follow_each_other_are_shown_as_the_text_has_them():
    text = f"The bell rang.\n\nNo chapel answered. {FILLER * 8}"
    assert shown(text, "bell", "chapel") == "The bell rang.\n\nNo chapel answered.…"


def test_a_row_of_a_table_and_a_line_of_code_are_shown_whole():
    rows = "\n".join(f"| lamp {number} | {number * 7} | brass, repaired. Twice. |" for number in range(30))
    assert shown(rows, "lamp 17") == "…| lamp 17 | 119 | brass, repaired. Twice. |…"


def test_a_language_without_spaces_is_cut_after_its_full_stops():
    text = f"{'船員は網を繕った。' * 40}灯台は岬にある。{'船員は網を繕った。' * 40}"
    assert shown(text, "灯台") == "…灯台は岬にある。…"


def test_words_in_front_matter_that_the_answer_leaves_out_do_not_count():
    text = f"{FILLER * 8}The bell rang. {FILLER * 8}"
    front_matter = "---\ndate: 2026-02-03\ntags: chapel\n---\n"
    assert shown(text, "bell", "chapel", front_matter=front_matter) == "…The bell rang.…"


def test_a_sentence_without_an_end_is_shown_whole():
    text = "word " * 5000
    assert shown(text, "word").strip() == text.strip()
