"""Whose folder a name is, when disks and machines come and go."""

from __future__ import annotations

import errno
import json
import os

import pytest

from kb.folders import disk_view
from kb.folders.disk_view import describe_mounts
from kb_cli.sync import folder_claim
from kb_cli.sync.folder import Folder
from kb_cli.sync.folder_claim import has_moved, is_from_here, is_mine


@pytest.fixture
def stick(tmp_path, monkeypatch):
    """A folder on a stick, and what is mounted."""
    mounted = {tmp_path / "stick": "4711"}
    monkeypatch.setattr(disk_view, "mounted_devices", lambda: mounted)
    monkeypatch.setattr(disk_view.os.path, "ismount", lambda path: path in mounted or path == path.parent)
    (tmp_path / "stick" / "notes").mkdir(parents=True)
    return tmp_path / "stick" / "notes", mounted


def known(folder, host="here", **changes):
    """What an engine knows of a folder."""
    facts = {"machine": "m1", "host": host, "path": str(folder), "mounts": describe_mounts(folder)}
    return facts | changes


@pytest.fixture(autouse=True)
def this_machine(monkeypatch):
    monkeypatch.setattr(folder_claim.socket, "gethostname", lambda: "here")


def test_a_folder_whose_disk_is_away_has_not_moved(stick):
    folder, mounted = stick
    before = known(folder)
    folder.rename(folder.with_name("renamed"))
    assert has_moved(before, "m1"), "its disk is there, and it is not"
    folder.with_name("renamed").rmdir()
    mounted.clear()
    assert not has_moved(before, "m1")
    folder.parent.rmdir()
    assert not has_moved(before, "m1"), "the folder where it is mounted goes when it is taken out"


def test_a_folder_of_which_no_disk_is_known_has_not_moved(tmp_path):
    assert not has_moved(known(tmp_path / "gone", mounts=""), "m1")


def test_a_copy_of_a_home_folder_on_another_machine_is_not_the_same_folder(stick):
    folder, mounted = stick
    elsewhere = known(folder, host="there")
    assert is_mine(elsewhere, Folder(folder, "x/"), "m1"), "its disk has the same number: the machine was renamed"
    mounted[folder.parent] = "4712"
    assert not is_mine(elsewhere, Folder(folder, "x/"), "m1")
    assert is_mine(known(folder), Folder(folder, "x/"), "m1")
    mounted[folder.parent] = ""
    assert not is_mine(known(folder, host="there"), Folder(folder, "x/"), "m1"), "its disk has no number"


def test_the_devices_of_a_folder_are_those_behind_a_link(stick, tmp_path):
    folder, mounted = stick
    (folder / "inner").mkdir()
    mounted[folder / "inner"] = "99"
    (tmp_path / "link").symlink_to(folder)
    assert describe_mounts(tmp_path / "link") == describe_mounts(folder)
    assert json.loads(describe_mounts(folder)) == {"": f"{folder.parent} 4711", "inner": f"{folder / 'inner'} 99"}


@pytest.mark.parametrize("kind", ["xfs", "f2fs", "vfat", "exfat"])
def test_the_number_of_a_file_system_is_not_that_of_the_place_where_it_is_plugged_in(tmp_path, monkeypatch, kind):
    device, numbers = tmp_path / "sdb1", tmp_path / "by-uuid"
    device.touch()
    numbers.mkdir()
    monkeypatch.setattr(disk_view, "BY_NUMBER", numbers)
    monkeypatch.setattr(disk_view, "DEVICES", str(tmp_path))
    assert disk_view.file_system(tmp_path, kind, str(device)) == ""
    (numbers / "5FB2-1C03").symlink_to(device)
    assert disk_view.file_system(tmp_path, kind, str(device)) == "5FB2-1C03"
    assert disk_view.file_system(tmp_path, kind, str(tmp_path / "absent")) == ""


def test_a_folder_is_the_same_when_what_the_home_folder_noted_is_gone(stick):
    folder, mounted = stick
    before = known(folder, machine="of a home folder that is gone")
    assert is_mine(before, Folder(folder, "x/"), "m1"), "name and disk are the same"
    assert not is_mine(before | {"host": "there"}, Folder(folder, "x/"), "m1"), "the disk alone could be a copy"
    mounted[folder.parent] = "4712"
    assert not is_mine(before, Folder(folder, "x/"), "m1"), "another disk"
    mounted[folder.parent] = ""
    assert not is_mine(known(folder, machine="m2"), Folder(folder, "x/"), "m1"), "a disk without a number"


@pytest.fixture
def closed(tmp_path, monkeypatch):
    """A folder of somebody else, which one may not look at."""
    folder, real = tmp_path / "theirs" / "notes", os.stat

    def refuse(path, *arguments, **options):
        if str(path).startswith(str(folder)):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(disk_view.os, "stat", refuse)
    return folder


@pytest.mark.parametrize("facts", [{}, {"machine": "m1"}, {"host": "here"}, {"machine": "m1", "host": "here"}])
def test_a_folder_that_one_may_not_look_at_stops_nothing(closed, facts):
    theirs = {"machine": "m2", "host": "there", "path": str(closed), "mounts": '{"": "/ 1f"}'} | facts
    assert is_from_here(theirs, "m1") == (len(facts) == 2)
    assert not has_moved(theirs, "m1"), "it is there"


@pytest.mark.parametrize("path", ["round/notes", "C:\\Users\\me\\notes", "a\0b", "x" * 5000])
def test_a_path_that_cannot_be_here_stops_nothing(tmp_path, path):
    (tmp_path / "round").symlink_to(tmp_path / "round")
    theirs = {"machine": "m2", "host": "here", "path": str(tmp_path / path), "mounts": '{"": "/ 1f"}'}
    assert not is_from_here(theirs, "m1")


def test_the_disk_of_a_folder_of_another_machine_is_not_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_claim, "describe_mounts", lambda path: pytest.fail(f"{path} was looked at"))
    theirs = {"machine": "m2", "host": "there", "path": str(tmp_path), "mounts": '{"": "/ 1f"}'}
    assert not is_from_here(theirs, "m1")
