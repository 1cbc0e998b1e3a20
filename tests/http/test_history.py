"""Versions, the bin and points in time over HTTP."""

from __future__ import annotations

import io
import time
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from functools import partial

import httpx2
import pytest

from kb.api.errors import (
    Changed,
    HistoryGone,
    Invalid,
    NotFound,
    NotInBin,
    Occupied,
)
from kb.client.client import EngineClient
from kb_cli.main import run
from tests.conftest import KEY, MCP_KEY
from tests.http.conftest import added, finished, moment, until_idle
from tests.support.eventually import eventually
from tests.support.rare_cases import mostly_rare


async def ids(api, word, **options):
    """The documents that a search finds by a word, those along with them that say the same."""
    found = await api.search(query=word, fts_only=True, **options)
    return {each["document_id"] for result in found["results"] for each in (result, *result["copies"])}


async def test_each_change_leaves_a_version_with_who_made_it_and_why(api, http, word):
    id_ = await added(api, f"one {word}", tags=["a"])
    hash_ = (await api.document(id_))["content_hash"]
    await http.patch(
        f"/notes/{id_}", json={"text": f"two {word}"}, params={"why": "better"}, headers={"User-Agent": "me/1"}
    )
    await api.change_tags(id_, add=["b"], remove=["a"])
    answer = await api.history(id_)
    newest, middle, first = answer["versions"]
    assert [version["number"] for version in answer["versions"]] == [3, 2, 1]
    assert (first["content_hash"], first["tags"], first["title"]) == (hash_, ["a"], f"one {word}")
    assert (middle["client"], middle["why"], middle["tags"]) == ("me/1", "better", ["a"])
    assert (newest["tags"], newest["until"]) == (["b"], None)
    assert (first["until"], middle["until"]) == (middle["at"], newest["at"])
    assert first["by"] == newest["by"]
    assert first["by"] not in (None, KEY)
    assert (await api.version(id_, 1))["text"] == f"one {word}"
    assert (await api.version(id_, 2))["text"] == f"two {word}"


async def test_a_document_is_read_as_it_was_in_each_version(api, http, word):
    id_ = await added(api, f"{word} one", tags=["a"])
    first = await api.document(id_)
    await api.update_note(id_, f"{word} three")
    await api.change_tags(id_, add=["b"], remove=["a"])
    newest = await api.document(id_)
    assert await api.document(id_, version=3) == newest
    former = await api.document(id_, version=1)
    same = ("title", "tags", "content_hash", "chunks", "chunk_count", "by", "client")
    assert [former[name] for name in same] == [first[name] for name in same]
    middle = await api.document(id_, version=2)
    assert ("".join(chunk["text"] for chunk in middle["chunks"]), middle["tags"]) == (f"{word} three", ["a"])
    assert (await api.document(id_, version=1, chunk_id=first["chunks"][0]["id"]))["chunks"] == first["chunks"]
    with pytest.raises(NotFound, match="has no version 4"):
        await api.document(id_, version=4)
    await api.delete_document(id_)
    assert (await api.document(id_, version=1))["chunks"] == first["chunks"]
    with pytest.raises(NotFound, match="does not exist"):
        await api.document(10**9, version=1)
    for wrong in (0, "last"):
        assert (await http.get(f"/documents/{id_}", params={"version": wrong})).status_code == 422, wrong


async def test_what_changes_nothing_leaves_no_version(api, word):
    id_ = await added(api, word, tags=["a"])
    await api.change_tags(id_, add=["a"], remove=["b"])
    await added(api, word, tags=["a"])
    await api.revert(id_, 1)
    assert len((await api.history(id_))["versions"]) == 1


@pytest.mark.parametrize("path", ["?version={}", "/history/{}", "/history/{}/diff?to=1"])
async def test_a_version_with_the_largest_number_that_can_be_asked_for_does_not_exist(api, http, word, path):
    id_ = await added(api, f"one {word}")
    assert (await http.get(f"/documents/{id_}{path.format(2**63 - 1)}")).status_code == 404


