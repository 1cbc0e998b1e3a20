"""A note replaces another one, and names its source."""

from __future__ import annotations

import io

import pytest

from kb.api.errors import AlreadyReplaced, Invalid, KeyReused, NotANote, NotFound
from tests.http.conftest import added, finished, moment

MODES = ({}, {"fts_only": True}, {"vec_only": True}, {"group_by": "document"}, {"sort": "recent"}, {"exact": True})


async def found(api, word, query=None, **options):
    """The documents that a search among those of this test finds, in order, each with what replaced it."""
    results = (await api.search(query=query or word, tags=[word], **{"top": 20} | options))["results"]
    return {each["document_id"]: each["replaced_by"] for each in results}


async def noted(api, text, **options):
    """The id of a note that is tagged with its first word."""
    return await added(api, text, tags=[text.split()[0]], **options)


async def chain(api, *texts):
    """The ids of notes, each of which replaces the one before."""
    ids = []
    for text in texts:
        ids.append(await noted(api, text, replaces=ids[-1] if ids else None))
    return ids


@pytest.mark.parametrize("mode", MODES)
async def test_what_was_replaced_stands_behind_what_replaced_it_and_says_so(api, word, mode):
    texts = (
        f"{word} which database does the harbour use? The harbour uses the database MySQL 8.",
        f"{word} the harbour moved to PostgreSQL 17.",
        f"{word} PostgreSQL 18 now.",
    )
    first, second, third = await chain(api, *texts)
    others = [await noted(api, f"{word} the harbour uses the database of ship {n}") for n in range(3)]
    order = await found(api, word, f"{word} which database does the harbour use", **mode)
    places = {document_id: place for place, document_id in enumerate(order)}
    assert places[third] < places[second] < places[first]
    assert order == dict.fromkeys(order) | {first: third, second: third}
    assert order.keys() == {first, second, third, *others}


async def test_what_replaced_the_best_is_found_though_it_would_not_have_been(api, word):
    first = await noted(api, f"{word} The spare key of the boathouse hangs behind the stove.")
    for number in range(12):
        await added(api, f"{word} Spare key {number} of the boathouse was painted behind the stove.")
    last = await noted(api, f"{word} It was given to Nora.", replaces=first)
    question = "where does the spare key of the boathouse hang"
    for mode in ({}, {"vec_only": True}, {"group_by": "document"}, {"explain": True}):
        best, *_ = (await api.search(query=question, top=1, tags=[word], **mode))["results"]
        assert best["document_id"] == last, mode
    assert list(await found(api, word, question, top=2)) == [last, first]
    assert list(await found(api, word, question, top=1, fts_only=True)) == [first]
    assert await found(api, word, question, document_id=first) == {first: last}


async def test_documents_say_what_they_replace_and_what_replaced_them_last(api, word):
    first, second, third = await chain(api, f"{word} one", f"{word} two", f"{word} three")
    links = {first: (None, third), second: (first, third), third: (second, None)}
    for document_id, link in links.items():
        document = await api.document(document_id)
        assert (document["replaces"], document["replaced_by"]) == link
    listed = (await api.documents(tag=[word]))["documents"]
    assert {each["id"]: (each["replaces"], each["replaced_by"]) for each in listed} == links
    changed = await api.change_tags(first, add=["more"], remove=[])
    assert changed["replaced_by"] == third


async def test_a_successor_in_the_bin_replaces_nothing_and_one_in_between_is_passed_over(api, word):
    first, second, third = await chain(api, f"{word} one", f"{word} two", f"{word} three")
    await api.delete_document(second)
    assert (await api.document(first))["replaced_by"] == third
    await api.delete_document(third)
    assert (await api.document(first))["replaced_by"] is None
    assert await found(api, word) == {first: None}
    await api.restore(second)
    assert await found(api, word) == {second: None, first: second}
    await api.restore(third)
    assert (await api.document(second))["replaced_by"] == third


async def test_a_document_deleted_for_good_leaves_its_place_to_what_it_replaced(api, word):
    first, second, third = await chain(api, f"{word} one", f"{word} two", f"{word} three")
    await api.delete_document(second, purge=True)
    assert (await api.document(first))["replaced_by"] == third
    assert (await api.document(third))["replaces"] == first
    await api.delete_document(first, purge=True)
    assert (await api.document(third))["replaces"] is None


