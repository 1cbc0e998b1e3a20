"""Add documents of an export to a database that has other documents. They keep their times and get free ids."""

from collections.abc import Sequence
from dataclasses import dataclass

from kb.store.chunk_compression import compressed
from kb.store.row_mapping import field_values, next_ids, raw
from kb.store.rows import NOBODY, Author, Binned, Chunk, Content, Document, NewChunk, Version
from kb.store.sql.export_tables import VERSIONS
from kb.store.sqlite.statements import statements
from kb.store.sqlite.store import SqliteTransaction


@dataclass(frozen=True, slots=True)
class FormerVersion:
    """An earlier version of a document.

    Args:
        version: the fields of the document at that version.
        part_of: the document whose file contained it.
        chunks: its content; None if an earlier version or the current document has the same content.
        chunks_of: the number of the earlier version with the same content, if any.
        binned: the record in the bin, for the last version of a document in the bin.
    """

    version: Version
    part_of: int | None
    chunks: Sequence[NewChunk | Chunk] | None
    chunks_of: int | None = None
    binned: Binned | None = None


def add_exact(
    tx: SqliteTransaction,
    document: Document,
    content: Content,
    part_of: int | None,
    number: int = 1,
    author: Author = NOBODY,
) -> int:
    """Write a document with its times, and with its own id if this and all higher ids are free; return the id."""
    skip_ids(tx, document.id - 1)
    added = tx.documents.add(content, document.source_path, document.tags, part_of, author)
    tx.connection.execute(
        "UPDATE documents SET created_at = ?, updated_at = ?, version = ? WHERE id = ?",
        (raw(document.created_at), document.updated_at and raw(document.updated_at), number, added),
    )
    # By its times, the document existed before the import, but the history does not know the state before the import.
    tx.connection.execute(statements("history")["begin_later"], (tx.documents.now,))
    return added


def add_binned(tx: SqliteTransaction, former: FormerVersion, part_of: int | None) -> int:
    """Write the record of a document in the bin, with an id as from `add_exact`; return the id."""
    assert former.binned  # noqa: S101 - the caller checks it
    skip_ids(tx, former.version.document.id - 1)
    [added] = next_ids(tx.connection.execute, statements("documents")["take_document_ids"], 1)
    binned, author = former.binned, former.binned.author
    row = (added, binned.number, part_of, raw(binned.deleted_at), author.by, author.client, author.why)
    tx.connection.execute("INSERT INTO bin VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", row)
    return added


def find_binned(tx: SqliteTransaction, former: FormerVersion) -> list[int]:
    """Return the documents in the bin with the same content, path, date added and date of deletion."""
    assert former.binned  # noqa: S101 - the caller checks it
    document = former.version.document
    cursor = tx.connection.execute(
        "SELECT bin.document_id FROM bin JOIN versions USING (document_id, number)"
        " WHERE deleted_at = ? AND content_hash = ? AND created_at = ? AND source_path IS ? ORDER BY bin.document_id",
        (
            raw(former.binned.deleted_at),
            document.content_hash,
            raw(document.created_at),
            document.source_path,
        ),
    )
    return [document_id for (document_id,) in cursor]


def add_version(
    tx: SqliteTransaction,
    document_id: int,
    former: FormerVersion,
    part_of: int | None,
    content_id: int | None,
    replaces: int | None,
) -> None:
    version, document = former.version, former.version.document
    fields = field_values(document) | field_values(version.author)
    fields |= {"id": document_id, "version": version.number, "until": version.until, "content_id": content_id}
    tx.transfer.insert(
        VERSIONS, fields | {"part_of": part_of, "replaces": replaces, "tags": sorted(document.tags), "operation": None}
    )


def set_replaced(tx: SqliteTransaction, document_id: int, replaces: int | None) -> None:
    """Record the document that a document replaces, if that document was added later."""
    tx.connection.execute(statements("transfer")["set_replaced"], (replaces, document_id))


def add_former_content(tx: SqliteTransaction, document_id: int, chunks: Sequence[NewChunk | Chunk]) -> int:
    """Write the content of an earlier version; return its id."""
    ids = tx.documents.new_chunk_ids(len(chunks))
    former_chunks = [
        Chunk(chunk_id, index, chunk.header, chunk.text, chunk.place)
        for index, (chunk_id, chunk) in enumerate(zip(ids, chunks, strict=True))
    ]
    row = document_id, compressed(former_chunks)
    content_id: int = tx.connection.execute(statements("history")["insert_content"], row).get
    return content_id


def skip_ids(tx: SqliteTransaction, last: int) -> None:
    """Give new documents only ids above `last`."""
    tx.connection.execute("UPDATE last_ids SET id = max(id, ?) WHERE name = 'documents'", (last,))
