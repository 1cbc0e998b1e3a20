"""Notice that somebody copied another file over the database while its log has changes of the earlier one.

SQLite would apply the log to any file, and the result would be a blend of both. So each run of the engine writes a mark
into the header of the database, past the log, and next to it a note of that mark. Backups get marks of their own.
"""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import apsw

from kb.api.errors import StoreError
from kb.store.sqlite.connection import BUSY_MS

OFFSET: Final = 68
"""The place of `application_id` in the header of an SQLite file."""

SIZE: Final = 4
LOG_HEADER: Final = 32
"""The size in bytes of a log without changes."""

REPLACED: Final = (
    "The database file {0} was replaced, but {0}-wal still has changes from the earlier file: together they would be a"
    " mixture of both. kb has changed nothing. If you restored an older file, move {0}-wal and {0}-shm to another"
    " folder, and start kb again. If you copied the file together with its -wal, remove {0}.session."
)


class FileIdentity:
    """Marks the file of an open database.

    Args:
        path: the file.
        writer: the only connection of this process so far. If another process reads the file, the mark stays in the
            log, and a replacement is not noticed.
    """

    def __init__(self, path: Path, writer: apsw.Connection) -> None:
        self._path = path
        note(path).unlink(missing_ok=True)  # if kb is killed now, the note would describe another mark
        self._mark = new_mark(writer)
        with suppress(apsw.BusyError):
            writer.set_busy_timeout(0)
            writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        writer.set_busy_timeout(BUSY_MS)
        # Open until no connection is left: closing it would take SQLite's locks away from this process.
        self._descriptor = os.open(path, os.O_RDONLY)
        self._inode = os.fstat(self._descriptor).st_ino
        self._is_marked = self._read() == self._mark
        if self._is_marked:
            note(path).write_text(str(self._mark))

    def is_replaced(self) -> bool:
        """Return whether the path leads to another file or to none by now, or the file has other content."""
        try:
            inode = self._path.stat().st_ino
        except FileNotFoundError:  # moved or removed: the open file takes changes that nobody would find again
            return True
        except OSError:  # such as a fault of the disk, which the next statement reports
            return False
        return inode != self._inode or (self._is_marked and self._read() != self._mark)

    def close(self) -> None:
        """Remove the note, unless the file was replaced. All connections are closed."""
        if not self.is_replaced():
            with suppress(OSError):
                note(self._path).unlink()
        os.close(self._descriptor)

    def _read(self) -> int:
        if sys.platform == "win32":  # there, an open file cannot be replaced
            with self._path.open("rb") as file:
                file.seek(OFFSET)
                return int.from_bytes(file.read(SIZE), "big", signed=True)
        return int.from_bytes(os.pread(self._descriptor, SIZE, OFFSET), "big", signed=True)


def note(path: Path) -> Path:
    """Return the file with the mark of a running engine, which stays if the engine is killed."""
    return path.with_name(f"{path.name}.session")


def new_mark(connection: apsw.Connection) -> int:
    """Write a new mark into the header of a database; return it."""
    mark = secrets.randbelow(2**31 - 1) + 1
    connection.pragma("application_id", mark)
    return mark


def refuse_blend(path: Path) -> None:
    """Refuse a file whose log belongs to another one. No engine may be starting.

    Raises:
        StoreError: the file was replaced; nothing is changed.
    """
    log = path.with_name(f"{path.name}-wal")
    try:
        if log.stat().st_size <= LOG_HEADER:
            return
        expected = note(path).read_text()
        with closing(apsw.Connection(f"{path.absolute().as_uri()}?immutable=1", flags=READ)) as connection:
            mark = connection.pragma("application_id")
    except (OSError, apsw.Error):  # no log or no note; or no database, which the next statement reports
        return
    if expected and str(mark) != expected:  # empty after a power cut that came before its content
        raise StoreError(REPLACED.format(path))


READ: Final = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