async def test_versions_come_in_pages(api, word):
    id_ = await added(api, word)
    for number in range(4):
        await api.update_note(id_, f"{word} {number}")
    pages, cursor = [], None
    while True:
        page = await api.history(id_, limit=2, cursor=cursor)
        pages.append([version["number"] for version in page["versions"]])
        if (cursor := page["next_cursor"]) is None:
            break
    assert pages == [[5, 4], [3, 2], [1]]


async def test_two_versions_are_compared_word_by_word(api, word):
    id_ = await added(api, f"The {word} is lit at six.")
    await api.update_note(id_, f"The {word} is lit at seven in winter.")
    changes = (await api.diff(id_, 1))["changes"]
    assert [(each["kind"], each["text"]) for each in changes] == [
        ("equal", f"The {word} is lit at "),
        ("delete", "six"),
        ("insert", "seven in winter"),
        ("equal", "."),
    ]
    assert [each["kind"] for each in (await api.diff(id_, 2, to=2))["changes"]] == ["equal"]


@pytest.mark.requirement("N-6")
async def test_a_revert_is_found_at_once_and_heeds_if_match(api, word):
    id_ = await added(api, f"{word}old", tags=["a"])
    before = await api.document(id_)
    await api.update_note(id_, f"{word}new")
    await api.change_tags(id_, add=["b"])
    with pytest.raises(Changed):
        await api.revert(id_, 1, if_match=before["content_hash"])
    now = (await api.document(id_))["content_hash"]
    reverted = await api.revert(id_, 1, if_match=now)
    assert (reverted["content_hash"], reverted["tags"]) == (before["content_hash"], ["a"])
    assert await ids(api, f"{word}old") == {id_}
    assert await ids(api, f"{word}new") == set()
    await until_idle(api)
    [result] = (await api.search(query=f"{word}old", tags=["a"], vec_only=True, top=1))["results"]
    assert result["document_id"] == id_
    assert (await api.history(id_))["versions"][0]["why"] == "reverted to version 1"


@pytest.mark.requirement("E-6")
async def test_what_is_deleted_is_nowhere_but_in_the_bin_and_comes_back_as_it_was(api, http, word):
    content = f"# {word}\n\nA file.\n".encode()
    job = await finished(
        api, await api.add_file(f"{word}.md", io.BytesIO(content), tags=[word], source_path=f"/{word}")
    )
    before = await api.document(job["document_id"])
    count = sum((await api.status())["documents"].values())
    await api.delete_document(before["id"], why="a mistake")
    assert await ids(api, word) == set()
    assert (await api.documents(source_path=f"/{word}"))["documents"] == []
    assert word not in [row["tag"] for row in (await api.tags())["tags"]]
    assert sum((await api.status())["documents"].values()) == count - 1
    with pytest.raises(NotFound, match="in the bin since"):
        await api.document(before["id"])
    binned = next(each for each in (await api.bin())["documents"] if each["id"] == before["id"])
    assert (binned["title"], binned["tags"], binned["why"]) == (before["title"], [word], "a mistake")
    kept = datetime.fromisoformat(binned["expires_at"]) - datetime.fromisoformat(binned["deleted_at"])
    assert kept == timedelta(days=30)
    assert (await api.history(before["id"]))["deleted_at"] == binned["deleted_at"]
    await api.restore(before["id"])
    after = await api.document(before["id"])
    same = ("id", "title", "source_path", "doc_type", "content_hash", "tags", "created_at")
    assert [after[name] for name in same] == [before[name] for name in same]
    assert [chunk["text"] for chunk in after["chunks"]] == [chunk["text"] for chunk in before["chunks"]]
    assert await api.file(before["id"]) == content
    assert await ids(api, word) == {before["id"]}
    with pytest.raises(NotInBin):
        await api.restore(before["id"])


