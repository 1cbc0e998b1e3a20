"""A copy of a database at a point in time, made while an engine writes to it."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from kb.api.errors import StoreError
from kb.filesystem import sync
from kb.store.sqlite.connection import unopened
from kb.store.sqlite.file_identity import new_mark, refuse_blend
from kb.store.sqlite.foreign_objects import foreign_tables
from kb.store.sqlite.integrity_rules import drop_foreign, make_missing
from kb.store.sqlite.statements import statements

logger = logging.getLogger(__name__)

# The time to wait for the engine's transaction, in milliseconds.
BUSY_MS = 120_000

# Pages per step of copying.
PAGES = 4096

COUNTED = ("documents", "chunks", "jobs")


class Snapshot:
    """A database at a point in time, which stays readable until it is closed or taken again.

    Raises:
        StoreError: the database cannot be opened, or has tables that kb does not declare.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        refuse_blend(path)
        try:
            self._reader, self._writer = self._open(), self._open()
            foreign = list(foreign_tables(self._reader))
        except apsw.Error as error:
            raise unopened(path, error) from error
        if foreign:
            self.close()
            raise StoreError(
                f"Another program changed tables of the database {path} ({', '.join(foreign[:5])}), so that a backup"
                " could not be restored. Run 'kb doctor' for details."
            )

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()
        self._writer.close()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Move the snapshot to now. Writers wait until the block ends, so no file of the snapshot is deleted in it.

        Raises:
            StoreError: the database cannot be read, or other writers kept it busy for too long.
        """
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            if self._reader.in_transaction:
                self._reader.execute("ROLLBACK")
            self._reader.execute("BEGIN")
            self._reader.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            yield
        except apsw.Error as error:
            raise StoreError(f"kb cannot read the database {self._path}: {error}.") from error
        finally:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    @property
    def schema_version(self) -> int:
        version: int = self._reader.pragma("user_version")
        return version

    def staged(self) -> list[tuple[str, str | None]]:
        """Return the names of the staged files of jobs, and the hashes of their contents."""
        rows: list[Any] = self._reader.execute(
            "SELECT staged, content_hash FROM jobs WHERE staged IS NOT NULL"
        ).fetchall()
        return rows

    def file_hashes(self) -> set[str]:
        return {digest for (digest,) in self._reader.execute(statements("documents")["select_file_hashes"])}

    def counts(self) -> dict[str, int]:
        """Return the number of rows of each table in `COUNTED`."""
        return {table: self._reader.execute(f"SELECT count(*) FROM {table}").get for table in COUNTED}

    def copy(self, target: Path, checkpoint: Callable[[], None]) -> None:
        """Write the database to `target`, sync the copy to the disk and check it.

        Raises:
            StoreError: the copy cannot be written, or is damaged.
        """
        try:
            with closing(apsw.Connection(str(target))) as copy:
                copy.pragma("journal_mode", "OFF")
                with copy.backup("main", self._reader, "main") as backup:
                    while not backup.done:
                        backup.step(PAGES)
                        checkpoint()
                left_out = drop_foreign(copy)
                copy.pragma("secure_delete", "ON")
                copy.execute("DELETE FROM grants")  # a restored backup lets nobody in again
                new_mark(copy)
                make_missing(copy, left_out)
        except apsw.Error as error:
            raise _unwritable(target, error) from error
        if left_out:
            names = ", ".join(f"{kind} {name}" for kind, name in left_out)
            logger.warning("the backup omits objects that kb did not create (%s); run 'kb doctor'", names)
        sync(target)
        if damage := find_damage(target):
            raise StoreError(f"The database {self._path} is damaged ({damage}). Run 'kb doctor' for details.")

    def _open(self) -> apsw.Connection:
        connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.set_busy_timeout(BUSY_MS)
        return connection


def users_of_files(path: Path, digests: Sequence[str]) -> list[str]:
    """Return a line for each document and queued job that needs one of these files, or a file's digest."""
    sql = statements("documents")["select_users_of_file"]
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        users = {digest: [user for (user,) in connection.execute(sql, {"hash": digest})] for digest in digests}
    return [user for digest in digests for user in users[digest] or [f"the file {digest}"]]


def find_damage(path: Path) -> str | None:
    """Return the first fault that SQLite finds in a copy of a database, or None. No other program may use it.

    Raises:
        StoreError: the disk of the copy is full, or cannot be written.
    """
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
            connection.pragma("journal_mode", "DELETE")
            report: str = connection.execute("PRAGMA quick_check(1)").get
    except (apsw.FullError, apsw.IOError) as error:
        raise _unwritable(path, error) from error
    except apsw.Error as error:
        return str(error)
    return None if report == "ok" else report


def _unwritable(copy: Path, error: apsw.Error) -> StoreError:
    return StoreError(f"kb cannot write the copy {copy} of the database: {error}.")
