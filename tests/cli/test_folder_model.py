"""Whatever happens to a folder, nothing is in the bin that a person did not delete, and documents keep their ids."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from kb.client.client import EngineClient
from kb.folders import disk_view
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.folder import Folder
from kb_cli.sync.round import sync_folder
from tests.conftest import KEY
from tests.support.folders import Known, World, expected, hash_of
from tests.support.rounds import documents_below, with_client

LONG = [pytest.mark.long, pytest.mark.timeout(3600)]


class Crash(Exception):
    """The program ended amid a round."""


class Breaking(EngineClient):
    """Makes so many requests, and no more."""

    left = 1 << 30

    async def _request(self, *arguments, **options):
        self.left -= 1
        if self.left < 0:
            raise Crash
        return await super()._request(*arguments, **options)


class Synced:
    """A world kept in step with a server, and what is known of both."""

    def __init__(self, server, world, prefix, monkeypatch, tmp_path):
        self.server, self.world, self.prefix = server, world, prefix
        self.monkeypatch, self.tmp_path = monkeypatch, tmp_path
        self.digests = DigestCache()
        self.known = Known({}, {})
        self.ever_deleted = set()

    def round(self, *, machine="one", folder=None, is_sure=False, most=1 << 30):
        """Go round from a machine; what it withheld."""
        self.monkeypatch.setenv("XDG_STATE_HOME", str(self.tmp_path / machine))
        wanted = Folder(folder or self.world.root, f"{self.prefix}/", delete=True, is_sure=is_sure)

        async def go():
            async with Breaking(self.server.url, KEY) as client:
                client.left = most
                return await sync_folder(client, wanted, self.digests, quiet=True)

        return asyncio.run(go()).withheld

    def look(self):
        """What the engine has now."""

        async def fetch(client):
            cursor, binned = None, []
            while True:
                page = await client.bin(limit=500, cursor=cursor)
                binned += page["documents"]
                if (cursor := page["next_cursor"]) is None:
                    return binned

        documents, binned = documents_below(self.server, f"{self.prefix}/"), with_client(self.server, fetch)
        texts = {hash_of(text): text for text in (*self.world.files().values(), *self.world.held().values())}
        places = {each["source_path"].removeprefix(f"{self.prefix}/"): each for each in documents}
        assert len(places) == len(documents)
        here = {path: (each["id"], texts.get(each["content_hash"])) for path, each in places.items()}
        gone = {
            each["id"]: (each["source_path"].removeprefix(f"{self.prefix}/"), each["content_hash"])
            for each in binned
            if (each["source_path"] or "").startswith(f"{self.prefix}/")
        }
        return Known(here, gone)

    def check(self, withheld, *, is_whole):
        """Hold what the engine has against what was meant."""
        meant = dict(expected(self.world, self.known))
        now = self.look()
        self.ever_deleted |= self.world.deleted
        assert {path for path, _ in now.bin.values()} <= self.ever_deleted
        for path, text in self.world.files().items():
            assert now.documents[path][1] == text, path
        for path in self.world.held():
            if path in self.known.documents:
                assert path in now.documents, path
        if is_whole:
            assert {path: now.documents[path][0] for path in meant} == meant
        left = now.documents.keys() - self.world.files().keys() - self.world.held().keys()
        assert left <= {path for each in withheld for path in each.paths}
        self.known, self.world.synced = now, set(now.documents)


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "seed"), [(50, 1), *(pytest.param(500, seed, marks=LONG) for seed in range(3, 23))])
def test_nothing_is_in_the_bin_that_no_one_deleted_and_no_id_changes(server, tmp_path, monkeypatch, tag, steps, seed):
    chance = random.Random(seed)
    (tmp_path / "vault").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "own.md").write_text("Another machine's own.\n")
    world = World(tmp_path / "vault", chance)
    monkeypatch.setattr(disk_view, "mounted_devices", world.mounts)
    synced = Synced(server, world, tag, monkeypatch, tmp_path)
    done = 0
    while done < steps:
        for _ in range(batch := chance.choice([1, 2, 3, 6])):
            world.step()
        done += batch
        while not world.files():  # a round refuses a folder without any
            world.write()
        if not chance.randrange(6) and done > batch:  # the first round claims the name
            with pytest.raises(UsageError):
                synced.round(machine="two", folder=tmp_path / "other")
        is_whole = True
        if not chance.randrange(5):
            with suppress(Crash):
                synced.round(most=chance.randrange(1, 15))
            is_whole = False
        withheld = synced.round()
        synced.check(withheld, is_whole=is_whole)
        if withheld and not world.held():
            assert synced.round(is_sure=True) == []
            synced.check([], is_whole=is_whole)
