"""How much of what a search found an answer shows, and whether its last line tells the truth about the rest."""

from __future__ import annotations

import pytest

from kb_mcp.tools.shortened_results import TOKENS, TOKENS_WITH_EQUALS, best, left_out_text
from kb_mcp.tools.token_estimate import estimate_tokens
from tests.mcp.conftest import call, noted

LINE = "The harbour board met on a rainy day and talked about the dredging of the northern basin for two hours. "
MOST_OF_A_SHORT_ANSWER = 165


@pytest.fixture
async def minutes(agent, word):
    """Ten notes about meetings, of which one answers."""
    for number in range(9):
        await noted(agent, text=f"{LINE}Meeting {number} of {word}.", tags=[word])
    await noted(agent, text=f"Ines Abreu of {word} keeps the key of the boathouse in room 4-117.", tags=[word])
    return word


async def test_without_a_number_an_answer_has_the_best_result_and_little_else(agent, minutes):
    result = await agent.call_tool("kb_search", {"query": "Where is the key of the boathouse?", "tags": [minutes]})
    assert "room 4-117" in result.structured_content["results"][0]["text"]
    assert estimate_tokens(result.content[0].text) <= MOST_OF_A_SHORT_ANSWER


@pytest.mark.parametrize("query", ["Where is the key of the boathouse?", "dredging of the northern basin", "boathouse"])
@pytest.mark.parametrize(
    "more", [{}, {"fts_only": True}, {"group_by": "document"}, {"sort": "recent"}, {"vec_only": True}]
)
async def test_a_number_of_results_is_that_number_and_has_what_the_last_line_promises(agent, minutes, query, more):
    question = {"query": query, "tags": [minutes], **more}
    short = await call(agent, "kb_search", **question)
    ten = await call(agent, "kb_search", **question, top=10)
    shown, all_ten = {*passages(short)}, {*passages(ten)}
    assert shown <= all_ten
    assert short.get("further", 0) <= len(all_ten - shown)
    assert ("top=" in short.get("rest", "")) == bool(short.get("further"))
    for top in (1, 3, 7):
        few = await call(agent, "kb_search", **question, top=top)
        assert len(few["results"]) == min(top, len(ten["results"]))
    assert not any("shown" in each for each in ten["results"])


def passages(answer):
    return [each["chunk_id"] for result in answer["results"] for each in (result, *result.get("more", ()))]


async def test_equals_are_never_cut_in_silence(agent, word):
    for number in range(14):
        await noted(agent, text=f"{word} meeting {number} of the harbour board about dredging.", tags=[word])
    question = {"query": f"{word} harbour board dredging", "tags": [word]}
    ten = await agent.call_tool("kb_search", question | {"top": 10})
    assert ten.content[0].text.endswith("There may be more that are as good: top=20.")
    every = await agent.call_tool("kb_search", question | {"top": 20})
    assert len(every.structured_content["results"]) == 14
    assert "top=" not in every.content[0].text


async def test_operators_in_a_query_are_filters_and_told(agent, minutes):
    result = await agent.call_tool("kb_search", {"query": f"boathouse tag:{minutes} type:note -dredging"})
    assert f">>> Filters: tag:{minutes} type:note -dredging." in result.content[0].text
    assert [each["text"][:10] for each in result.structured_content["results"]] == ["Ines Abreu"]
    newest = await call(agent, "kb_search", query=f"#{minutes}")
    assert newest["results"][0]["text"].startswith("Ines Abreu")
    missing = await agent.call_tool("kb_search", {"query": f"lamp tag:{minutes}s"})
    assert f'No tag "{minutes}s" exists. Did you mean "{minutes}"' in missing.content[0].text


async def test_a_line_follows_the_results_with_all_words(agent, minutes):
    text = (await agent.call_tool("kb_search", {"query": "boathouse", "tags": [minutes], "top": 10})).content[0].text
    assert text.index("Ines Abreu") < text.index(">>> Only close in meaning from here.") < text.index("Meeting")


async def test_a_subject_that_is_probably_not_in_kb_gets_few_results(agent, minutes):
    question = {"query": "Was the king of Mali ever in a room with gold?", "tags": [minutes]}
    result = await agent.call_tool("kb_search", question)
    assert "Weak: this is probably not in kb." in result.content[0].text
    assert len(result.structured_content["results"]) <= 2


async def test_a_corrected_word_is_told_with_the_query_as_typed(agent, minutes):
    said = (await agent.call_tool("kb_search", {"query": "boathuose", "tags": [minutes]})).content[0].text
    assert """To search for the words as typed: query='"boathuose"'.""" in said


