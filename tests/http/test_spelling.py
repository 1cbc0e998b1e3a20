"""A word that no document has is looked for by those that are spelled nearly alike, and the answer says so."""

from __future__ import annotations

import pytest

from tests.http.conftest import finished

TEXTS = ("Zeppelins crossed the ocean.", "A quartermaster counts blankets.", "Zeppelin quartermasters are retired.")


@pytest.fixture
async def tag(api):
    for text in TEXTS:
        await finished(api, await api.add_note(text=text, tags=["spelling"]))
    return "spelling"


async def answer(api, tag, query, **mode):
    reply = await api.search(query=query, tags=[tag], **mode)
    return [result["text"] for result in reply["results"]], reply["unknown"]


async def test_an_unknown_word_gives_way_to_the_nearest_one_and_is_named(api, tag):
    texts, unknown = await answer(api, tag, "the quatermaster", fts_only=True)
    assert unknown == [{"word": "quatermaster", "nearest": ["quartermaster"]}]
    assert set(texts) == set(TEXTS[1:])


async def test_two_letters_of_a_long_word_may_be_wrong_behind_its_first_half(api, tag):
    _, unknown = await answer(api, tag, "quartermestar", fts_only=True)
    assert unknown[0]["nearest"] == ["quartermaster"]


async def test_a_word_that_is_like_no_other_is_named_and_left_as_it_is(api, tag):
    texts, unknown = await answer(api, tag, "xylqwvz zeppelin", fts_only=True)
    assert unknown == [{"word": "xylqwvz", "nearest": []}]
    assert len(texts) == 2


async def test_a_short_word_is_named_too_and_never_taken_for_another(api, tag):
    texts, unknown = await answer(api, tag, "zepp oce zeppelin quatermaster", fts_only=True)
    assert unknown[:2] == [{"word": "zepp", "nearest": []}, {"word": "oce", "nearest": []}]
    assert unknown[2:] == [{"word": "quatermaster", "nearest": ["quartermaster"]}]
    assert set(texts) == set(TEXTS)


@pytest.mark.parametrize(
    "query",
    [
        "zeppelin quartermaster",
        '"quatermaster"',
        "quatermaster_1",
        "zepelin2",
        "QUATERMASTER",
        "quaterMaster",
        "zeppelin -quatermaster",
        "quatermast*",
        "quater-master",
    ],
)
async def test_what_is_known_or_meant_as_it_is_written_is_no_misspelling(api, tag, query):
    for mode in ({}, {"fts_only": True}):
        assert (await answer(api, tag, query, **mode))[1] == []


async def test_a_search_by_meaning_alone_corrects_nothing(api, tag):
    assert (await answer(api, tag, "quatermaster", vec_only=True))[1] == []


async def test_a_word_that_a_filter_leaves_out_is_known(api, tag):
    await finished(api, await api.add_note(text="Zapelins are zapelins.", tags=["elsewhere"]))
    assert (await answer(api, tag, "zapelins"))[1] == []


async def test_a_word_between_letters_of_a_script_without_spaces_is_named_as_it_is_written_there(api, tag):
    await finished(api, await api.add_note(text="夕方にXylophonesを聞いた。", tags=[tag]))
    texts, unknown = await answer(api, tag, "xylophonse", fts_only=True)
    assert unknown == [{"word": "xylophonse", "nearest": ["xylophones"]}]
    assert texts == ["夕方にXylophonesを聞いた。"]


async def test_a_word_with_a_sharp_s_is_found_by_two_and_the_other_way_round(api):
    await finished(api, await api.add_note(text="In der Zwetschgenmaßgasse ist es eng.", tags=["sharp"]))
    await finished(api, await api.add_note(text="Am Schleussengrund liegt ein Boot.", tags=["sharp"]))
    texts, unknown = await answer(api, "sharp", "zwetschgenmassgasse", fts_only=True)
    assert unknown == []
    assert texts == ["In der Zwetschgenmaßgasse ist es eng."]
    texts, unknown = await answer(api, "sharp", "Schleußengrund", fts_only=True)
    assert texts == ["Am Schleussengrund liegt ein Boot."]
    await finished(api, await api.add_note(text="Die Quiße.", tags=["sharp"]))
    texts, unknown = await answer(api, "sharp", "quisse", fts_only=True)
    assert (texts, unknown) == (["Die Quiße."], [])


async def test_an_isbn_is_found_with_or_without_its_hyphens(api):
    for text in ("Parted: 978-3-16-148410-0.", "Joined: 9780306406157.", "Pages 978, 3, 16 and 0."):
        await finished(api, await api.add_note(text=text, tags=["isbn"]))
    for written, found in (("9783161484100", "Parted"), ("978-3-16-148410-0", "Parted")):
        texts, _ = await answer(api, "isbn", written, fts_only=True)
        assert texts[0].startswith(found)
    for written in ("978-0-306-40615-7", "978-0-306-40615-7?"):
        assert (await answer(api, "isbn", written, fts_only=True))[0] == ["Joined: 9780306406157."]
    assert (await answer(api, "isbn", "9783161484101", fts_only=True))[0] == []
