"""Folders that stay open: if somebody exchanges a folder for a link, kb still writes to the folder that it opened.

Windows opens no folders. There, files are looked up by path, after a look at each folder in it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final

from kb.filesystem import IS_WINDOWS, open_regular, sync_descriptor

UNSUPPORTED: Final = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}
"""The errors of a system or a file system that cannot exchange files."""

FLAGS: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
NO_LINKS: Final = getattr(os, "O_NOFOLLOW", 0)
LINKED: Final = "A folder in its path is a link, and kb does not follow links."


class Linked(OSError):
    """A folder in a path is a link."""

    def __init__(self) -> None:
        super().__init__(errno.ELOOP, LINKED)


class OpenFolder:
    """An open folder; its methods take the names of files in it.

    Args:
        path: its path.
        descriptor: its descriptor; None on Windows.
    """

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path, self.descriptor = path, descriptor

    def __enter__(self) -> OpenFolder:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)

    @classmethod
    def of(cls, path: Path) -> OpenFolder:
        """Open a folder, which may be a link."""
        return cls(path, None if IS_WINDOWS else os.open(path, FLAGS))

    def inside(self, name: str, *, make: bool = False) -> OpenFolder:
        """Open a folder in this one.

        Raises:
            Linked: it is a link.
            OSError: it cannot be opened.
        """
        if make:
            with suppress(FileExistsError):
                os.mkdir(self._at(name), dir_fd=self.descriptor)
        try:
            if IS_WINDOWS and self.is_link(name):
                raise Linked
            descriptor = None if IS_WINDOWS else os.open(name, FLAGS | NO_LINKS, dir_fd=self.descriptor)
        except OSError as error:
            if self.is_link(name):
                raise Linked from error
            raise
        return OpenFolder(self.path / name, descriptor)

    @contextmanager
    def entries(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Yield the entries of the folder."""
        with os.scandir(self.path if self.descriptor is None else self.descriptor) as entries:
            yield entries

    def status(self, name: str) -> os.stat_result:
        return os.stat(self._at(name), dir_fd=self.descriptor, follow_symlinks=False)

    def has(self, name: str) -> bool:
        """Return whether anything has a name."""
        try:
            self.status(name)
        except FileNotFoundError:
            return False
        return True

    def is_writable(self, name: str) -> bool:
        return os.access(self._at(name), os.W_OK, dir_fd=self.descriptor)

    def is_other_than_folder(self, name: str) -> bool:
        """Return whether anything but a folder has a name."""
        try:
            return not stat.S_ISDIR(self.status(name).st_mode)
        except FileNotFoundError:
            return False

    def is_link(self, name: str) -> bool:
        try:
            status = self.status(name)
        except OSError:
            return False
        return stat.S_ISLNK(status.st_mode) or bool(getattr(status, "st_reparse_tag", 0))

    def open_file(self, name: str) -> BinaryIO:
        """Open a regular file for reading, see `open_regular`."""
        return open_regular(self._at(name), self.descriptor)

    def is_open_to_write(self, name: str) -> bool:
        """Return whether a program has a file open to write: only then does Linux refuse a lease for reading.

        Some network file systems refuse it always.
        """
        if not sys.platform.startswith("linux"):
            return False
        import fcntl
        import signal

        with self.open_file(name) as file:
            try:
                fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)  # who opens it now sends a signal that does nothing
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            except OSError as error:  # the file is somebody else's, or the file system has no leases
                return error.errno == errno.EAGAIN
        return False

    def create(self, name: str, content: bytes, mode: int = 0o666) -> os.stat_result:
        """Write a new file durably; return its status.

        Raises:
            FileExistsError: something has this name already.
            OSError: it cannot be written.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINKS | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self._at(name), flags, mode, dir_fd=self.descriptor)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                sync_descriptor(file.fileno())
                return os.fstat(file.fileno())
        except OSError:
            self.remove(name)
            raise

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(self._at(name), dir_fd=self.descriptor)

    def remove_folder(self, name: str) -> None:
        os.rmdir(self._at(name), dir_fd=self.descriptor)

    def rename(self, name: str, target: str) -> None:
        """Rename a file; it replaces the file that has its new name."""
        old, new = self._at(name), self._at(target)
        os.replace(old, new, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def exchange(self, one: str, other: str) -> None:
        """Exchange two files at once, or where the system cannot do that, in two steps. The first one always exists.

        Raises:
            OSError: the files cannot be exchanged.
        """
        if self._rename(one, self, other, swap=True):
            return
        aside = f"{other}-aside"
        self._link_or_copy(one, aside)
        self.rename(other, one)
        self.rename(aside, other)

    def move_to_free(self, name: str, folder: OpenFolder, target: str) -> None:
        """Move a file to a name in a folder that nothing has.

        Raises:
            FileExistsError: something has this name already.
            OSError: the file cannot be moved.
        """
        if self._rename(name, folder, target, swap=False):
            return
        if folder.has(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        old, new = self._at(name), folder._at(target)
        os.rename(old, new, src_dir_fd=self.descriptor, dst_dir_fd=folder.descriptor)

    def sync(self) -> None:
        """Make the names in the folder durable. Windows cannot do that, and need not."""
        if self.descriptor is not None:
            sync_descriptor(self.descriptor)

    def _at(self, name: str) -> str:
        return name if self.descriptor is not None else str(self.path / name)

    def _rename(self, name: str, folder: OpenFolder, target: str, *, swap: bool) -> bool:
        """Rename a file to a free name, or exchange two files, in one step; return False if the system cannot."""
        if sys.platform not in ("linux", "darwin"):
            return False
        libc = ctypes.CDLL(None, use_errno=True)
        places = self.descriptor, os.fsencode(name), folder.descriptor, os.fsencode(target)
        try:
            if sys.platform == "linux":
                failed = libc.renameat2(*places, ctypes.c_uint(2 if swap else 1))
            else:
                failed = libc.renameatx_np(*places, ctypes.c_uint(2 if swap else 4))
        except AttributeError:  # an old C library
            return False
        if failed and ctypes.get_errno() in UNSUPPORTED:
            return False
        if failed:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), name, None, target)
        return True

    def _link_or_copy(self, name: str, target: str) -> None:
        """Give a file a second name, or copy it where the file system has no hard links, as exFAT."""
        if not IS_WINDOWS:
            with suppress(AttributeError, OSError):
                os.link(name, target, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor, follow_symlinks=False)
                return
        with self.open_file(name) as file:
            status = os.fstat(file.fileno())
            self.create(target, file.read(), stat.S_IMODE(status.st_mode))
        times = status.st_atime_ns, status.st_mtime_ns
        os.utime(self._at(target), ns=times, dir_fd=self.descriptor)


@contextmanager
def opened(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[OpenFolder]:
    """Open a folder below a root without following links; with `make`, make missing folders.

    Raises:
        Linked: one of them is a link.
        OSError: one of them cannot be opened.
    """
    folder = OpenFolder.of(root)
    for part in parts:
        with folder as outer:
            folder = outer.inside(part, make=make)
    with folder:
        yield folder