async def test_an_answer_in_order_of_time_begins_with_the_most_recent(agent, word):
    for day in range(11, 22):
        await noted(agent, text=f"Decision of {word} on day {day}.", tags=[word], date=f"2026-03-{day}")
    found = await call(agent, "kb_search", query=f"decision of {word}", tags=[word], sort="recent")
    dates = [result["date"] for result in found["results"]]
    assert dates == sorted(dates, reverse=True)
    assert 1 < len(dates) == 10 - found["further"]


async def test_a_short_answer_has_the_note_that_replaces_a_result(agent, word):
    old = (await noted(agent, text=f"The port of {word} is 8443.", tags=[word]))["document_id"]
    new = await noted(agent, text="It is now 9443, says Ada.", tags=[word], replaces=old)
    for number in range(9):
        await noted(agent, text=f"{LINE}Meeting {number} of {word}.", tags=[word])
    found = await call(agent, "kb_search", query=f"Which port has {word}?", tags=[word])
    assert {old, new["document_id"]} <= {result["document_id"] for result in found["results"]}


async def test_a_weak_answer_names_the_other_languages_of_documents(agent, word):
    text = f"Die Kündigungsfrist für die Garage {word} beträgt sechs Wochen zum Ende des Quartals."
    await noted(agent, text=text, tags=[word])
    said = (await agent.call_tool("kb_search", {"query": "how to end the lease", "tags": [word]})).content[0].text
    assert "Also search in de." in said
    said = (await agent.call_tool("kb_search", {"query": word, "tags": [word]})).content[0].text
    assert "Also search in" not in said


async def test_an_identifier_that_no_document_contains_is_said(agent, word):
    await noted(agent, text=f"Pump P-07 of {word}: offset 0.40 ml.", tags=[word])
    said = (await agent.call_tool("kb_search", {"query": f"offset of pump P-{word}9", "tags": [word]})).content[0].text
    assert f'No document contains "P-{word}9".' in said


def result(number, score, text=LINE, replaced_by=None, more=()):
    return {"document_id": number, "chunk_id": number, "score": score, "fts_score": score, "vec_score": score / 10,
            "replaced_by": replaced_by, "more": list(more), "text": text, "title": "", "index": 0, "highlights": []}  # fmt: skip


def chosen(results, *, is_ranked=True):
    shown = best({"results": results}, 0, is_ranked=is_ranked)
    assert shown["further"] <= sum(1 + len(each["more"]) for each in results) - len(shown["results"])
    return [each["document_id"] for each in shown["results"]]


def test_few_tokens_hold_the_best_results_and_many_if_all_are_as_good():
    few = chosen([result(number, 3.4 * 0.6**number) for number in range(10)])
    many = chosen([result(number, 6 - number / 100) for number in range(30)])
    cost = estimate_tokens(LINE) + 12
    assert few == list(range(len(few)))
    assert TOKENS - cost < len(few) * cost <= TOKENS
    assert TOKENS_WITH_EQUALS - cost < len(many) * cost <= TOKENS_WITH_EQUALS


def test_the_first_result_is_there_however_long_it_is_and_a_short_one_fits_after_a_long_one():
    results = [result(0, 6.0, LINE * 20), *(result(number, 1.0) for number in range(1, 10))]
    assert chosen(results) == [0]
    assert chosen([result(0, 6.0), result(1, 5.0, LINE * 20), result(2, 4.9, "Short.")]) == [0, 2]


def test_the_best_results_keep_their_order_and_a_replacement_stays():
    weak = [result(number, 0.1) for number in range(10, 19)]
    assert chosen([result(2, 0.1, LINE * 9), result(1, 6.0, LINE, replaced_by=2), *weak])[:2] == [2, 1]


def test_results_of_one_kind_of_search_fill_few_tokens_in_their_order():
    found = chosen([result(number, number + 5) for number in range(10)], is_ranked=False)
    assert found[:2] == [0, 1]
    assert len(found) < 5


def test_further_passages_of_a_document_count_as_others():
    reply = {"results": [result(0, 6.0, more=[{"score": 5.0, "fts_score": 5.0, "vec_score": 0.5, "chunk_id": 8}])]}
    assert best(reply, 0, is_ranked=True)["further"] == 1


def test_no_result_is_no_short_answer():
    assert best({"results": []}, 0, is_ranked=True) == {"results": []}


@pytest.mark.parametrize(
    ("further", "longer", "has_excerpts", "said"),
    [
        (0, 0, False, ""),
        (0, 20, False, "There may be more that are as good: top=20."),
        (1, 0, False, "For 1 more of similar score: top=10."),
        (5, 0, True, "For 5 more of similar score and the sentences left out at …: top=10."),
        (0, 20, True, "For the sentences left out at …: top=20."),
    ],
)
def test_the_last_line_says_what_an_answer_leaves_out(further, longer, has_excerpts, said):
    assert left_out_text(further, longer, has_excerpts=has_excerpts) == said
