"""Rounds of a sync, one after another: what was said in one does not count in the next."""

from __future__ import annotations

import asyncio
import io
import json

import pytest

from kb.client.client import EngineClient
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.sync import disk
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.folder import Folder
from kb_cli.sync.follow import Follower
from kb_cli.sync.round import plan_sync, sync_folder
from tests.conftest import KEY


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

    async def count():
        async with EngineClient(server.url, KEY) as client:
            return len([each async for each in client.iter_documents(source_prefix=f"{tag}/")])

    return lambda: asyncio.run(count())


def test_a_yes_is_good_for_the_round_that_was_asked_for_and_no_later_one(server, vault, tag, has, capsys):
    async def go():
        async with EngineClient(server.url, KEY) as client:
            folder = Folder(vault, f"{tag}/", delete=True, is_sure=True)
            follower = Follower(client, folder, DigestCache())
            assert await follower._sync_once()
            for number in range(2, 11):
                (vault / f"{number}.md").unlink()
            assert await follower._sync_once()

    asyncio.run(go())
    assert has() == 12
    assert "9 of 12 documents would be deleted" in capsys.readouterr().err


def test_a_disk_that_is_away_is_remembered_by_rounds_that_delete_nothing(server, vault, tag, has, monkeypatch):
    mounted = {disk.Path(vault.anchor): "", vault / "usb": "4711"}
    monkeypatch.setattr(disk, "mounted_devices", lambda: mounted)
    digests = DigestCache()

    def go(**options):
        async def act():
            async with EngineClient(server.url, KEY) as client:
                return await sync_folder(client, Folder(vault, f"{tag}/", **options), digests, quiet=True)

        return asyncio.run(act())

    go()
    del mounted[vault / "usb"]
    for path in (vault / "usb").iterdir():
        path.unlink()
    (vault / "usb" / "other.md").write_text("Something that hides the place.")
    go()
    kept = go(delete=True)
    assert has() == 13
    assert "not on the disk that it was on" in kept.withheld[0].reason
    go(delete=True, is_sure=True)
    assert has() == 11


def test_a_folder_that_was_suddenly_empty_may_fill_again_file_by_file(server, vault, tag, has):
    digests = DigestCache()

    def go(**options):
        async def act():
            async with EngineClient(server.url, KEY) as client:
                return await sync_folder(client, Folder(vault, f"{tag}/", delete=True, **options), digests, quiet=True)

        return asyncio.run(act())

    go()
    texts = {path: path.read_text() for path in (vault / "usb").iterdir()}
    for path in texts:
        path.unlink()
    go()
    assert has() == 12
    path, text = texts.popitem()
    path.write_text(text)
    assert "was empty" in go().withheld[0].reason
    assert has() == 12
    assert go(is_sure=True).deleted == [f"{tag}/usb/{each.name}" for each in texts]


def test_a_synced_folder_that_was_suddenly_empty_may_fill_again_file_by_file(server, vault, tag, has):
    digests = DigestCache()

    def go(act, **options):
        async def request():
            async with EngineClient(server.url, KEY) as client:
                return await act(client, Folder(vault, f"{tag}/", delete=True, **options), digests)

        return asyncio.run(request())

    async def plan(client, folder, digests):
        return await plan_sync(client, folder, digests)

    async def keep(client, folder, digests):
        return await sync_folder(client, folder, digests, quiet=True)

    go(keep)
    texts = {path: path.read_text() for path in sorted(vault.glob("*.md"))}
    for path in (*texts, *(vault / "usb").iterdir()):
        path.unlink()
    for act in (plan, keep):
        with pytest.raises(UsageError, match="holds no files"):
            go(act)
    while len(texts) > 1:
        path, text = texts.popitem()
        path.write_text(text)
    assert "The folder was empty" in go(keep).withheld[0].reason
    assert has() == 12
    assert len(go(keep, is_sure=True).deleted) == 3


def test_a_folder_is_whole_again_although_documents_of_an_archive_in_it_are_left(server, vault, tag):
    async def go():
        async with EngineClient(server.url, KEY) as client:
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

    asyncio.run(go())
