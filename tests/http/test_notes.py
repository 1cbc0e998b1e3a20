from __future__ import annotations

import asyncio
import io
from base64 import b64encode
from hashlib import sha256
from random import Random
from uuid import uuid4

import pytest

from kb.api.errors import Changed, Invalid, NotANote, NotFound, NotRetryable
from kb.client.client import EngineClient
from tests.conftest import KEY
from tests.http.conftest import added, finished, until_idle


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
    await until_idle(api)
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
    with pytest.raises(Changed, match="has changed"):
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


PICTURE = b64encode(b"\x89PNG\r\n\x1a\n" + Random(5).randbytes(30_000)).decode()
TEXT = f"The gate hangs on brass hinges from Falun.\n\n![gate](data:image/png;base64,{PICTURE})\n\nIt creaks.\n"


@pytest.mark.requirement("N-1")
async def test_a_note_with_a_picture_is_one_passage_without_it_and_its_original_is_the_text_that_was_sent(api, server):
    added = await api.add_note(text=TEXT, tags=["gate"], source="Petra", wait=60)
    found = await api.document(added["document_id"])
    said = "The gate hangs on brass hinges from Falun.\n\n![gate][picture: image/png, 30 kB]\n\nIt creaks.\n"
    assert [chunk["text"] for chunk in found["chunks"]] == [said]
    assert (found["doc_type"], found["tags"], found["source"]) == ("markdown", ["gate"], "Petra")
    assert found["title"] == "The gate hangs on brass hinges from Falun."
    assert await api.file(added["document_id"]) == TEXT.encode()
    [hit] = (await api.search(query="brass hinges from Falun", top=1))["results"]
    assert hit["text"] == said


async def test_a_note_takes_no_picture_by_an_edit_and_says_what_to_do(api):
    added = await api.add_note(text="The shed is green.", wait=60)
    with pytest.raises(Invalid, match="as a file"):
        await api.update_note(added["document_id"], text=TEXT)


@pytest.fixture
def path():
    return f"/{uuid4().hex}/owl.md"


async def sent(api, path, text, **fields):
    job = await finished(api, await api.add_file("owl.md", io.BytesIO(text.encode()), source_path=path, **fields))
    return await api.document(job["document_id"])


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("From the phone, see [[Project Atlas]]![[attachments/a.png]]", "From the phone, see Project Atlas"),
        ("![[attachments/roof.png]]\n\nThe roof leaks", "The roof leaks"),
        ("![the roof](attachments/roof.png) The roof", "The roof"),
        ("![[attachments/roof.png|300]]", "roof.png"),
        ('![](attachments/wet%20roof.png "The roof")', "wet roof.png"),
        ("# Call [[Anna Berg|Anna]] about the [lease](https://example.org/lease)", "Call Anna about the lease"),
        ("- [ ] Pay the **rent**", "Pay the rent"),
        ("> [!tip] Ask first", "Ask first"),
        ("#boat needs `__init__` and 2 * 3 * 4", "#boat needs `__init__` and 2 * 3 * 4"),
    ],
)
async def test_a_note_without_a_title_is_listed_under_words_without_signs(api, text, title):
    note = await added(api, text)
    assert (await api.document(note))["title"] == title
    await api.delete_document(note, purge=True)


async def test_title_tags_and_date_are_shown_as_written(api, path):
    word = path[1:10]
    text = f"---\ntitle: The owl\ntags: [birds/night]\ndate: 2024-03-01\naliases: [Strix{word}]\n---\nIt hunts #mice.\n"
    document = await sent(api, path, text, tags=["given"])
    assert (document["title"], document["date"]) == ("The owl", "2024-03-01")
    assert document["tags"] == ["birds/night", "given", "mice"]
    [listed] = (await api.documents(source_path=path))["documents"]
    assert (listed["date"], listed["tags"]) == (document["date"], document["tags"])
    [found] = (await api.search(query=f"Strix{word}", source_path=path))["results"]
    assert (found["date"], found["tags"], found["title"]) == (document["date"], document["tags"], "The owl")


async def test_tags_that_a_new_version_no_longer_asks_for_go_and_others_stay(api, path):
    await sent(api, path, "---\ntags: [old, both]\n---\nOne.\n", tags=["given"])
    document = await sent(api, path, "---\ntags: [both, new]\n---\nTwo.\n")
    assert document["tags"] == ["both", "given", "new"]
    assert (await sent(api, path, "Three, with nothing said.\n"))["tags"] == ["given"]


async def test_a_job_tells_the_hash_of_what_was_sent(api, path):
    job = await finished(api, await api.add_file("a.txt", io.BytesIO(b"Some words."), source_path=path))
    assert job["content_hash"] == sha256(b"Some words.").hexdigest()
    document = await api.document(job["document_id"])
    assert document["content_hash"] == job["content_hash"]
    note = await finished(api, await api.add_note(text=path))
    assert note["content_hash"] == sha256(path.encode()).hexdigest()


async def test_a_job_that_did_not_fail_or_whose_content_is_gone_cannot_be_tried_again(api):
    done = await api.add_note(text=uuid4().hex)
    await finished(api, done)
    unreadable = await api.add_file("x.bin", io.BytesIO(bytes(range(256)) * 9))
    await finished(api, unreadable)
    with pytest.raises(NotRetryable, match="is done"):
        await api.retry_job(done["job_id"])
    with pytest.raises(NotRetryable, match="Send the content again"):
        await api.retry_job(unreadable["job_id"])
    with pytest.raises(NotFound):
        await api.retry_job(10**9)


