"""Documents as they leave a database, and as they come into another one: with their ids and times."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apsw

from kb.api.errors import StoreError
from kb.store.sqlite.connection import connect
from kb.store.sqlite.documents import SqliteDocuments
from kb.store.sqlite.schema import SCHEMA_VERSION, VectorTable
from kb.store.sqlite.statements import statements

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kb.store.rows import Chunk, Content, Document
    from kb.store.sqlite.store import SqliteTransaction


@dataclass(frozen=True, slots=True)
class Leaving:
    """A document with all that it holds; `part_of` is the document whose file it came in."""

    document: Document
    part_of: int | None
    chunks: list[Chunk]


def leaving(path: Path) -> Iterator[Leaving]:
    """Yield the documents of a database that nobody uses, by ascending id.

    Raises:
        StoreError: it cannot be read, or is of another version.
    """
    try:
        with closing(connect(path, read_only=True)) as connection:
            if connection.pragma("user_version") != SCHEMA_VERSION:
                raise StoreError("The database is of an older kb: start the engine once, which migrates it.")
            documents = SqliteDocuments(connection, VectorTable.of(connection))
            rows: list[Any] = connection.execute("SELECT id, part_of FROM documents ORDER BY id").fetchall()
            for document_id, part_of in rows:
                if document := documents.get(document_id):
                    yield Leaving(document, part_of, documents.chunks(document_id))
    except apsw.Error as error:
        raise StoreError(f"The database {path} cannot be read: {error}.") from error


def leaving_files(path: Path) -> set[str]:
    """Return the hashes of the files that documents came from."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        return {
            digest for (digest,) in connection.execute("SELECT content_hash FROM documents WHERE doc_type <> 'note'")
        }


def last_document_id(path: Path) -> int:
    """Return the highest id that a document was given."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        last: int = connection.execute("SELECT id FROM last_ids WHERE name = 'documents'").get
        return last


def add_exact(tx: SqliteTransaction, document: Document, content: Content, part_of: int | None) -> int:
    """Write a document with its times, and with its id unless that or a higher one was given; return the id."""
    skip_ids(tx, document.id - 1)
    added = tx.documents.add(content, document.source_path, document.tags, part_of)
    tx.connection.execute(
        "UPDATE documents SET created_at = ?, updated_at = ? WHERE id = ?",
        (_as_stored(document.created_at), _as_stored(document.updated_at), added),
    )
    # By its times it was here before it came, and of no moment before that is it known how things stood.
    tx.connection.execute(statements("history")["begin_later"], (tx.documents.now,))
    return added


def skip_ids(tx: SqliteTransaction, last: int) -> None:
    """Give no document an id up to `last`."""
    tx.connection.execute("UPDATE last_ids SET id = max(id, ?) WHERE name = 'documents'", (last,))


def _as_stored(time: str | None) -> str | None:
    """Return a time as the tables have it."""
    return time and time.replace("T", " ").removesuffix("Z")
