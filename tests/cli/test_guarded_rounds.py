"""Rounds of a sync, one after another: a confirmation in one round does not count in the next."""

from __future__ import annotations

import io
import json

import pytest

from kb.folders import disk_view
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.folder import Folder
from kb_cli.sync.round import sync_folder
from kb_cli.sync.watch_rounds import Follower
from tests.support.rounds import documents_below, keep, plan, with_client


@pytest.fixture
def vault(tmp_path, monkeypatch):
    """A folder of twelve files, two of them in a folder of their own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "vault" / "usb").mkdir(parents=True)
    for number in range(12):
        (tmp_path / "vault" / ("usb" if number < 2 else "") / f"{number}.md").write_text(f"Number {number}, {tmp_path}")
    return tmp_path / "vault"


@pytest.fixture
def has(server, tag):
    """`has()` is how many documents the server has of the folder."""
    return lambda: len(documents_below(server, f"{tag}/"))


@pytest.fixture
def go(server, vault, tag):
    """`go()` goes round once in the folder, `go(plan)` only says what a round would do."""
    digests = DigestCache()
    return lambda act=keep, **options: act(server, Folder(vault, f"{tag}/", **options), digests)


def test_a_yes_is_good_for_the_round_that_was_asked_for_and_no_later_one(server, vault, tag, has, capsys):
    async def follow(client):
        follower = Follower(client, Folder(vault, f"{tag}/", delete=True, is_sure=True), DigestCache())
        assert await follower._sync_once()
        for number in range(2, 11):
            (vault / f"{number}.md").unlink()
        assert await follower._sync_once()

    with_client(server, follow)
    assert has() == 12
    assert "9 of 12 documents would be deleted" in capsys.readouterr().err


def test_a_disk_that_is_away_is_remembered_by_rounds_that_delete_nothing(go, vault, has, monkeypatch):
    mounted = {disk_view.Path(vault.anchor): "", vault / "usb": "4711"}
    monkeypatch.setattr(disk_view, "mounted_devices", lambda: mounted)
    go()
    del mounted[vault / "usb"]
    for path in (vault / "usb").iterdir():
        path.unlink()
    (vault / "usb" / "other.md").write_text("Something that hides the place.")
    go()
    withheld = go(delete=True).withheld
    assert has() == 13
    assert "not on the same disk as before" in withheld[0].reason
    go(delete=True, is_sure=True)
    assert has() == 11


def test_a_synced_folder_that_was_suddenly_empty_may_fill_again_file_by_file(go, vault, has):
    go(delete=True)
    texts = {path: path.read_text() for path in sorted(vault.glob("*.md"))}
    for path in (*texts, *(vault / "usb").iterdir()):
        path.unlink()
    for act in (plan, keep):
        with pytest.raises(UsageError, match="has no files"):
            go(act, delete=True)
    while len(texts) > 1:
        path, text = texts.popitem()
        path.write_text(text)
    assert "The folder was empty" in go(delete=True).withheld[0].reason
    assert has() == 12
    assert len(go(delete=True, is_sure=True).deleted) == 3


def test_a_folder_is_whole_again_although_documents_of_an_archive_in_it_are_left(server, vault, tag):
    async def rounds(client):
        folder, digests = Folder(vault, f"{tag}/", delete=True), DigestCache()
        path = f"{tag}/usb/notion.zip/page.md"
        job = await client.add_file("page.md", io.BytesIO(f"A page of {tag}".encode()), source_path=path)
        await client.wait_for_job(job["job_id"])
        await sync_folder(client, folder, digests, quiet=True)
        (vault / "usb").rename(vault.with_name("away"))
        (vault / "usb").mkdir()
        assert (await sync_folder(client, folder, digests, quiet=True)).emptied == ["usb"]
        (vault / "usb").rmdir()
        vault.with_name("away").rename(vault / "usb")
        await sync_folder(client, folder, digests, quiet=True)
        [mounts] = [each["mounts"] for each in (await client.folders())["folders"] if each["prefix"] == f"{tag}/"]
        assert "usb" not in json.loads(mounts)

    with_client(server, rounds)
