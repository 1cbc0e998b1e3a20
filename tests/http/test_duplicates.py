"""Documents with the same content or with nearly the same text, over HTTP."""

from __future__ import annotations

import io
from contextlib import suppress
from email.message import EmailMessage

import pytest

from kb.api.errors import Invalid, NotFound
from kb.client.client import EngineClient
from kb.search.near_duplicate_documents import SHARED
from tests.http.conftest import added, finished, until_idle

STORY = (
    "The keeper counts the ships each evening and lights the lamp at six. In winter the sea is rough, and the boat from the"
    " mainland comes only twice a month. He keeps a garden behind the wall, where beans and kale grow in the shelter. Every"
    " spring he paints the door blue, because his mother liked the colour. When the fog comes he rings the bell by hand."
)
EDITED = STORY.replace("paints the door blue", "paints the gate green").replace(
    " In winter the sea is rough, and", " Now"
)
OTHER = (
    "The bakery opens at five, when the first bread leaves the oven. Flour arrives on Mondays from the mill near the river."
    " Anna kneads the dough by hand and lets it rest under a cloth. On Saturdays the queue reaches the fountain, and by nine"
    " the rolls with poppy seeds are gone. The recipe for the rye bread is older than the house in which it is baked."
)


@pytest.fixture(scope="module")
def shared(start_server, tmp_path_factory):
    with start_server(tmp_path_factory.mktemp("duplicates")) as server:
        yield server


@pytest.fixture
async def own(shared):
    """An engine that holds only the documents of this test."""
    async with EngineClient(shared.url) as client:
        yield client
        kept = [*(await client.documents(limit=500))["documents"], *(await client.bin(limit=500))["documents"]]
        for document in kept:
            with suppress(NotFound):  # an attachment goes with its mail
                await client.delete_document(document["id"], purge=True)


async def file(api, path, text, *, tags=(), content=None):
    """The id of a file."""
    sent = io.BytesIO(text.encode() if content is None else content)
    job = await api.add_file(path.rpartition("/")[2], sent, source_path=path, tags=tags)
    return (await finished(api, job))["document_id"]


async def groups(api, kind):
    return [group async for page in api.iter_duplicates(kind) for group in page["groups"]]


def ids(found):
    return [[document["id"] for document in group["documents"]] for group in found]


async def test_documents_with_the_same_content_are_a_group_the_newest_first(own):
    one = [await file(own, f"/{name}/story.txt", STORY) for name in "abc"]
    two = [await file(own, f"/{name}/other.txt", OTHER) for name in "ab"]
    await file(own, "/a/edited.txt", EDITED)
    found = await groups(own, "same")
    assert ids(found) == [two, one]
    assert [(group["total"], group["shared"]) for group in found] == [(2, None), (3, None)]


async def test_documents_with_nearly_the_same_text_are_a_group_with_the_share_in_common(own):
    older = await file(own, "/a/story.txt", STORY)
    newer = await added(own, EDITED)
    await file(own, "/a/other.txt", OTHER)
    await file(own, "/b/other.txt", OTHER)
    [group] = await groups(own, "near")
    assert ids([group]) == [[older, newer]]
    assert 0.5 < group["shared"] < 1
    difference = await own.compare(older, newer)
    assert "".join(each["text"] for each in difference["changes"] if each["kind"] != "insert") == STORY
    assert "".join(each["text"] for each in difference["changes"] if each["kind"] != "delete").strip() == EDITED
    same = await own.compare(older, older)
    assert [each["kind"] for each in same["changes"]] == ["equal"]


async def test_every_two_documents_of_a_group_are_alike_and_the_most_alike_group_is_first(own):
    sentences = [
        f"On day {number} the {word} was seen from the tower, and {word} number {number} was noted in the book."
        for number, word in enumerate(["ship", "boat", "gull", "whale", "raft", "buoy", "seal", "storm"])
    ]
    chain = [await file(own, f"/{start}/log.txt", " ".join(sentences[start : start + 5])) for start in (0, 1, 2, 3)]
    copy = [await file(own, f"/{end}/story.txt", STORY + end) for end in ("", " The end.")]
    found = await groups(own, "near")
    assert ids(found)[0] == copy
    assert {each for group in ids(found)[1:] for each in group} == set(chain)
    assert all([chain[0], chain[3]] != [group[0], group[-1]] for group in ids(found))
    shares = [group["shared"] for group in found]
    assert shares == sorted(shares, reverse=True)
    assert min(shares) >= SHARED


