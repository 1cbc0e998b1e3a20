"""kb sync without --as: the folder has the name that it had, as soon as the engine can be asked."""

from __future__ import annotations

import subprocess

import pytest

from kb_cli.sync.digests import DigestCache
from kb_cli.sync.folder import Folder
from kb_cli.sync.folder_names import named
from kb_cli.sync.watch_rounds import Follower
from tests.conftest import KEY, free_port
from tests.support.rounds import with_client


@pytest.fixture
def prefix_of(server, folder, tmp_path, monkeypatch):
    """`prefix_of(name)` keeps the folder in step once, under a name if one is given; how its source paths begin."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def sync(name=""):
        async def follow(client):
            follower = Follower(client, Folder(folder, name), DigestCache())
            assert await follower._sync_once()
            return follower.folder.prefix

        return with_client(server, follow)

    return sync


def test_a_folder_keeps_the_name_that_it_began_with_whatever_other_one_was_tried(prefix_of, folder, tag):
    assert prefix_of() == f"{folder}/"
    assert prefix_of(f"{tag}/") == f"{tag}/"
    assert prefix_of() == f"{folder}/"


def test_a_folder_that_began_with_a_name_keeps_it(prefix_of, folder, tag, server):
    prefix_of(f"{tag}/")
    assert prefix_of() == f"{tag}/"

    async def prefixes(client):
        return [(await named(client, Folder(each, ""))).prefix for each in (folder / "deep", folder.parent)]

    assert with_client(server, prefixes) == [f"{tag}/deep/", f"{folder.parent}/"]


def test_a_watched_folder_waits_for_an_engine_that_is_not_there_yet(outside, folder):
    nowhere = {"KB_ENGINE_URL": f"http://127.0.0.1:{free_port()}", "KB_API_KEY": KEY}
    words = ("sync", "papers", "--watch")
    with outside.start(*words, env=nowhere, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert "kb keeps trying" in process.stderr.readline()
            assert process.poll() is None
        finally:
            process.kill()
