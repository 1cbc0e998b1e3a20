"""A search without a number of results gets the best ones in few tokens, and the number of the others."""

from __future__ import annotations

import pytest

from kb_mcp.tools.shortened_results import MOST_TOKENS, TOKENS, briefly, left_out_text
from kb_mcp.tools.token_estimate import estimate_tokens
from tests.mcp.conftest import call, noted

LINE = "The harbour board met on a rainy day and talked about the dredging of the northern basin for two hours. "
MOST_OF_A_SHORT_ANSWER = 150


@pytest.fixture
async def minutes(agent, word):
    """Ten notes about meetings, of which one answers."""
    for number in range(9):
        await noted(agent, text=f"{LINE}Meeting {number} of {word}.", tags=[word])
    await noted(agent, text=f"Ines Abreu of {word} keeps the key of the boathouse in room 4-117.", tags=[word])
    return word


async def test_a_short_answer_has_the_best_result_and_says_how_to_get_the_others(agent, minutes):
    question = {"query": "Where is the key of the boathouse?", "tags": [minutes]}
    result = await agent.call_tool("kb_search", question)
    answer, found = result.content[0].text, result.structured_content
    assert "room 4-117" in found["results"][0]["text"]
    assert len(found["results"]) + found.get("further", 0) + found.get("weaker", 0) == 10
    assert answer.endswith(f">>> {said_of(found)}")
    assert estimate_tokens(answer) <= MOST_OF_A_SHORT_ANSWER
    assert await call(agent, "kb_search", **question, top=0) == found


def said_of(found):
    return left_out_text(found.get("weaker", 0), found.get("further", 0), has_excerpts=False)


@pytest.mark.parametrize("query", ["Where is the key of the boathouse?", "dredging of the northern basin", "boathouse"])
@pytest.mark.parametrize("more", [{}, {"fts_only": True}, {"group_by": "document"}, {"sort": "recent"}])
async def test_as_many_results_come_as_the_short_answer_says(agent, minutes, query, more):
    question = {"query": query, "tags": [minutes], **more}
    short, ten, every = [
        await call(agent, "kb_search", **question, **each) for each in ({}, {"top": 10}, {"all": True})
    ]
    shown, longer, whole = ({*passages(each)} for each in (short, ten, every))
    assert len(longer - shown) == short.get("further", 0)
    assert len(whole - longer - shown) == short.get("weaker", 0)
    assert len(whole - longer) == ten.get("weaker", 0)


def passages(answer):
    return [each["chunk_id"] for result in answer["results"] for each in (result, *result.get("more", ()))]


async def test_operators_in_a_query_are_filters_and_told(agent, minutes):
    result = await agent.call_tool("kb_search", {"query": f"boathouse tag:{minutes} type:note -dredging"})
    assert f">>> Filters: tag:{minutes} type:note -dredging." in result.content[0].text
    assert [each["text"][:10] for each in result.structured_content["results"]] == ["Ines Abreu"]
    newest = await call(agent, "kb_search", query=f"#{minutes}")
    assert newest["results"][0]["text"].startswith("Ines Abreu")
    missing = await agent.call_tool("kb_search", {"query": f"lamp tag:{minutes}s"})
    assert f'No tag "{minutes}s" exists. Did you mean "{minutes}"' in missing.content[0].text


async def test_a_line_follows_the_results_with_all_words(agent, minutes):
    text = (await agent.call_tool("kb_search", {"query": "boathouse", "tags": [minutes], "all": True})).content[0].text
    assert text.index("Ines Abreu") < text.index(">>> Only close in meaning from here.") < text.index("Meeting")


async def test_a_subject_that_is_probably_not_in_kb_gets_one_result(agent, minutes):
    question = {"query": "Was the king of Mali ever in a room with gold?", "tags": [minutes]}
    result = await agent.call_tool("kb_search", question)
    assert "Weak: this is probably not in kb." in result.content[0].text
    assert len(result.structured_content["results"]) == 1


async def test_a_corrected_word_is_told_with_the_query_as_typed(agent, minutes):
    said = (await agent.call_tool("kb_search", {"query": "boathuose", "tags": [minutes]})).content[0].text
    assert """To search for the words as typed: query='"boathuose"'.""" in said