async def test_who_says_again_what_was_replaced_replaces_what_replaced_it(api, word):
    first, second, third = await chain(api, f"{word} room 12", f"{word} room 14", f"{word} room 15")
    since = await moment()
    assert await noted(api, f"{word} room 12", replaces=third) == first
    assert (await api.document(first))["replaced_by"] is None
    assert await found(api, word) == {first: None, second: first, third: first}
    assert next(iter(await found(api, word))) == first
    await api.undo(since)
    assert await found(api, word) == {third: None, second: third, first: third}
    assert (await api.document(second))["replaces"] == first


async def test_undo_takes_a_replacement_back(api, word):
    first = await noted(api, f"{word} one")
    other = await noted(api, f"{word} other")
    since = await moment()
    second = await noted(api, f"{word} two", replaces=first)
    assert await noted(api, f"{word} other", replaces=second, source="a slip") == other
    undone = await api.undo(since)
    assert not any(step["skipped"] for step in undone["steps"])
    assert await found(api, word) == {first: None, other: None}
    document = await api.document(other)
    assert (document["source"], document["replaces"], document["replaced_by"]) == (None, None, None)


async def test_notes_that_were_made_to_replace_each_other_replace_nothing(api, word):
    first, second = await chain(api, f"{word} one", f"{word} two")
    await noted(api, f"{word} one", replaces=second)
    await api.revert(second, 1)  # to when it replaced the first one
    assert await found(api, word) == {first: None, second: None}


async def test_a_note_under_its_own_key_stays_where_it_stands(api, word):
    first = await noted(api, f"{word} one")
    second = await noted(api, f"{word} two", source_path=f"/{word}", replaces=first, source="Ada")
    assert await noted(api, f"{word} three", source_path=f"/{word}", replaces=second) == second
    document = await api.document(second)
    assert (document["replaces"], document["replaced_by"], document["source"]) == (first, None, None)
    await api.update_note(second, f"{word} four")
    assert (await api.document(first))["replaced_by"] == second


async def test_only_a_note_that_is_there_is_replaced(api, word):
    gone = await added(api, word)
    await api.delete_document(gone)
    file = await finished(api, await api.add_file("a.txt", io.BytesIO(f"{word} in a file".encode())))
    for wanted, error, says in (
        (10**15, NotFound, "^replaces: Document 1000000000000000 does not exist"),
        (gone, NotFound, "^replaces: .*has been in the bin"),
        (file["document_id"], NotANote, "^replaces: .* of type text"),
        (0, Invalid, "^replaces: "),
    ):
        with pytest.raises(error, match=says):
            await api.add_note(text=f"{word} new", replaces=wanted)
    assert (await api.documents(source_path=f"/{word}"))["documents"] == []


async def test_a_repeated_request_is_the_same_job_whatever_became_of_what_it_replaced(api, http, word):
    first = await noted(api, f"{word} one")
    note = {"text": f"{word} two", "replaces": first, "source": "Ada"}
    sent = [await http.post("/jobs?wait=30", json=note, headers={"Idempotency-Key": word}) for _ in range(2)]
    await api.delete_document(first, purge=True)
    sent.append(await http.post("/jobs?wait=30", json=note, headers={"Idempotency-Key": word}))
    assert len({answer.json()["document_id"] for answer in sent}) == 1
    other = await http.post("/jobs", json=note | {"source": "Bob"}, headers={"Idempotency-Key": word})
    assert other.json()["type"].endswith(KeyReused.code)


async def test_a_note_says_where_it_comes_from(api, word):
    id_ = await noted(api, f"{word} one", source="  Ada,\n on the  phone ")
    assert (await api.document(id_))["source"] == "Ada, on the phone"
    [result] = (await api.search(query=word, tags=[word]))["results"]
    [listed] = (await api.documents(tag=[word]))["documents"]
    assert result["source"] == listed["source"] == "Ada, on the phone"
    await api.update_note(id_, f"{word} two")
    await noted(api, f"{word} two")
    assert (await api.document(id_))["source"] == "Ada, on the phone"
    await noted(api, f"{word} two", source="a letter")
    assert (await api.document(id_))["source"] == "a letter"
    assert (await api.documents(tag=[word]))["documents"][0]["id"] == id_
    await api.revert(id_, 2)
    assert (await api.document(id_))["source"] == "Ada, on the phone"