async def test_the_same_content_again_is_a_new_document_and_the_old_one_can_be_restored_beside_it(api, word):
    old = await added(api, word)
    await api.delete_document(old)
    new = await added(api, word)
    assert new != old
    await api.restore(old)
    assert await ids(api, word) == {old, new}


async def test_one_whose_path_was_taken_is_not_restored(api, word):
    old = await added(api, f"{word} one", source_path=f"/{word}")
    await api.delete_document(old)
    new = await added(api, f"{word} two", source_path=f"/{word}")
    with pytest.raises(Occupied, match=f"Document {new} now has the path") as refused:
        await api.restore(old)
    assert refused.value.extra == {"document_id": new}
    await api.delete_document(new)
    await api.restore(old)
    assert await ids(api, word) == {old}


@pytest.mark.parametrize("is_binned", [False, True])
async def test_a_purge_leaves_no_version_and_no_way_back(api, word, is_binned):
    id_ = await added(api, f"{word} one")
    await api.update_note(id_, f"{word} two")
    if is_binned:
        await api.delete_document(id_)
    await api.delete_document(id_, purge=True)
    for call in (
        api.document(id_),
        api.history(id_),
        api.version(id_, 1),
        api.restore(id_),
        api.document(id_, version=1),
    ):
        with pytest.raises(NotFound):
            await call
    assert id_ not in [each["id"] for each in (await api.bin())["documents"]]
    assert await ids(api, word) == set()


async def test_a_moment_that_cannot_be_known_is_refused(http):
    future = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    for at in (future, "yesterday", "2026-01-31", "2026-01-31T12:00:00", "12"):
        answer = await http.post("/undo", json={"since": at, "dry_run": True})
        assert answer.status_code == 422, at
        assert answer.headers["content-type"] == "application/problem+json"


async def test_searches_and_lists_are_of_today_alone(api, http, word):
    id_ = await added(api, word)
    at = (await api.document(id_))["created_at"]
    for answer in (
        await http.get("/documents", params={"as_of": at}),
        await http.get(f"/documents/{id_}", params={"as_of": at}),
        await http.post("/search", json={"query": word, "as_of": at}),
    ):
        assert answer.status_code == 422
        assert "as_of" in answer.json()["detail"]


async def test_what_is_not_there_is_said(api, word):
    id_ = await added(api, word)
    for call in (
        api.history(10**9),
        api.version(id_, 7),
        api.diff(id_, 7),
        api.diff(id_, 1, to=7),
        api.revert(id_, 7),
        api.revert(10**9, 1),
        api.restore(10**9),
        api.delete_document(10**9, purge=True),
    ):
        with pytest.raises(NotFound):
            await call
    with pytest.raises(Invalid):
        await api.revert(id_, 0)
    with pytest.raises(Invalid):
        await api.revert(id_, 10**25)


async def retagged(http, id_, **change):
    """The number of the operation that changed the tags of a note."""
    (await http.patch(f"/notes/{id_}", json=change)).raise_for_status()
    return (await http.get("/operations", params={"limit": 1})).json()["operations"][0]["number"]


async def undone(http, number):
    """The only step of the undo of an operation."""
    [step] = (await http.post("/undo", json={"operation": number})).raise_for_status().json()["steps"]
    return step


async def test_an_operation_that_was_undone_blocks_no_undo_of_earlier_ones(api, http, word):
    id_ = await added(api, word)
    first = await retagged(http, id_, tags_add=["novel"])
    for undo_of in ("itself", "its undo", "a deletion"):
        later = await retagged(http, id_, tags_add=["tmp"])
        assert (await undone(http, later))["skipped"] is None
        if undo_of == "its undo":  # done, undone, done and undone again
            newest = (await http.get("/operations", params={"limit": 1})).json()["operations"][0]["number"]
            assert (await undone(http, newest))["skipped"] is None
            await retagged(http, id_, tags_remove=["tmp"])
        if undo_of == "a deletion":
            await api.delete_document(id_)
            await api.restore(id_)
        shown = (await http.post("/undo", json={"operation": first, "dry_run": True})).json()["steps"]
        assert [(step["action"], step["skipped"]) for step in shown] == [("retag", None)], undo_of
    assert (await undone(http, first))["skipped"] is None
    assert (await api.document(id_))["tags"] == []


