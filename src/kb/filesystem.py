"""Folders, durable writes, safe opening of files, and the limit of open files."""

import errno
import logging
import os
import shutil
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from kb.api.errors import REMEDY, DiskFault, StoreError

logger = logging.getLogger(__name__)

IS_WINDOWS = os.name == "nt"

MANY_FILES = 1 << 16
"""Enough for any of our servers."""


def make_folder(path: Path, variable: str) -> None:
    """Make a folder, accessible only to its owner, unless it exists.

    Raises:
        StoreError: the folder cannot be made; the message names the setting `variable`.
    """
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except FileExistsError as error:
        what = f"a link to {path.readlink()}, which does not exist" if path.is_symlink() else "a file, not a folder"
        raise StoreError(f"{variable}: {path} is {what}.") from error
    except OSError as error:
        remedy = f" {REMEDY}." if DiskFault.of(error) else ownership(path)
        raise StoreError(f"{variable}: {path} cannot be used: {error.strerror}.{remedy}") from error
    refuse_closed(path, variable)


def refuse_closed(path: Path, variable: str) -> None:
    """Refuse a file or folder that this account may not change; a read-only disk is found later.

    Raises:
        StoreError: the account has no permission; the message names the owner and the remedy.
    """
    needed = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
    if sys.platform == "win32" or os.access(path, needed) or os.statvfs(path).f_flag & os.ST_RDONLY:
        return
    raise StoreError(f"{variable}: kb has no permission to write to {path}.{ownership(path)}")


def ownership(path: Path) -> str:
    """Return a sentence about the owner of a path that this account may not use, with the remedy; empty on Windows."""
    if sys.platform == "win32":
        return ""
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    with suppress(OSError):
        owner, own = path.stat().st_uid, os.geteuid()
        if owner == own:
            return f" Its permissions forbid it: run 'chmod u+rwX {path}'."
        return (
            f" It belongs to {_account(owner)}, and kb runs as {_account(own)}:"
            f" run 'sudo chown -R {own} {path}', or choose another path."
        )
    return ""


def _account(number: int) -> str:
    if sys.platform != "win32":
        import pwd

        with suppress(KeyError):
            return f"{pwd.getpwuid(number).pw_name} ({number})"
    return f"user {number}"


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk. Windows cannot flush folders, and need not."""
    if IS_WINDOWS and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if IS_WINDOWS else os.O_RDONLY)
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def sync_descriptor(descriptor: int) -> None:
    """Flush an open file to the disk. On macOS, `fsync` only flushes to the drive's cache."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def write_private(path: Path, text: str) -> None:
    """Write a file atomically, durably, and readable only by its owner."""
    new = path.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(text, "utf-8")
    sync(new)
    new.replace(path)
    sync(path.parent)


def give_to_owner(owned: Path, path: Path) -> None:
    """Give a file or folder the owner of another one, if root works on a user's behalf."""
    if sys.platform == "win32" or os.geteuid():
        return
    owner = owned.stat()
    for child in (path, *path.rglob("*")):
        os.chown(child, owner.st_uid, owner.st_gid, follow_symlinks=False)


def warn_root(folder: Path) -> None:
    """Warn if root adds files to the folder of another account, which could not read them."""
    if sys.platform == "win32" or os.geteuid():
        return
    if owner := folder.stat().st_uid:
        logger.warning(
            "kb runs as root, but %s belongs to %s, who cannot read what root adds. Run kb as that account. To give it"
            " all files, stop kb and run 'sudo chown -R %s %s'",
            *(folder, _account(owner), owner, folder),
        )


def raise_file_limit() -> int:
    """Raise the limit of open files as far as allowed. Return the new limit."""
    if sys.platform == "win32":
        return 8192  # the limit of its C library
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, MANY_FILES)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return MANY_FILES if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (OSError, ValueError):  # macOS has a lower limit that it does not report
        return soft
    return most


def open_regular(path: Path | str, folder: int | None = None) -> BinaryIO:
    """Open a regular file for reading; refuse links, devices and pipes, which may never end.

    Args:
        path: its path, or its name in an open folder.
        folder: the descriptor of that folder.

    Raises:
        FileNotFoundError: the path is not a regular file.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            kind = "a link" if error.errno == errno.ELOOP else "a socket"
            raise FileNotFoundError(f"{path} is {kind}, not a file") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(f"{path} is not a file")
    return os.fdopen(descriptor, "rb")


def remove_folder(folder: Path) -> None:
    """Remove a folder with its contents, whatever their permissions; log failures."""
    try:
        if not folder.is_symlink():
            folder.chmod(0o700)
        for where, names, _ in os.walk(folder):
            for path in (Path(where, name) for name in names):
                if not path.is_symlink():
                    path.chmod(0o700)
        shutil.rmtree(folder)
    except OSError as error:
        logger.warning("%s cannot be removed: %s", folder, error)


def is_exposed(path: Path) -> bool:
    """Return whether other accounts can read a file, by its own permissions and the permissions of its folders."""
    if IS_WINDOWS or not path.stat().st_mode & 0o044:
        return False
    return all(folder.stat().st_mode & 0o011 for folder in path.resolve().parents)