@pytest.mark.parametrize("source", ["", " ", "x" * 501, 7])
async def test_a_source_is_a_short_text(http, source):
    answer = await http.post("/jobs", json={"text": "x", "source": source})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("source: ")


async def test_a_note_that_is_replaced_already_is_replaced_by_no_second_one(api, word):
    first, second, third = await chain(api, f"{word} one", f"{word} two", f"{word} three")
    other = await noted(api, f"{word} other")
    for replaced, text in ((first, "new"), (second, "new"), (second, "other"), (second, "one")):
        said = f"^replaces: note {third} already replaces note {replaced}. Replace {third} instead.$"
        with pytest.raises(AlreadyReplaced, match=said):
            await api.add_note(text=f"{word} {text}", replaces=replaced)
    assert await found(api, word) == {first: third, second: third, third: None, other: None}
    assert await noted(api, f"{word} new", replaces=third)


async def test_a_note_may_be_said_again_to_replace_what_it_does_directly_or_in_turn(api, word):
    first, second, third = await chain(api, f"{word} one", f"{word} two", f"{word} three")
    keyed = await noted(api, f"{word} four", source_path=f"/{word}", replaces=third)
    for said, replaced, note in (("two", first, second), ("three", first, third)):
        assert await noted(api, f"{word} {said}", replaces=replaced) == note
    for said, replaced in (("five", third), ("six", first)):
        assert await noted(api, f"{word} {said}", source_path=f"/{word}", replaces=replaced) == keyed
    assert await found(api, word) == {first: keyed, second: keyed, third: keyed, keyed: None}
    assert [(await api.document(each))["replaces"] for each in (second, third, keyed)] == [first, second, third]


async def test_a_note_whose_successor_was_deleted_is_replaced_anew(api, word):
    first, second = await chain(api, f"{word} one", f"{word} two")
    await api.delete_document(second)
    third = await noted(api, f"{word} three", replaces=first)
    assert await found(api, word) == {first: third, third: None}


async def test_a_note_that_comes_back_does_not_replace_what_another_one_replaces_by_now(api, word):
    first, binned = await chain(api, f"{word} one", f"{word} two")
    other = await noted(api, f"{word} other")
    again = await noted(api, f"{word} three", source_path=f"/{word}", replaces=other)
    await api.delete_document(binned)
    third = await noted(api, f"{word} four", replaces=first)
    await api.restore(binned)
    assert await found(api, word) == {first: third, third: None, binned: None, other: again, again: None}
    assert (await api.document(binned))["replaces"] is None
    with pytest.raises(AlreadyReplaced, match=f"Replace {third} instead"):
        await noted(api, f"{word} two", replaces=first)
    await api.delete_document(third)
    await noted(api, f"{word} two", replaces=first)
    await api.restore(third)
    assert (await found(api, word))[first] == binned
    await api.revert(third, 1)
    assert (await found(api, word))[first] == binned
    assert (await api.document(third))["replaces"] is None


async def test_a_note_whose_place_went_on_from_a_deleted_one_is_not_parted_by_what_comes_back(api, word):
    first, second = await chain(api, f"{word} one", f"{word} two")
    await api.delete_document(second)
    third = await noted(api, f"{word} three", replaces=first)
    last = await noted(api, f"{word} four", replaces=third)
    await api.delete_document(third)
    await api.restore(second)
    assert await found(api, word) == {first: last, last: None, second: None}


async def test_undo_gives_back_the_places_that_notes_took_from_each_other(api, word):
    first, second = await chain(api, f"{word} one", f"{word} two")
    other = await noted(api, f"{word} other")
    keyed = await noted(api, f"{word} three", source_path=f"/{word}", replaces=other)
    since = await moment()
    await api.delete_document(second)
    assert await noted(api, f"{word} four", source_path=f"/{word}", replaces=first) == keyed
    last = await noted(api, f"{word} five", replaces=other)
    undone = await api.undo(since)
    assert not any(step["skipped"] for step in undone["steps"])
    assert await found(api, word) == {first: second, second: None, other: keyed, keyed: None}
    assert (await api.undo(since))["steps"] == []
    assert last not in await found(api, word)
