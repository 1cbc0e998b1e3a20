"""Machines that look alike: of one image, or containers of one host that have the same name."""

from __future__ import annotations

import pytest

from kb.folders import disk_view
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.sync.folder import Folder
from kb_cli.sync.folder_claim import claim
from tests.support.rounds import keep, plan, with_client

FILES = 8


@pytest.fixture
def vault(tmp_path, monkeypatch):
    """A folder at the same place, on a disk of the same number, on every machine."""
    (tmp_path / "vault").mkdir()
    monkeypatch.setattr(disk_view, "mounted_devices", lambda: {disk_view.mount_point(tmp_path): "4711"})
    write(tmp_path / "vault", tmp_path)
    return tmp_path / "vault"


def write(folder, words, count=FILES):
    for number in range(count):
        (folder / f"{number}.md").write_text(f"Number {number}, {words}")


def end_of_a_round(server, folder):
    """Note that all is in step, as a round does that began while another machine had the name."""
    with_client(server, lambda client: claim(client, folder, "", "another machine"))


@pytest.fixture
def go(server, vault, tag, tmp_path, monkeypatch):
    """`go(home)` keeps the folder in step from a machine with that home folder."""

    def sync(home, act=keep, folder=vault, **options):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / home))
        return act(server, Folder(folder, f"{tag}/", delete=True, **options))

    return sync


def test_a_twin_with_files_of_its_own_does_not_get_the_name(go, vault):
    go("alice")
    write(vault, "bob's")
    for act in (keep, plan):
        with pytest.raises(UsageError, match="--take-over"):
            go("bob", act)
    go("bob", take_over=True)
    assert go("bob").deleted == []
    write(vault, "alice's")
    with pytest.raises(UsageError, match="--take-over"):
        go("alice", is_sure=True)


def test_a_new_container_with_the_same_files_goes_on_by_itself(go, vault):
    go("before")
    write(vault, "changed meanwhile", FILES // 2)
    go("after")
    write(vault, "a twin's", FILES // 2 + 1)
    with pytest.raises(UsageError, match="--take-over"):
        go("before")


def test_only_a_folder_with_the_same_files_is_one_that_was_renamed(go, vault, tmp_path):
    go("alice")
    vault.rename(tmp_path / "renamed")
    vault.mkdir()
    with pytest.raises(UsageError, match="--take-over"):
        go("bob")
    vault.rmdir()
    go("bob", folder=tmp_path / "renamed")


def test_a_name_that_another_machine_got_during_a_round_is_not_taken_back(go):
    go("alice")
    go("bob")
    with pytest.raises(UsageError, match="--take-over"):
        go("alice", end_of_a_round)
