"""A note is edited in place: a part of its text, its ends, its title, its tags."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from kb.api.errors import Changed, Invalid
from tests.http.conftest import added


@pytest.fixture
def word():
    return f"w{uuid.uuid4().hex[:12]}"


LOG = "\n".join(f"Entry {number}: the lamp of {number} was lit." for number in range(200))


def text_of(document):
    return "".join(chunk["text"] for chunk in document["chunks"])


async def test_one_line_of_a_long_note_is_changed_and_found(api):
    note = await added(api, f"{LOG}\n")
    after = await api.update_note(note, old="Entry 77: the lamp of 77 was lit.", new="Entry 77: quenched by narwhals.")
    assert text_of(after) == f"{LOG}\n".replace("Entry 77: the lamp of 77 was lit.", "Entry 77: quenched by narwhals.")
    assert (await api.search(query="narwhals", fts_only=True))["results"][0]["document_id"] == note


async def test_lines_are_added_at_both_ends(api):
    note = await added(api, "middle")
    assert text_of(await api.update_note(note, append="end", prepend="start")) == "start\nmiddle\nend"


async def test_title_and_tags_change_while_the_text_stays(api):
    note = await added(api, "a text that stays", tags=["draft", "x"])
    after = await api.update_note(note, title="Titled", tags_add=["done"], tags_remove=["draft"])
    assert (after["title"], sorted(after["tags"]), text_of(after)) == ("Titled", ["done", "x"], "a text that stays")
    assert (await api.update_note(note, append="more"))["title"] == "Titled"


async def test_tags_alone_change_without_the_text_being_embedded_again(api):
    note = await api.document(await added(api, "a text whose chunk stays"))
    after = await api.update_note(note["id"], tags_add=["late"])
    assert after["chunks"] == note["chunks"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"old": "Entry 7", "new": ""}, "^old: it stands in the note 11 times"),
        ({"old": "the lamp of 78 was lighted", "new": ""}, "^old: it does not stand in the note.$"),
        ({"old": "Entry 1:"}, "old, new: give both"),
        ({"text": "x", "append": "y"}, "text: it is the whole new text"),
        ({}, "say what to change"),
    ],
)
async def test_an_edit_that_does_not_fit_is_refused_and_says_how_it_would(api, change, said):
    note = await added(api, f"{LOG}\n\n")
    with pytest.raises(Invalid, match=said) as refused:
        await api.update_note(note, **change)
    if "does not stand" in said:
        assert refused.value.extra["nearest_lines"][0] == "Entry 78: the lamp of 78 was lit."
    assert text_of(await api.document(note)) == f"{LOG}\n\n"


@pytest.mark.parametrize(
    ("text", "old"), [("aaa", "aa"), ("- \n- \n- \n", "- \n- \n"), ("so and so and so", "so and so")]
)
async def test_a_passage_that_stands_there_twice_by_overlapping_itself_is_refused(api, text, old):
    note = await added(api, text)
    with pytest.raises(Invalid, match=r"^old: it stands in the note 2 times"):
        await api.update_note(note, old=old, new="x")
    assert text_of(await api.document(note)) == text
    assert text_of(await api.update_note(note, old=text, new="x")) == "x"


async def test_a_note_cannot_be_edited_to_nothing(api):
    note = await added(api, "only this")
    with pytest.raises(Invalid, match="more than white space"):
        await api.update_note(note, old="only this", new=" ")


async def test_a_refused_change_shows_the_text_that_is_there_now(api):
    note = await added(api, "the first version of this note")
    read = (await api.document(note))["content_hash"]
    await api.update_note(note, "the second version of this note")
    with pytest.raises(Changed) as refused:
        await api.update_note(note, old="first", new="third", if_match=read)
    assert refused.value.extra["text"] == "the second version of this note"


async def test_edits_of_different_lines_at_once_are_all_kept(api):
    note = await added(api, "\n".join(f"line {number}." for number in range(8)) + "\nfor edits at once")
    await asyncio.gather(*(api.update_note(note, old=f"line {n}.", new=f"changed {n}.") for n in range(8)))
    text = text_of(await api.document(note))
    assert all(f"changed {number}." in text for number in range(8))


async def test_a_note_is_what_its_front_matter_says_and_keeps_it_in_its_text(api):
    text = "---\ntitle: The crane\ndate: 2023-01-20\ntags: [harbour, iron]\n---\nThe crane was painted."
    note = await added(api, text, tags=["given"])
    document = await api.document(note)
    assert (document["title"], document["date"]) == ("The crane", "2023-01-20")
    assert sorted(document["tags"]) == ["given", "harbour", "iron"]
    assert text_of(document) == text
    after = await api.update_note(note, old="harbour, iron", new="iron, rust")
    assert sorted(after["tags"]) == ["given", "iron", "rust"]


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("---\ntitle: The log\n---\nlast\n", "---\ntitle: The log\n---\nfirst\nlast\n"),
        ("+++\ntitle = 'The log'\n+++\nlast", "+++\ntitle = 'The log'\n+++\nfirst\nlast"),
    ],
)
async def test_what_is_put_before_a_text_comes_after_its_front_matter(api, text, after):
    changed = await api.update_note(await added(api, text), prepend="first")
    assert (text_of(changed), changed["title"]) == (after, "The log")


CRANE = "---\ntitle: The crane\ndate: 2023-01-20\ntags: [harbour, iron]\n---\nThe crane was painted, said {}."


@pytest.mark.parametrize("title", [None, "A title that was given"])
async def test_the_front_matter_of_a_whole_new_text_is_read_as_when_it_is_added(api, word, title):
    note = await added(api, f"Plans of {word}.", title=title, tags=["given"])
    keyed = await added(api, f"More plans of {word}.", title=title, tags=["given"], source_path=f"/{word}")
    await added(api, CRANE.format(word), source_path=f"/{word}")
    after = await api.update_note(note, CRANE.format(word))
    assert (after["title"], after["date"], after["tags"]) == ("The crane", "2023-01-20", ["given", "harbour", "iron"])
    by_adding = await api.document(keyed)
    assert all(after[name] == by_adding[name] for name in ("title", "date", "tags", "content_hash"))


async def test_what_is_said_with_a_whole_new_text_counts_more_than_its_front_matter(api, word):
    note = await added(api, f"Plans of {word}.")
    said = {"title": "Said", "tags_add": ["rust"], "tags_remove": ["iron"]}
    after = await api.update_note(note, CRANE.format(word), **said)
    assert (after["title"], after["date"], after["tags"]) == ("Said", "2023-01-20", ["harbour", "rust"])
    edited = await api.update_note(note, CRANE.format(f"{word} again"))
    assert (edited["title"], edited["tags"]) == ("Said", ["harbour", "rust"])
    plain = await api.update_note(note, f"Plain text of {word}.")
    assert (plain["title"], plain["date"], plain["tags"]) == ("Said", None, ["rust"])


@pytest.mark.parametrize(
    "block", ["---\ntitle: [The crane\n---\n", "---\ntitle: The crane\n", "\n---\ntitle: A\n---\n"]
)
async def test_front_matter_that_is_none_is_read_as_when_it_is_added(api, word, block):
    text = f"{block}It was painted, said {word}."
    note = await added(api, f"Plans of {word}.", title="Given")
    keyed = await added(api, f"More plans of {word}.", title="Given", source_path=f"/{word}")
    by_adding = await api.document(await added(api, text, source_path=f"/{word}"))
    assert by_adding["id"] == keyed
    after = await api.update_note(note, text)
    assert (after["date"], after["tags"]) == (by_adding["date"], by_adding["tags"]) == (None, [])
    assert text_of(after) == text


async def test_a_tag_that_someone_gave_stays_when_the_text_no_longer_names_it(api):
    note = await added(api, "Plans.", tags=["boats"])
    await api.update_note(note, "---\ntags: [boats, sails]\n---\nPlans of a boat.")
    assert (await api.update_note(note, "Plans of a boat, redrawn."))["tags"] == ["boats"]