async def test_a_long_document_that_begins_differently_is_found_by_its_other_passages(own):
    parts = [
        f"Chapter {number}. {STORY if number % 2 else OTHER} It was day {number} of the year." for number in range(12)
    ]
    older = await file(own, "/a/book.txt", "\n\n".join(parts))
    newer = await file(own, "/b/book.txt", "\n\n".join(["A foreword that is new. " * 8, *parts[1:], "The end."]))
    assert ids(await groups(own, "near")) == [[older, newer]]


async def test_a_note_and_the_note_that_it_replaces_are_no_duplicates(own):
    older = await added(own, STORY)
    await added(own, EDITED, replaces=older)
    assert await groups(own, "near") == []


async def test_the_same_attachment_of_several_mails_is_no_duplicate(own):
    for name in "ab":
        mail = EmailMessage()
        mail["Subject"], mail["From"], mail["Date"] = (
            f"Mail {name}",
            "ada@example.org",
            "Mon, 04 May 2026 10:00:00 +0000",
        )
        mail.set_content({"a": OTHER, "b": "This came with the post today. " * 9}[name])
        mail.add_attachment(STORY, filename="story.txt")
        await file(own, f"/{name}/mail.eml", "", content=mail.as_bytes())
    await until_idle(own)
    assert (await own.documents(total="true"))["total"] == 4
    assert await groups(own, "same") == await groups(own, "near") == []


async def test_what_is_in_the_bin_is_no_duplicate(own):
    first, second = await file(own, "/a/story.txt", STORY), await file(own, "/b/story.txt", STORY)
    await own.delete_document(second)
    assert await groups(own, "same") == []
    await own.restore(second)
    assert ids(await groups(own, "same")) == [[first, second]]


async def test_nothing_has_no_duplicates(own):
    for kind in ("same", "near"):
        page = await own.duplicates(kind=kind)
        assert page == {"groups": [], "compared": 0, "next_cursor": None}


async def test_documents_without_words_are_no_near_duplicates(own):
    for text in ("1", "Yes.", "No.", "Maybe so.", "Maybe not.", "- - -"):
        await added(own, text)
    assert await groups(own, "near") == []


async def test_pages_follow_each_other_without_a_gap_while_documents_are_deleted(own):
    pairs = [[await file(own, f"/{name}/{number}.txt", f"{OTHER} {number}") for name in "ab"] for number in range(5)]
    first = await own.duplicates(limit=2)
    assert ids(first["groups"]) == [pairs[4], pairs[3]]
    await own.delete_document(pairs[3][1])
    second = await own.duplicates(limit=2, cursor=first["next_cursor"])
    assert ids(second["groups"]) == [pairs[2], pairs[1]]
    third = await own.duplicates(limit=2, cursor=second["next_cursor"])
    assert (ids(third["groups"]), third["next_cursor"]) == ([pairs[0]], None)


@pytest.mark.rare
async def test_a_large_group_is_shown_in_part_with_its_whole_number(own):
    for number in range(103):
        job = await own.add_file("empty.txt", io.BytesIO(b"the same"), source_path=f"/{number}/same.txt")
    await finished(own, job)
    [group] = await groups(own, "same")
    assert (group["total"], len(group["documents"])) == (103, 100)


