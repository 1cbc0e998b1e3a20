"""Tags as a tree, over HTTP."""

from __future__ import annotations

import asyncio
import io

import pytest

from kb.api.errors import Forbidden, Invalid, NotFound
from kb.client.client import EngineClient
from tests.http.conftest import added, finished


async def listed(api, **where):
    return {document["id"] for document in (await api.documents(limit=500, **where))["documents"]}


async def found(api, query, **where):
    return {result["document_id"] for result in (await api.search(query=query, **where))["results"]}


async def counts(api, word):
    tags = (await api.tags())["tags"]
    return {each["tag"]: (each["documents"], each["branch"]) for each in tags if word in each["tag"]}


async def test_a_tag_in_a_list_or_a_search_includes_the_tags_below_it(api, word):
    kiln = await added(api, f"{word} bricks", tags=[f"{word}/kiln"])
    old = await added(api, f"{word} bricks of old", tags=[f"{word}-old"])
    own = await added(api, f"{word} bricks themselves", tags=[word])
    assert await listed(api, tag=[word]) == await listed(api, tag_any=[word]) == {kiln, own}
    for mode in ({}, {"fts_only": True}, {"vec_only": True}, {"group_by": "document"}):
        assert await found(api, word, tags=[word], **mode) == {kiln, own}
    assert await found(api, word, tag_not=[word], fts_only=True) == {old}
    assert await listed(api, tag=[word], tag_exact=True) == await found(api, word, tags=[word], tag_exact=True) == {own}
    assert await listed(api, tag=[f"{word}/"]) == {kiln, own}


async def test_the_list_of_tags_counts_each_branch_and_names_tags_that_only_stand_above_others(api, word):
    await added(api, f"{word} one", tags=[f"{word}/kiln", f"{word}/house"])
    await added(api, f"{word} two", tags=[f"{word}/kiln/bricks"])
    assert await counts(api, word) == {
        word: (0, 2), f"{word}/house": (1, 1), f"{word}/kiln": (1, 2), f"{word}/kiln/bricks": (1, 1),
    }  # fmt: skip


async def test_a_tag_is_deleted_with_all_below_it_from_all_documents_and_undo_takes_it_back(api, word):
    kiln = await added(api, f"{word} one", tags=[f"{word}/kiln", "x"])
    await added(api, f"{word} two", tags=[word, f"{word}-other"])
    assert await api.delete_tag(f"{word}/", why="no longer used") == {"documents": 2, "from_text": 0}
    assert await counts(api, word) == {f"{word}-other": (1, 1)}
    assert (await api.document(kiln))["tags"] == ["x"]
    assert (await api.history(kiln))["versions"][0]["why"] == "no longer used"
    assert (await api.undo())["changed"] == 2
    assert await counts(api, word) == {word: (1, 2), f"{word}/kiln": (1, 1), f"{word}-other": (1, 1)}
    with pytest.raises(NotFound, match="No document has the tag"):
        await api.delete_tag(f"{word}/never")


async def test_a_limited_key_deletes_a_tag_only_from_its_own_documents(server, api, word):
    mine = await added(api, f"{word} one", tags=[word, f"{word}-shared"])
    other = await added(api, f"{word} two", tags=[f"{word}-shared"])
    made = await api.make_key(word[:30], right="write", tags=[word])
    async with EngineClient(server.url, made["key"]) as limited:
        assert (await limited.delete_tag(f"{word}-shared"))["documents"] == 1
        with pytest.raises(Forbidden):
            await limited.delete_tag(word)
    await api.revoke_key(word[:30])
    assert (await api.document(mine))["tags"] == [word]
    assert (await api.document(other))["tags"] == [f"{word}-shared"]