async def test_top_and_all_ask_for_more(agent, minutes):
    question = {"query": "dredging of the northern basin", "tags": [minutes]}
    assert len((await call(agent, "kb_search", **question))["results"]) < 10
    assert len((await call(agent, "kb_search", **question, all=True))["results"]) == 10
    assert len((await call(agent, "kb_search", **question, top=10))["results"]) >= 9


async def test_a_short_answer_in_order_of_time_begins_with_the_most_recent(agent, word):
    for day in range(11, 22):
        await noted(agent, text=f"Decision of {word} on day {day}.", tags=[word], date=f"2026-03-{day}")
    found = await call(agent, "kb_search", query=f"decision of {word}", tags=[word], sort="recent")
    dates = [result["date"] for result in found["results"]]
    assert dates == sorted(dates, reverse=True)
    assert len(dates) > 1
    assert len(found["results"]) + found.get("further", 0) + found.get("weaker", 0) == 10


async def test_a_short_answer_has_the_note_that_replaces_a_result(agent, word):
    old = (await noted(agent, text=f"The port of {word} is 8443.", tags=[word]))["document_id"]
    new = await noted(agent, text="It is now 9443, says Ada.", tags=[word], replaces=old)
    for number in range(9):
        await noted(agent, text=f"{LINE}Meeting {number} of {word}.", tags=[word])
    found = await call(agent, "kb_search", query=f"Which port has {word}?", tags=[word])
    assert {old, new["document_id"]} <= {result["document_id"] for result in found["results"]}


def result(number, score, text=LINE, replaced_by=None, more=()):
    return {"document_id": number, "chunk_id": number, "score": score, "fts_score": score, "vec_score": score / 10,
            "replaced_by": replaced_by, "more": list(more), "text": text, "index": 0, "highlights": []}  # fmt: skip


def numbers(results, *, is_ranked=True):
    shown = briefly({"results": results}, {"results": results[:5]}, is_ranked=is_ranked)
    kept = {each["chunk_id"] for each in shown["results"]}
    passages = [each["chunk_id"] for result in results for each in (result, *result["more"])]
    fuller = [each["chunk_id"] for result in results[:5] for each in (result, *result["more"])]
    assert shown["further"] == len({*fuller} - kept)
    assert shown["weaker"] == len({*passages} - {*fuller} - kept)
    return [each["document_id"] for each in shown["results"]]


def test_few_tokens_hold_the_best_results_and_many_if_all_are_nearly_as_good():
    few = numbers([result(number, 3.4 - number / 3) for number in range(10)])
    many = numbers([result(number, 6 - number / 100) for number in range(30)])
    cost = estimate_tokens(LINE) + 12
    assert few == list(range(len(few)))
    assert TOKENS - cost < len(few) * cost <= TOKENS
    assert MOST_TOKENS - cost < len(many) * cost <= MOST_TOKENS


def test_the_first_result_is_there_however_long_it_is_and_a_short_one_fits_after_a_long_one():
    results = [result(0, 6.0, LINE * 20), *(result(number, 1.0) for number in range(1, 10))]
    assert numbers(results) == [0]
    assert numbers([result(0, 6.0), result(1, 5.0, LINE * 20), result(2, 4.9, "Short.")]) == [0, 2]


def test_the_best_results_keep_their_order_and_a_replacement_stays():
    weak = [result(number, 0.1) for number in range(10, 19)]
    assert numbers([result(2, 0.1, LINE * 9), result(1, 6.0, replaced_by=2), *weak]) == [2, 1]


def test_results_of_one_kind_of_search_fill_few_tokens_in_their_order():
    found = numbers([result(number, number + 5) for number in range(10)], is_ranked=False)
    assert found[:2] == [0, 1]
    assert len(found) < 5


def test_further_passages_of_a_document_count_as_others():
    assert numbers([result(0, 6.0, more=[{"score": 5.0, "chunk_id": 8}, {"score": 4.0, "chunk_id": 9}])]) == [0]


def test_no_result_is_no_short_answer():
    assert briefly({"results": []}, {"results": []}, is_ranked=True) == {"results": []}