async def test_a_limited_key_sees_only_duplicates_among_its_documents(server, api, word):
    story, edited = f"{word} {STORY}", f"{word} {EDITED}"
    mine = [await file(api, f"/{word}/mine/{name}.txt", story, tags=[word]) for name in "ab"]
    near = await file(api, f"/{word}/mine/c.txt", edited, tags=[word])
    other = await file(api, f"/{word}/other/d.txt", story)
    made = await api.make_key(word[:30], right="read", tags=[word])
    async with EngineClient(server.url, made["key"]) as limited:
        [group] = await groups(limited, "same")
        assert (ids([group]), group["total"]) == ([mine], 2)
        assert ids(await groups(limited, "near")) == [[*mine, near]]
        with pytest.raises(NotFound):
            await limited.compare(mine[0], other)
    await api.revoke_key(word[:30])
    assert any(set(mine) < set(found) for found in ids(await groups(api, "same"))), "the other one is a copy, too"


@pytest.mark.parametrize(
    "query", ["kind=other", "limit=0", "limit=101", "cursor=x", "cursor=1.zz", "cursor=" + "9" * 30, "what=1"]
)
async def test_a_wrong_query_is_refused(http, query):
    assert (await http.get(f"duplicates?{query}")).status_code == 422


@pytest.mark.parametrize("cursor", ["999999999999999999.", "0.", "5.ff", "5.31"])
async def test_a_cursor_of_another_list_does_no_harm(http, cursor):
    for kind in ("same", "near"):
        assert (await http.get(f"duplicates?kind={kind}&cursor={cursor}")).status_code in (200, 422)


async def test_only_documents_that_exist_are_compared(api):
    with pytest.raises(NotFound):
        await api.compare(1, 2**62)


@pytest.fixture
async def pair(own, word):
    """Two documents that are alike. Their texts are this test's own, because a dismissal holds for the texts."""
    return [await file(own, "/a/story.txt", f"{word} {STORY}"), await added(own, f"{word} {EDITED}")]


async def test_a_dismissed_group_is_left_out_until_one_of_its_documents_changes(own, pair):
    other = [await file(own, "/a/other.txt", OTHER), await file(own, "/b/other.txt", OTHER + " It is good.")]
    await own.dismiss_duplicates(pair)
    assert ids(await groups(own, "near")) == [other]
    [left_out] = (await own.duplicates(kind="near", dismissed=True))["groups"]
    assert ids([left_out]) == [pair]
    await own.update_note(pair[1], EDITED + " The bell is old.")
    await until_idle(own)
    assert {*map(tuple, ids(await groups(own, "near")))} == {tuple(pair), tuple(other)}


async def test_a_dismissed_group_comes_back_with_a_document_that_joins_it(own, pair):
    await own.dismiss_duplicates(pair)
    third = await file(own, "/c/story.txt", STORY.replace("twice a month", "in summer"))
    assert ids(await groups(own, "near")) == [[*pair, third]]


async def test_a_dismissed_group_is_shown_again_on_request_and_deletes_nothing(own, pair):
    assert await own.dismiss_duplicates(pair) == {"document_ids": pair, "dismissed": True}
    assert await own.dismiss_duplicates(pair) == {"document_ids": pair, "dismissed": True}, "twice is as good as once"
    assert await groups(own, "near") == []
    await own.dismiss_duplicates(pair, dismissed=False)
    assert ids(await groups(own, "near")) == [pair]
    assert (await own.duplicates(kind="near", dismissed=True))["groups"] == []
    assert (await own.documents(total=True))["total"] == 2


async def test_a_deleted_and_restored_document_stays_dismissed(own, pair):
    await own.dismiss_duplicates(pair)
    await own.delete_document(pair[1])
    await own.restore(pair[1])
    assert await groups(own, "near") == []


@pytest.mark.parametrize("wrong", [[], [1], ["x", "y"], [0, 1], [*range(1, 52)]])
async def test_a_group_to_dismiss_has_two_to_fifty_documents(own, wrong):
    with pytest.raises(Invalid, match="document_ids"):
        await own.dismiss_duplicates(wrong)


async def test_a_group_with_a_document_that_does_not_exist_is_not_dismissed(own, pair):
    with pytest.raises(NotFound):
        await own.dismiss_duplicates([*pair, 2**40])
    assert ids(await groups(own, "near")) == [pair]