async def test_a_tag_is_renamed_with_all_below_it_and_merged_in_one_operation_that_undo_takes_back(api, word):
    kiln = await added(api, f"{word} one", tags=[f"{word}/kiln", f"{word}-new/kiln", "x"])
    own = await added(api, f"{word} two", tags=[word])
    merged = await added(api, f"{word} three", tags=[f"{word}-new"])
    renamed = await api.rename_tag(word, f"{word}-new", why="a better word")
    assert renamed == {"documents": 2, "from_text": 0}
    assert await counts(api, word) == {f"{word}-new": (2, 3), f"{word}-new/kiln": (1, 1)}
    assert (await api.document(kiln))["tags"] == sorted([f"{word}-new/kiln", "x"])
    newest = (await api.history(own))["versions"][0]
    assert (newest["number"], newest["why"], newest["tags"]) == (2, "a better word", [f"{word}-new"])
    assert [version["number"] for version in (await api.history(merged))["versions"]] == [1]
    undone = await api.undo()
    assert (undone["changed"], undone["added"], undone["deleted"]) == (2, 0, 0)
    assert await counts(api, word) == {
        word: (1, 2), f"{word}/kiln": (1, 1), f"{word}-new": (1, 2), f"{word}-new/kiln": (1, 1),
    }  # fmt: skip


async def test_a_tag_can_be_moved_below_itself_above_itself_and_to_another_case(api, word):
    document_id = await added(api, f"{word} text", tags=[word, f"{word}/kiln"])

    async def after(old, new):
        await api.rename_tag(old, new)
        return (await api.document(document_id))["tags"]

    assert await after(word, f"{word}/old") == [f"{word}/old", f"{word}/old/kiln"]
    assert await after(f"{word}/old", word) == [word, f"{word}/kiln"]
    assert await after(f"{word}/", f"{word.upper()}/") == [word.upper(), f"{word.upper()}/kiln"]
    assert await after(f"{word.upper()}/kiln", "cafe\u0301/kiln") == [word.upper(), "caf\u00e9/kiln"]


async def test_a_document_has_one_tag_where_two_of_its_tags_become_the_same(api, word):
    document_id = await added(api, f"{word} text", tags=[f"{word}/a", f"{word}/b"])
    await api.rename_tag(f"{word}/a", f"{word}/b")
    assert (await api.document(document_id))["tags"] == [f"{word}/b"]


async def test_renaming_says_how_many_texts_still_name_the_tag(api, word):
    text = f"---\ntags: [{word}]\n---\nA text."

    async def add():
        sent = await api.add_file(f"{word}.md", io.BytesIO(text.encode()), source_path=f"/{word}.md")
        return (await finished(api, sent))["document_id"]

    document_id = await add()
    before = await api.document(document_id)
    assert before["tags"] == [word]
    assert await api.rename_tag(word, f"{word}-new") == {"documents": 1, "from_text": 1}
    after = await api.document(document_id)
    assert (after["tags"], after["content_hash"]) == ([f"{word}-new"], before["content_hash"])
    await api.rename_tag(f"{word}-new", f"{word}-newer")
    assert (await api.document(document_id))["tags"] == [f"{word}-newer"]


async def test_renaming_also_renames_the_tags_in_the_front_matter_of_notes(api, word):
    text = f"---\ntitle: {word} log\ntags: [{word}, '{word}/kiln', other] # {word}\n---\nThe {word} is #{word}.\n"
    note = await added(api, text, tags=["given"])
    plain = await added(api, f"{word} plain", tags=[word])
    assert await api.rename_tag(word, f"{word}-new", why="better") == {"documents": 2, "from_text": 0}
    after = await api.document(note)
    renamed = f"---\ntitle: {word} log\ntags: [{word}-new, '{word}-new/kiln', other] # {word}-new\n---\nThe {word} is #{word}.\n"
    assert "".join(chunk["text"] for chunk in after["chunks"]) == renamed
    assert (after["tags"], after["title"]) == (
        sorted([f"{word}-new", f"{word}-new/kiln", "given", "other"]),
        f"{word} log",
    )
    assert [version["number"] for version in (await api.history(note))["versions"]] == [2, 1]
    undone = await api.undo()
    assert (undone["changed"], undone["deleted"]) == (2, 0)
    before = await api.document(note)
    assert "".join(chunk["text"] for chunk in before["chunks"]) == text
    assert before["tags"] == sorted([word, f"{word}/kiln", "given", "other"])
    assert (await api.document(plain))["tags"] == [word]
    await api.rename_tag(word, f"{word}-new")
    await api.update_note(note, append="More.")
    assert (await api.document(note))["tags"] == after["tags"]