async def test_a_tag_that_someone_gave_stays_when_a_later_file_no_longer_names_it(api, path):
    await sent(api, path, "One.\n", tags=["given"])
    await sent(api, path, "---\ntags: [given]\n---\nTwo.\n")
    assert (await sent(api, path, "Three.\n"))["tags"] == ["given"]


@pytest.mark.parametrize("date", ["20240305", "2024-3-5", "2024/03/05"])
async def test_a_document_is_found_by_its_day_however_that_is_written(api, path, date):
    document = await sent(api, path, f"---\ndate: {date}\n---\nLow tide.\n")
    for bounds, found in (
        ({"after": "2024-03-05T00:00:00Z", "before": "2024-03-06T00:00:00Z"}, [document["id"]]),
        ({"after": "2024-03-06T00:00:00Z"}, []),
        ({"before": "2024-03-05T00:00:00Z"}, []),
    ):
        listed = await api.documents(source_path=path, **bounds)
        assert [each["id"] for each in listed["documents"]] == found
    assert (document["date"], document["day"]) == (date, "2024-03-05")


async def test_the_day_of_a_document_without_a_date_of_its_own_is_that_of_its_last_change(api, path, word):
    document = await sent(api, path, f"---\ndate: 99/99\n---\n{word} tide.\n")
    assert document["day"] == document["created_at"][:10]
    [result] = (await api.search(query=word, fts_only=True))["results"]
    assert result["day"] == document["day"]


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
        ({"old": "Entry 7", "new": ""}, "^old: the note contains this text 11 times"),
        ({"old": "the lamp of 78 was lighted", "new": ""}, "^old: the note does not contain this text.$"),
        ({"old": "Entry 1:"}, "old, new: send both"),
        ({"text": "x", "append": "y"}, "text: it is the whole new text"),
        ({}, "nothing to change"),
    ],
)
async def test_an_edit_that_does_not_fit_is_refused_and_says_how_it_would(api, change, said):
    note = await added(api, f"{LOG}\n\n")
    with pytest.raises(Invalid, match=said) as refused:
        await api.update_note(note, **change)
    if "does not contain" in said:
        assert refused.value.extra["nearest_lines"][0] == "Entry 78: the lamp of 78 was lit."
    assert text_of(await api.document(note)) == f"{LOG}\n\n"


@pytest.mark.parametrize(
    ("text", "old"), [("aaa", "aa"), ("- \n- \n- \n", "- \n- \n"), ("so and so and so", "so and so")]
)
async def test_a_passage_that_stands_there_twice_by_overlapping_itself_is_refused(api, text, old):
    note = await added(api, text)
    with pytest.raises(Invalid, match=r"^old: the note contains this text 2 times"):
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


async def test_tags_in_the_text_count_only_if_the_call_says_so(api, word):
    note = await added(api, f"The #{word} is #red. `#code`", tags=["given"])
    assert (await api.document(note))["tags"] == ["given"]
    assert (await api.update_note(note, append="It is #wet."))["tags"] == ["given"]
    after = await api.update_note(note, append="It is #cold, and not #1984.", inline_tags=True)
    assert after["tags"] == ["cold", "given"], "only what this change wrote"
    moved = await api.update_note(note, f"The #{word} is #cold.", tags_remove=["cold"], inline_tags=True)
    assert moved["tags"] == ["given"]
    other = await added(api, f"Another #{word}, #blue.", tags=["given"], inline_tags=True)
    assert (await api.document(other))["tags"] == sorted(["blue", "given", word])
    silent = await added(api, f"---\ninline_tags: false\n---\nA third #{word}.", inline_tags=True)
    assert (await api.document(silent))["tags"] == []


async def test_a_wish_for_tags_alone_changes_nothing(api, word):
    note = await added(api, f"The {word} is #red.")
    with pytest.raises(Invalid, match="nothing to change"):
        await api.update_note(note, inline_tags=True)


async def test_a_call_with_a_key_can_be_repeated_and_another_call_cannot_have_its_key(http, api, word):
    note = await added(api, f"{word} log")
    key = {"Idempotency-Key": uuid4().hex}
    calls = ({"append": "one line"}, {"append": "one line", "title": None})
    answers = [await http.patch(f"notes/{note}", json=call, headers=key) for call in calls]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json()["content_hash"] == answers[1].json()["content_hash"]
    assert text_of(answers[1].json()) == f"{word} log\none line"
    other = await http.patch(f"notes/{note}", json={"append": "another line"}, headers=key)
    assert (other.status_code, other.json()["type"].rpartition(":")[2]) == (409, "key-reused")


async def test_an_edit_to_be_made_once_is_refused_the_second_time(http, api, word):
    note = await added(api, f"{word} log")
    edit = {"append": "one line", "once": True}
    first, second = [await http.patch(f"notes/{note}", json=edit) for _ in range(2)]
    assert (first.status_code, second.status_code) == (200, 409)
    assert second.json()["type"].rpartition(":")[2] == "already-made"
    assert text_of(await api.document(note)) == f"{word} log\none line"


async def test_a_long_change_says_that_its_vectors_follow(api, word):
    note = await added(api, f"{word} log")
    changed = await api.update_note(note, append="Ledgers were kept in the counting house by patient clerks.\n" * 200)
    assert not changed["embedded"]
    assert [result["document_id"] for result in (await api.search(query=word, fts_only=True))["results"]] == [note]
    await until_idle(api)
    assert (await api.update_note(note, tags_add=["read"]))["embedded"]
