"""A search that is asked to says what each score is made of."""

from __future__ import annotations

import pytest

from tests.http.conftest import finished

TEXTS = ("The glimmerfish swims by night.", "It glows, too.", "A glimmerfish never glows.", "Trains leave by night.")


@pytest.fixture
async def tag(api):
    for text in TEXTS:
        await finished(api, await api.add_note(text=text, tags=["explained"], thread="explained"))
    return "explained"


async def test_what_is_explained_adds_up_to_the_score(api, tag):
    reply = await api.search(query="glimmerfish glows", tags=[tag], explain=True)
    for result in reply["results"]:
        why = result["explanation"]
        assert why["words"]["share"] + why["meaning"]["share"] + why["typed"] == pytest.approx(result["score"])
        assert sum(term["score"] for term in why["terms"]) == pytest.approx(result["fts_score"] or 0)
        assert (why["words"]["score"], why["meaning"]["score"]) == (result["fts_score"], result["vec_score"])
        assert (why["words"]["in_context"] is None) == (result["context_score"] is None)
    by_text = {result["text"]: result["explanation"] for result in reply["results"]}
    assert {term["term"] for term in by_text[TEXTS[2]]["terms"]} == {"glimmerfish", "glows"}
    assert by_text[TEXTS[2]]["words"]["place"] == 1
    assert {term["term"]: term["count"] for term in by_text[TEXTS[0]]["terms"]} == {"glimmerfish": 1}
    known = [term["idf"] for why in by_text.values() for term in why["terms"] if term["idf"] is not None]
    assert min(known, default=1) > 0  # a word that has other forms in documents of the engine says none
    assert (by_text[TEXTS[3]]["words"]["place"], by_text[TEXTS[3]]["terms"]) == (None, [])
    assert sorted(why["meaning"]["place"] for why in by_text.values()) == [1, 2, 3, 4]


@pytest.mark.parametrize(("mode", "leg"), [("fts_only", "words"), ("vec_only", "meaning")])
async def test_one_leg_alone_is_the_whole_score(api, tag, mode, leg):
    reply = await api.search(query="glimmerfish", tags=[tag], explain=True, **{mode: True})
    for place, result in enumerate(reply["results"], 1):
        why = result["explanation"]
        assert why[leg]["place"] == place
        assert why[leg]["share"] + why["typed"] == pytest.approx(result["score"])
        assert why["words" if leg == "meaning" else "meaning"] is None


async def test_the_other_passages_of_a_document_are_explained_too(api, tag):
    reply = await api.search(query="glimmerfish", tags=[tag], explain=True, group_by="document")
    assert all(each["explanation"] for result in reply["results"] for each in (result, *result["more"]))


async def test_nothing_is_explained_unasked(api, tag):
    assert all(result["explanation"] is None for result in (await api.search(query="x", tags=[tag]))["results"])


async def test_a_beginning_of_words_has_no_weight_of_its_own(api, tag):
    reply = await api.search(query="glimmerf*", tags=[tag], explain=True, fts_only=True)
    [term] = reply["results"][0]["explanation"]["terms"]
    assert (term["idf"], term["count"]) == (None, None)


async def test_a_word_that_stands_often_says_so(api):
    await finished(api, await api.add_note(text="Knock, knock, knock: woodpeckers.", tags=["knocking"]))
    reply = await api.search(query="knock", tags=["knocking"], explain=True, fts_only=True)
    assert [term["count"] for term in reply["results"][0]["explanation"]["terms"]] == [3]