async def test_a_later_change_that_remains_blocks_the_undo_whatever_was_undone_after_it(api, http, word):
    id_ = await added(api, word)
    first = await retagged(http, id_, tags_add=["novel"])
    remains = await retagged(http, id_, tags_add=["kept"])
    await undone(http, await retagged(http, id_, tags_add=["tmp"]))
    assert f"Operation {remains} changed it afterwards." in (await undone(http, first))["skipped"]
    await api.delete_document(id_)
    assert "changed it afterwards" in (await undone(http, first))["skipped"]
    assert (await http.get("/bin")).json()["documents"][0]["tags"] == ["kept", "novel"]


async def test_an_operation_says_which_tags_it_changed_also_after_its_undo(api, http, word):
    id_ = await added(api, word)
    number = await retagged(http, id_, tags_add=[word, "novel"])
    await undone(http, number)
    newest, retag = (await http.get("/operations", params={"limit": 2})).json()["operations"]
    assert (retag["number"], retag["tags_added"], retag["tags_removed"]) == (number, sorted([word, "novel"]), [])
    assert (newest["tags_added"], newest["tags_removed"]) == ([], sorted([word, "novel"]))
    (await http.patch(f"/notes/{id_}", json={"text": f"{word} anew", "tags_add": ["x"]})).raise_for_status()
    changed = (await http.get("/operations", params={"limit": 1})).json()["operations"][0]
    assert (changed["tags_added"], changed["tags_removed"]) == ([], []), "it changed more than tags"


async def test_an_undo_is_shown_before_it_is_done(api, word):
    id_ = await added(api, f"{word} one")
    since = await moment()
    await api.update_note(id_, f"{word} two")
    shown = await api.undo(since, dry_run=True)
    assert {"document_id": id_, "title": f"{word} two", "action": "revert", "version": 1, "skipped": None} in shown[
        "steps"
    ]
    assert "two" in (await api.document(id_))["chunks"][0]["text"]


@pytest.mark.rare
async def test_with_nothing_kept_a_delete_is_for_good_and_history_begins_late(start_server, tmp_path, word):
    with start_server(tmp_path, KB_BIN_DAYS="0", KB_HISTORY_DAYS="0") as server:
        async with EngineClient(server.url) as api:
            id_, other = await added(api, f"{word} one"), await added(api, "other")
            then = await moment()
            await api.update_note(id_, f"{word} two")
            assert [version["number"] for version in (await api.history(id_))["versions"]] == [2]
            with pytest.raises(HistoryGone, match="history goes back only to"):
                await api.undo(then)
            late = await moment()
            await added(api, "added late")
            [step] = (await api.undo(late))["steps"]
            assert "The bin is off" in step["skipped"]
            await api.delete_document(other)
            with pytest.raises(NotFound):
                await api.restore(other)
            status = (await api.status())["history"]
            assert (status["versions"], status["size"], status["bin"]) == (0, 0, 0)


async def test_a_move_is_a_version_of_its_own_and_the_former_path_stays_known(api, word):
    document = await added(api, f"A log of {word}.", source_path=f"/{word}/a.md")
    for _ in range(2):
        await api.move_document(document, f"/{word}/b.md")
    newest, oldest = (await api.history(document))["versions"]
    assert newest["number"] == oldest["number"] + 1
    assert (await api.document(document, version=oldest["number"]))["source_path"] == f"/{word}/a.md"
    assert (await api.document(document))["source_path"] == f"/{word}/b.md"


