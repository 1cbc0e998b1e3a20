"""Uploaded files in the database, where every engine can read them and a dump includes them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg

from kb.api.errors import FilesUnavailable
from kb.blobs.protocol import BLOCK_SIZE, Blob, OpenBlob, Readable
from kb.blobs.scratch import as_file
from kb.store.postgres.statements import statements

if TYPE_CHECKING:
    from kb.store.postgres.connection import Connection

    Connect = Callable[[], AbstractContextManager[Connection]]

OUTSIDE: Final = "The files have been moved to another place. Set KB_BLOB_URL to that place and restart the engine."
LISTED: Final = 1000
"""The number of names per query."""


class PostgresBlobs:
    """See `kb.blobs.protocol.Blobs`. It uses its own transactions.

    Args:
        connect: lends a connection.
        scratch: a folder for temporary copies of blobs as files.
    """

    is_shared = True
    is_outside = False

    def __init__(self, connect: Connect, scratch: Path) -> None:
        self._connect = connect
        self._scratch = scratch
        self._sql = statements("blobs")

    def put(self, name: str, content: Readable) -> None:
        """Write a blob in one transaction, block by block."""
        with self._connect() as connection, connection.transaction():
            if connection.execute(self._sql["share_place"]).fetchone() == (True,):
                raise FilesUnavailable(OUTSIDE)
            [(content_id,)] = connection.execute(self._sql["insert_content"]).fetchall()
            size = number = 0
            while block := full_block(content):
                connection.execute(self._sql["insert_block"], (content_id, number, block))
                size, number = size + len(block), number + 1
            connection.execute(self._sql["set_size"], (size, content_id))
            if not connection.execute(self._sql["insert_name"], (name, content_id)).fetchall():
                raise psycopg.Rollback  # the blob exists already, and never changes

    def copy(self, names: Mapping[str, str]) -> None:
        """Give blobs additional names."""
        for name, to in names.items():
            with self._connect() as connection:
                content_id, _ = self._found(connection, name)
                try:
                    connection.execute(self._sql["insert_name"], (to, content_id))
                except psycopg.errors.ForeignKeyViolation:  # the blob was removed in the meantime
                    raise FileNotFoundError(name) from None

    def open(self, name: str) -> OpenBlob:
        """Read a blob block by block, so that a slow reader occupies no connection."""
        with self._connect() as connection:
            content_id, size = self._found(connection, name)
        return OpenBlob(size, self._blocks(name, content_id, size))

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """Yield a temporary file with the content of a blob."""
        with as_file(self.open(name), self._scratch) as path:
            yield path

    def size(self, name: str) -> int | None:
        with self._connect() as connection:
            row = connection.execute(self._sql["find"], (name,)).fetchone()
        return row[1] if row else None

    def remove(self, names: Iterable[str]) -> None:
        """Remove the blobs that exist, and contents without another name."""
        if not (gone := list(names)):
            return
        with self._connect() as connection, connection.transaction():
            contents = [name for (name,) in connection.execute(self._sql["lock_contents"], (gone,))]
            connection.execute(self._sql["delete_names"], (gone,))
            connection.execute(self._sql["delete_contents"], (contents,))

    def list(self, prefix: str) -> Iterator[Blob]:
        after, listed = prefix, LISTED
        while listed == LISTED:
            parameters = {"after": after, "prefix": prefix, "limit": LISTED}
            with self._connect() as connection:
                rows = connection.execute(self._sql["select_names"], parameters).fetchall()
            for row in rows:
                yield Blob(*row)
            listed, after = len(rows), rows[-1][0] if rows else after

    def _found(self, connection: Connection, name: str) -> tuple[int, int]:
        row = connection.execute(self._sql["find"], (name,)).fetchone()
        if row is None:
            raise FileNotFoundError(name)
        return row[0], row[1]

    def _blocks(self, name: str, content_id: int, size: int) -> Generator[bytes]:
        for number in range(-(-size // BLOCK_SIZE)):
            with self._connect() as connection, connection.cursor(binary=True) as cursor:
                row = cursor.execute(self._sql["select_block"], (content_id, number)).fetchone()
            if row is None:
                raise FileNotFoundError(name)
            yield row[0]


def full_block(content: Readable) -> bytes:
    """Return the next block, which is shorter only at the end."""
    block = content.read(BLOCK_SIZE)
    while block and len(block) < BLOCK_SIZE and (more := content.read(BLOCK_SIZE - len(block))):
        block += more
    return block


class BlobPlace:
    """The database's record of where files are.

    Args:
        connection: a connection in a transaction; until its end nobody else can change the record.
    """

    def __init__(self, connection: Connection) -> None:
        self._execute = connection.execute
        self._sql = statements("blobs")
        [(self.id, self.is_outside)] = self._execute(self._sql["lock_place"]).fetchall()

    @property
    def holds_files(self) -> bool:
        """Whether the database itself contains files."""
        return self._execute(self._sql["holds_files"]).fetchone() == (True,)

    def set_outside(self) -> None:
        """Record that the files are now outside the database."""
        self._execute(self._sql["set_outside"])
