from __future__ import annotations

import asyncio
import io
from uuid import uuid4

import pytest

from kb.api.errors import Changed, Invalid, NotANote, NotFound
from kb.client.client import EngineClient
from tests.conftest import KEY
from tests.http.conftest import added, finished


@pytest.fixture
def word():
    """A word that no other test uses."""
    return f"w{uuid4().hex}"


@pytest.mark.requirement("N-1")
@pytest.mark.requirement("N-3")
async def test_an_updated_note_is_found_by_its_new_text_and_not_by_its_old_one(api, word):
    document_id = await added(api, f"{word}old prefers tea", tags=["t"], title="Drinks")
    before = await api.document(document_id)
    after = await api.update_note(document_id, f"{word}new prefers coffee")
    assert [chunk["text"] for chunk in after["chunks"]] == [f"{word}new prefers coffee"]
    kept = ("id", "tags", "created_at", "title", "source_path", "doc_type")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert after["content_hash"] != before["content_hash"]
    assert after["updated_at"] is not None
    assert [r["document_id"] for r in (await api.search(query=f"{word}new", fts_only=True))["results"]] == [document_id]
    assert (await api.search(query=f"{word}old", fts_only=True))["results"] == []


@pytest.mark.requirement("N-1")
async def test_a_long_note_becomes_several_chunks_and_its_last_words_are_found(api, word):
    document_id = await added(api, "short")
    filler = "Ledgers were kept in the counting house by patient clerks. " * 80
    note = await api.update_note(document_id, f"{filler} The lighthouse keeper of {word} collects rare stamps.")
    assert len(note["chunks"]) > 3
    best = (await api.search(query="who has a stamp collection", vec_only=True, top=1))["results"][0]
    assert best["chunk_id"] == note["chunks"][-1]["id"]


async def test_a_note_without_a_title_is_listed_under_its_new_first_line(api, word):
    document_id = await added(api, f"First line {word}\nmore")
    assert (await api.document(document_id))["title"] == f"First line {word}"
    assert (await api.update_note(document_id, f"## Another {word}\n"))["title"] == f"Another {word}"


@pytest.mark.requirement("N-4")
async def test_what_cannot_be_updated_says_why(api, word):
    with pytest.raises(NotFound):
        await api.update_note(2**40, "text")
    job = await finished(api, await api.add_file("a.txt", io.BytesIO(word.encode())))
    with pytest.raises(NotANote, match="only notes can be updated"):
        await api.update_note(job["document_id"], "text")
    for empty in ("", " \n\t"):
        with pytest.raises(Invalid, match="text"):
            await api.update_note(await added(api, word), empty)


@pytest.mark.requirement("N-6")
async def test_of_two_who_read_the_same_note_one_may_write(api, word):
    document_id = await added(api, word)
    read = (await api.document(document_id))["content_hash"]
    await api.update_note(document_id, f"{word} first", if_match=read)
    with pytest.raises(Changed, match="was changed"):
        await api.update_note(document_id, f"{word} second", if_match=read)
    assert (await api.document(document_id))["chunks"][0]["text"] == f"{word} first"


async def _attempt(api, document_id, text, read):
    """The note's hash now, and whether this update made it."""
    try:
        return (await api.update_note(document_id, text, if_match=read))["content_hash"], True
    except Changed as error:
        return error.extra["content_hash"], False


@pytest.mark.slow
@pytest.mark.requirement("N-6")
@pytest.mark.parametrize("turns", [200, pytest.param(1000, marks=pytest.mark.long)])
async def test_of_two_who_write_at_once_exactly_one_wins_however_often(server, api, word, turns):
    document_id = await added(api, word)
    read = (await api.document(document_id))["content_hash"]
    async with EngineClient(server.url, KEY) as other:
        for turn in range(turns):
            (one, first), (two, second) = await asyncio.gather(
                _attempt(api, document_id, f"{word} {turn} from one", read),
                _attempt(other, document_id, f"{word} {turn} from two", read),
            )
            assert first != second
            assert one == two != read
            read = one
    document = await api.document(document_id)
    assert document["content_hash"] == read
    assert document["chunks"][0]["text"] in (f"{word} {turns - 1} from one", f"{word} {turns - 1} from two")


@pytest.mark.requirement("N-6")
async def test_if_match_is_read_as_http_has_it(http, api, word):
    note = await added(api, word)

    async def status(*values):
        headers = [("If-Match", value) for value in values]
        return (await http.patch(f"/notes/{note}", json={"text": f"{word} again"}, headers=headers)).status_code

    current = (await api.document(note))["content_hash"]
    for refused in ('""', "", '"bad"', f'W/"{current}"'):
        assert await status(refused) == 412, refused
    assert await status('"bad"', f'"{current}"') == 200
    current = (await api.document(note))["content_hash"]
    assert await status(f'"bad", "{current}"') == 200
    assert await status("*") == 200
    assert await status() == 200
