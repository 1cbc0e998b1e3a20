"""Disks of our own, small enough to be filled."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager, suppress

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
def filled(folder, but=0):
    """No room on the disk, but for so many bytes."""
    other = folder / "other"
    with suppress(OSError), other.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    os.truncate(other, other.stat().st_size - but)
    yield
    other.unlink()
