"""Results far below the first are left out and counted."""

from __future__ import annotations

import asyncio

import pytest

from kb.client.client import EngineClient
from kb_mcp.tools.shortened_results import left_out_text, without_weaker
from tests.conftest import KEY
from tests.http.conftest import until_idle
from tests.mcp.conftest import call, noted

TAG = "weaker"
ANSWER = "Harbor's gateway listens on port 8443 since March."
FILLER = (
    "The bakery sells rye bread on Fridays.", "Mia's bicycle needs a new chain.", "The lake was frozen in January.",
    "Lunch with Tom at the Greek place.", "The piano was tuned on Tuesday.", "Water the ferns twice a week.",
    "The museum opens at ten.", "A heron was seen by the pond.", "Paint the fence dark green.",
    "The choir sings Bach at Easter.", "Buy stamps for the letters.", "The cat sleeps on the warm stove.",
    "Oslo has a new library.", "The train to Bergen takes seven hours.", "Granny's soup has leeks and barley.",
)  # fmt: skip


@pytest.fixture(scope="module")
def shelf(server):
    """One note that answers, and fifteen about other things."""

    async def fill():
        async with EngineClient(server.url, KEY) as engine:
            for text in (ANSWER, *FILLER):
                await engine.add_note(text=text, tags=[TAG])
            await until_idle(engine)

    asyncio.run(fill())


async def test_weaker_results_are_left_out_and_counted_and_all_shows_them(agent, shelf):
    question = {"query": "Which port does the gateway of Harbor use?", "tags": [TAG], "top": 10}
    result = await agent.call_tool("kb_search", question)
    found = result.structured_content
    assert found["results"][0]["text"] == ANSWER
    assert len(found["results"]) + found["weaker"] == 10
    assert len(found["results"]) < 5
    assert f"{found['weaker']} weaker results left out; all=true shows them." in result.content[0].text
    everything = await call(agent, "kb_search", **question, all=True)
    assert len(everything["results"]) == 10
    assert "weaker" not in everything


async def test_more_than_ten_results_are_given_as_asked(agent, shelf):
    found = await call(agent, "kb_search", query="Which port does the gateway of Harbor use?", tags=[TAG], top=12)
    assert len(found["results"]) == 12


async def test_notes_that_answer_alike_all_stay(agent, word):
    for number in range(12):
        await noted(agent, text=f"{word} meeting {number} of the harbour board about dredging.", tags=[word])
    found = await call(agent, "kb_search", query=f"{word} harbour board dredging", tags=[word], top=10)
    assert len(found["results"]) == 10


async def test_a_list_that_is_not_full_stays_whole(agent, word):
    texts = (f"{word}: the ferry leaves at six.", f"{word}: the pump was oiled.")
    for text in texts:
        await noted(agent, text=text, tags=[word])
    found = await call(agent, "kb_search", query="When does the ferry leave?", tags=[word])
    assert [result["text"] for result in found["results"]] == list(texts)


def result(number, score, fts, vec, replaced_by=None, more=()):
    return {"document_id": number, "score": score, "fts_score": fts, "vec_score": vec, "replaced_by": replaced_by,
            "more": list(more)}  # fmt: skip


@pytest.mark.parametrize(
    ("results", "kept"),
    [
        ([result(1, 6.0, 9.0, 0.8), result(2, 0.5, 1.0, 0.2)], [1]),
        ([result(1, 6.0, 9.0, 0.8), result(2, 1.6, 1.0, 0.2)], [1, 2]),  # the bonus of the first does not count
        ([result(2, 0.1, None, 0.1), result(1, 3.0, 9.0, 0.8, replaced_by=2)], [2, 1]),
        ([result(1, 1.0, None, 0.5), result(2, -1.0, None, 0.45)], [1, 2]),
        ([result(1, -0.5, None, -0.1), result(2, -1.0, None, -0.2)], [1, 2]),
        ([result(1, 0.0, None, 0.0), result(2, 0.0, None, 0.0)], [1, 2]),
    ],
)
def test_what_stays(results, kept):
    shown = without_weaker({"results": results}, 2)
    assert [each["document_id"] for each in shown["results"]] == kept
    assert shown["weaker"] == len(results) - len(kept)


@pytest.mark.parametrize(
    ("weaker", "further", "has_excerpts", "said"),
    [
        (0, 0, False, ""),
        (1, 0, False, "1 weaker result left out; all=true shows them."),
        (2, 0, True, "2 weaker results left out, and sentences at …; all=true shows them."),
        (0, 0, True, "Sentences left out at …; all=true shows them."),
        (0, 1, False, "1 more result: top=10."),
        (3, 7, False, "7 more results: top=10; 3 weaker: all=true."),
        (0, 7, True, "7 more results, and sentences at …: top=10."),
    ],
)
def test_an_answer_says_what_it_leaves_out(weaker, further, has_excerpts, said):
    assert left_out_text(weaker, further, has_excerpts=has_excerpts) == said


async def test_a_weak_answer_names_the_other_languages_of_documents(agent, word):
    text = f"Die Kündigungsfrist für die Garage {word} beträgt sechs Wochen zum Ende des Quartals."
    await noted(agent, text=text, tags=[word])
    said = (await agent.call_tool("kb_search", {"query": "how to end the lease", "tags": [word]})).content[0].text
    assert "Other documents are in de: also search in that language." in said
    said = (await agent.call_tool("kb_search", {"query": word, "tags": [word]})).content[0].text
    assert "Other documents" not in said


async def test_an_identifier_that_no_document_contains_is_said(agent, word):
    await noted(agent, text=f"Pump P-07 of {word}: offset 0.40 ml.", tags=[word])
    said = (await agent.call_tool("kb_search", {"query": f"offset of pump P-{word}9", "tags": [word]})).content[0].text
    assert f'No document contains "P-{word}9".' in said