async def sent_file(api, path, content, **options):
    name = path.rpartition("/")[2]
    job = await api.add_file(name, io.BytesIO(content), source_path=path, wait=60, **options)
    return job["document_id"]


async def test_a_title_from_the_name_of_a_file_follows_the_file_to_its_new_name_and_back(api, word):
    document = await sent_file(api, f"/{word}/barometer.txt", b"The needle points to rain.")
    assert (await api.document(document))["title"] == "barometer"
    before = await api.document(document)
    await api.move_document(document, f"/{word}/weather station.txt")
    shown = await api.document(document)
    assert (shown["title"], shown["updated_at"]) == ("weather station", before["updated_at"])
    [found] = (await api.search(query="station", source_prefix=f"/{word}/", fts_only=True))["results"]
    assert found["document_id"] == document
    assert (await api.search(query="barometer", source_prefix=f"/{word}/", fts_only=True))["results"] == []
    await api.revert(document, 1)
    shown = await api.document(document)
    assert (shown["title"], shown["source_path"]) == ("barometer", f"/{word}/barometer.txt")


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (b"# barometer\n\nThe needle points to rain.\n", {}),
        (b"---\ntitle: barometer\n---\nThe needle points to rain.\n", {}),
        (b"The needle points to rain.\n", {"title": "barometer"}),
        (b"# Instruments\n\nThe needle points to rain.\n", {}),
    ],
)
async def test_a_title_of_its_own_stays_when_a_file_is_renamed(api, word, content, options):
    document = await sent_file(api, f"/{word}/barometer.md", content, **options)
    title = (await api.document(document))["title"]
    await api.move_document(document, f"/{word}/weather.md")
    assert (await api.document(document))["title"] == title != "weather"


@pytest.mark.parametrize("before", ["a.md", None])
async def test_an_undo_takes_a_move_back_and_finds_nothing_that_is_left(api, word, before):
    former = before and f"/{word}/{before}"
    document = await added(api, f"A log of {word}.", **({"source_path": former} if former else {}))
    since = await moment()
    await api.move_document(document, f"/{word}/b.md")
    assert [each["skipped"] for each in await steps_of(api, document, since)] == [None]
    assert (await api.document(document))["source_path"] == former
    assert await steps_of(api, document, since) == []
    assert len((await api.history(document))["versions"]) == 3


async def test_a_move_is_not_taken_back_while_another_document_has_the_path(api, word):
    document = await added(api, f"A log of {word}.", source_path=f"/{word}/a.md")
    since = await moment()
    await api.move_document(document, f"/{word}/b.md")
    other = await added(api, f"Another log of {word}.", source_path=f"/{word}/a.md")
    with pytest.raises(Occupied, match=f"Document {other} now has the path /{word}/a.md"):
        await api.revert(document, 1)
    assert len((await api.history(document))["versions"]) == 2
    assert (await api.document(document))["source_path"] == f"/{word}/b.md"
    await steps_of(api, document, since)
    assert (await api.document(document))["source_path"] == f"/{word}/a.md", "what was added goes first"


async def steps_of(api, document, since):
    """What an undo did with a document."""
    return [each for each in (await api.undo(since))["steps"] if each["document_id"] == document]


AGENT = "the-agents-own-key"
PATH = "/plans/harbour.md"


def mail():
    message = EmailMessage()
    message["From"], message["Subject"] = "a@example.org", "Invoices"
    message.set_content("The invoices of the harbour.")
    message.add_attachment("Ten tons of coal.", filename="coal.txt")
    return message.as_bytes()


