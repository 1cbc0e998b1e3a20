"""Who runs kb without the permission for a folder or file learns the path, its owner and the command that helps."""

from __future__ import annotations

import os
import traceback
from contextlib import suppress

import pytest

from kb.access.keyring import KeyFile
from kb.api.errors import StartError, StoreError
from kb.filesystem import make_folder, warn_root
from kb.live_settings import check_backup_folder
from kb.settings import Settings
from kb.store.engine_lock import sole_user
from kb.store.open import open_store
from tests.support.spaces import space

NOBODY = 10001
pytestmark = pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs root, to become another account")


def test_root_is_told_whose_folder_it_adds_files_to(tmp_path, caplog):
    warn_root(tmp_path)
    assert not caplog.text
    os.chown(tmp_path, NOBODY, NOBODY)
    warn_root(tmp_path)
    assert "kb runs as root" in caplog.text
    assert f"sudo chown -R {NOBODY} {tmp_path}" in caplog.text


def open_data(folder):
    with open_store(Settings(data_dir=folder), space()):
        return "opened"


def back_up_to(folder):
    check_backup_folder(Settings(data_dir=folder.parent, backup_dir=folder))


def as_nobody(use, folder):
    """What another account is told in a process of its own."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            said = use(folder)
        except StartError as error:
            said = str(error)
        except BaseException:  # noqa: BLE001 - the parent raises it
            said = traceback.format_exc()
        os.write(writer, str(said).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    assert "Traceback" not in said, said
    return said


@pytest.fixture
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    for parent in (folder, *folder.parents):
        if parent.stat().st_mode & 0o011 == 0:
            with suppress(OSError):
                parent.chmod(parent.stat().st_mode | 0o011)
    return folder


@pytest.mark.parametrize("mode", [0o755, 0o700])
@pytest.mark.parametrize("use", [open_data, back_up_to])
def test_a_folder_of_root_is_named_with_its_owner_and_the_remedy(folder, mode, use):
    place = folder / "data"
    place.mkdir(mode=mode)
    place.chmod(mode)
    said = as_nobody(use, place)
    assert str(place) in said
    assert "root (0)" in said
    assert f"sudo chown -R {NOBODY} {place}" in said


@pytest.mark.parametrize("name", ["kb.db", "kb.db-wal", "kb.db.lock"])
def test_a_file_of_root_in_ones_own_folder_is_named(folder, name):
    assert as_nobody(open_data, own(folder)) == "opened"
    path = folder / "data" / name
    path.write_bytes(path.read_bytes() if path.exists() else b"")
    os.chown(path, 0, 0)
    path.chmod(0o600)
    said = as_nobody(open_data, folder / "data")
    assert f"{path}. It belongs to root (0)" in said


def test_a_file_of_keys_of_root_is_named(folder):
    path = own(folder) / "keys.json"
    path.write_text('{"keys": []}')
    path.chmod(0o600)
    assert "It belongs to root (0)" in as_nobody(lambda data: KeyFile(data / "keys.json"), folder / "data")


def own(folder):
    place = folder / "data"
    place.mkdir()
    os.chown(place, NOBODY, NOBODY)
    return place


def test_root_leaves_no_lock_of_its_own_in_the_folder_of_another_account(folder):
    with sole_user(own(folder) / "kb.lock"):
        pass
    assert (folder / "data" / "kb.lock").stat().st_uid == NOBODY
    assert as_nobody(open_data, folder / "data") == "opened"


def test_a_file_and_a_dangling_link_are_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="is a file, not a folder"):
        make_folder(tmp_path / "file", "KB_DATA_DIR")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(StoreError, match=r"is a link to .*gone, which does not exist"):
        make_folder(tmp_path / "link", "KB_DATA_DIR")