async def test_a_note_keeps_its_given_title_and_source_when_a_tag_is_renamed(api, word):
    note = await added(api, f"---\ntags:\n  - {word}\n---\nText of {word}.", title=f"Given {word}", source="a talk")
    await api.rename_tag(word, f"{word}/new")
    after = await api.document(note)
    assert (after["title"], after["source"], after["tags"]) == (f"Given {word}", "a talk", [f"{word}/new"])
    assert note in await found(api, f"Given {word}", fts_only=True)


async def test_front_matter_in_which_kb_cannot_rename_a_tag_safely_stays_and_is_counted(api, word):
    text = f'---\ntags: ["{word}\\u0061"]\n---\nText of {word}.'
    note = await added(api, text)
    assert (await api.document(note))["tags"] == [f"{word}a"]
    assert await api.rename_tag(f"{word}a", word) == {"documents": 1, "from_text": 1}
    assert "".join(chunk["text"] for chunk in (await api.document(note))["chunks"]) == text


async def test_a_tag_that_cannot_be_renamed_is_refused_and_nothing_changes(api, word):
    long = f"{word}/{'x' * 160}"
    document_id = await added(api, f"{word} text", tags=[word, long])
    for old, new, error, says in (
        (f"{word}-none", "new", NotFound, f"No document has the tag {word}-none"),
        (word[:-1], "new", NotFound, "or a tag below it"),
        (word, word, Invalid, "new: the tag already has this name"),
        (word, f"{word}/", Invalid, "new: the tag already has this name"),
        (word, "y" * 60, Invalid, "new: a tag below it would be"),
        (word, "y" * 201, Invalid, "new: a tag can have at most 200 characters"),
        (word, "a,b", Invalid, "new: "),
        (word, " ", Invalid, "new: "),
        ("", "new", Invalid, "old: "),
    ):
        with pytest.raises(error, match=says):
            await api.rename_tag(old, new)
    assert (await api.document(document_id))["tags"] == [word, long]
    assert len((await api.history(document_id))["versions"]) == 1


async def test_two_who_rename_the_same_tag_at_once_lose_no_document(api, word):
    ids = [await added(api, f"{word} {number}", tags=[word]) for number in range(8)]
    replies = await asyncio.gather(
        api.rename_tag(word, f"{word}-a"), api.rename_tag(word, f"{word}-b"), return_exceptions=True
    )
    assert sum(isinstance(reply, NotFound) for reply in replies) == 1
    tags = [(await api.document(document_id))["tags"] for document_id in ids]
    assert tags in ([[f"{word}-a"]] * 8, [[f"{word}-b"]] * 8)


@pytest.mark.parametrize("form", ["#{}", " {}/", "/{}", "#{}/", "# {}"])
async def test_a_tag_is_the_same_with_a_sign_in_front_and_slashes_around_it(api, word, form):
    written = form.format(word)
    note = await added(api, f"The {word} needs bricks.", tags=[written, f"{word}-old"])
    assert await listed(api, tag=[written]) == await found(api, word, tags=[written], fts_only=True) == {note}
    assert (await api.change_tags(note, add=[], remove=[written]))["tags"] == [f"{word}-old"]
    assert (await api.update_note(note, tags_add=[written]))["tags"] == [word, f"{word}-old"]
    await api.rename_tag(f"#{word}-old", written)
    assert set(await counts(api, word)) == {word}


@pytest.mark.parametrize("written", ["#", "/", "# /"])
async def test_a_tag_of_signs_only_is_refused(api, written):
    with pytest.raises(Invalid, match="more than white space, # and /"):
        await api.add_note(text="bricks", tags=[written])