class Base:
    """A knowledge base with a few documents, as its user or an agent changes it."""

    def __init__(self, url):
        self.url, self.client = f"{url}/api/v1", None
        self.use(KEY)
        note = self.note
        self.lamp, self.ship = (
            note("The lamp is lit at six.", tags="lamp"),
            note("The ship leaves at dawn.", tags="sea"),
        )
        self.plan = note("Plan of the harbour: two quays.", tags="sea,plan", source_path=PATH)
        self.gone = note("A draft that was thrown away.", tags="draft")
        self.file = self.upload("coal.md", b"# Coal\n\nCoal comes by train.\n", source_path="/coal.md")
        self.mail = self.upload("invoices.eml", mail(), source_path="/invoices.eml")
        self.notes = [self.lamp, self.ship, self.plan]
        self.change("PATCH", f"notes/{self.ship}", json={"text": "The ship leaves at noon."})
        self.change("DELETE", f"documents/{self.gone}")

    def use(self, key):
        if self.client:
            self.client.close()
        self.key = key
        self.client = httpx2.Client(base_url=self.url, headers={"Authorization": f"Bearer {key}"})

    def change(self, method, path, **options):
        answer = self.client.request(method, path, **options)
        assert answer.is_success, answer.text
        return answer.json()

    def get(self, path, **params):
        return self.change("GET", path, params=params)

    def note(self, text, *, tags="", source_path=None):
        body = {"text": text, "tags": [tag for tag in tags.split(",") if tag], "source_path": source_path}
        return self.change("POST", "jobs?wait=60", json=body)["document_id"]

    def upload(self, filename, content, **fields):
        files = {"file": (filename, io.BytesIO(content))}
        job = self.change("POST", "jobs?wait=60", data=fields, files=files)
        eventually("attachments are in", lambda: not self.get("status")["queue"]["queued"])
        return job["document_id"]

    def update(self, id_, text):
        return self.change("PATCH", f"notes/{id_}", json={"text": text})

    def retag(self, id_, **change):
        return self.change("PATCH", f"documents/{id_}/tags", json=change)

    def delete(self, id_):
        return self.change("DELETE", f"documents/{id_}")

    @property
    def ids(self):
        return [document["id"] for document in self.get("documents")["documents"]]

    def name(self):
        """What history calls the key that is used."""
        id_ = self.note(f"Whose {self.key} is")
        name = self.get(f"documents/{id_}/history")["versions"][0]["by"]
        self.change("DELETE", f"documents/{id_}", params={"purge": True})
        return name

    def state(self):
        """All that can be seen of the documents, but when they were changed, once they have their vectors."""
        queue = partial(self.get, "status")
        eventually("no job waits", queue, lambda now: not now["queue"]["queued"] + now["queue"]["running"])
        documents = [self.get(f"documents/{id_}") for id_ in self.ids]
        seen = {
            document["id"]: [document[name] for name in ("title", "tags", "source_path", "doc_type", "content_hash")]
            + ["".join(chunk["text"] for chunk in document["chunks"])]
            for document in documents
        }
        found = [
            {result["document_id"] for result in self.change("POST", "search", json={"query": query})["results"]}
            for query in ("lamp at six", "coal")
        ]
        files = [self.client.get(f"documents/{id_}/file").content for id_ in self.ids if seen[id_][3] != "note"]
        return seen, found, files, self.get("tags")


@pytest.fixture(scope="module")
def base(start_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "keys").write_text(f"{AGENT}\n")
    with start_server(folder, KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY, KB_API_KEY_FILE=str(folder / "keys")) as server:
        base = Base(server.url)
        yield base
        base.client.close()


MISTAKES = []
UNDO = ["undo", "--yes"]


def mistake(make):
    """Have a mistake tried; it returns the command that takes it back, if that is no undo since before it."""
    MISTAKES.append(make)
    return make


@mistake
def overwrite(base):
    base.update(base.lamp, "Summary: done.")
    return ["revert", base.lamp, 1]


@mistake
def overwrite_the_wrong_note(base):
    base.update(base.plan, "The lamp is lit at seven.")
    return ["revert", base.plan, 1]


@mistake
def blank(base):
    base.update(base.lamp, ".")


@mistake
def edit_again_and_again(base):
    for number in range(5):
        base.update(base.lamp, f"Edit {number}")


