"""Disks of our own, small enough to be filled."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder, megabytes):
    """A disk of its own, which another file can fill."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root can mount a disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def breakable_disk(folder):
    """A disk, and a function that breaks it: it becomes read-only, as ext4 does after an error."""
    folder.mkdir()
    image = folder.with_name("image")
    image.touch()
    os.truncate(image, 64 << 20)
    make = ["mkfs.ext4", "-q", "-O", "^has_journal", image]
    mount = ["mount", "-o", "loop,errors=remount-ro", image, folder]
    if os.geteuid() or any(run(command) for command in (make, mount)):
        pytest.skip("only root can mount a disk, and not everywhere")
    device = subprocess.check_output(["findmnt", "-n", "-o", "SOURCE", folder], text=True).strip()
    trigger = Path("/sys/fs/ext4", Path(device).name, "trigger_fs_error")
    try:
        if not os.access(trigger, os.W_OK):
            pytest.skip("this system breaks no disk on demand")
        yield folder, lambda: trigger.write_text("1")
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def run(command):
    """The exit status of a command. A missing program counts as a failure."""
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode
    except FileNotFoundError:
        return 127


@contextmanager
def read_only(folder):
    """A disk that is mounted read-only during the block. Nothing may have it open."""
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    yield
    subprocess.run(["mount", "-o", "remount,rw", folder], check=True)


@contextmanager
def filled(folder, but=0):
    """A full disk, with some bytes left. The yielded function takes space that was freed in between."""
    other = folder / "other"
    fill(other)
    os.truncate(other, other.stat().st_size - but)
    yield partial(fill, other)
    other.unlink()


def fill(path):
    with suppress(OSError), path.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))