@mistake
def delete_a_note(base):
    base.delete(base.ship)
    return ["restore", base.ship]


@mistake
def delete_a_file(base):
    base.delete(base.file)
    return ["restore", base.file]


@mistake
def delete_a_mail_with_what_it_brought(base):
    base.delete(base.mail)
    return ["restore", base.mail]


@mistake
def delete_all_as_a_document_said(base):
    for id_ in base.ids:
        base.client.delete(f"documents/{id_}")


@mistake
def tag_all(base):
    for id_ in base.ids:
        base.retag(id_, add=["reviewed", "done"])


@mistake
def untag_all(base):
    for id_ in base.ids:
        base.retag(id_, remove=["sea", "lamp", "plan"])


@mistake
def upload_another_file_in_its_place(base):
    base.upload("coal.md", b"# Wood\n\nWood comes by ship.\n", source_path="/coal.md", title="Wood", tags="wood")


@mistake
def send_another_note_in_its_place(base):
    base.note("Nothing is planned.", tags="none", source_path=PATH)


@mistake
def flood(base):
    for number in range(10):
        base.note(f"The lamp is a lie {number}", tags="spam")


@mistake
def delete_and_put_another_in_its_place(base):
    base.delete(base.plan)
    base.note("Plan: none.", source_path=PATH)


@mistake
def delete_and_add_again(base):
    base.delete(base.lamp)
    base.note("The lamp is lit at six.", tags="lamp")


@mistake
def change_retag_and_delete(base):
    base.update(base.plan, "Other words")
    base.retag(base.plan, add=["x"], remove=["plan"])
    base.delete(base.plan)


@mistake
def revert_too_far(base):
    base.change("POST", f"documents/{base.ship}/revert", json={"version": 1})


@mistake
def restore_what_was_thrown_away(base):
    base.change("POST", f"documents/{base.gone}/restore")
    return ["delete", base.gone, "--yes"]


@mistake
def undo_good_work(base):
    since = moment_ago()
    note = base.note("Good work", tags="work")
    base.expected = base.state()
    base.before = moment_ago()
    base.change("POST", "undo", json={"since": since})
    assert note not in base.ids


@mistake
def wreck_while_the_user_works(base):
    base.use(AGENT)
    name = base.name()
    base.before = moment_ago()
    base.delete(base.lamp)
    base.update(base.ship, "Sunk.")
    base.retag(base.file, add=["sunk"])
    base.use(KEY)
    base.retag(base.plan, add=["by hand"])
    base.expected[0][base.plan][1] = sorted([*base.expected[0][base.plan][1], "by hand"])
    base.expected = (*base.expected[:3], base.expected[3] | {"tags": None})
    return [*UNDO, "--key", name]


def moment_ago():
    time.sleep(0.002)  # a change is stamped to the millisecond
    now = datetime.now(UTC).isoformat()
    time.sleep(0.002)
    return now


@pytest.mark.parametrize("make", mostly_rare(MISTAKES, 8), ids=lambda make: make.__name__)
def test_it_is_taken_back_with_one_command(base, monkeypatch, make):
    base.expected, base.before = base.state(), moment_ago()
    command = [str(word) for word in make(base) or UNDO]
    for name, value in {"KB_ENGINE_URL": base.url.removesuffix("/api/v1"), "KB_API_KEY": KEY}.items():
        monkeypatch.setenv(name, value)
    wrong = base.state()
    assert wrong != base.expected
    assert run([*command, *(["--since", base.before] if command[0] == "undo" else [])]) == 0
    seen, found, files, tags = base.state()
    assert (seen, found, files) == base.expected[:3]
    assert base.expected[3]["tags"] in (None, tags["tags"])


def test_there_are_twenty_of_them():
    assert len(MISTAKES) == 20


MODES = ({}, {"fts_only": True}, {"vec_only": True}, {"group_by": "document"}, {"sort": "recent"}, {"exact": True})
