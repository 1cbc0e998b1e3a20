"""The lines of an export, one per document, earlier version, job and so on."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kb.access.keyring import FILE, KeyFile
from kb.api.errors import StoreError
from kb.settings import Settings
from kb.store.protocol import Keys
from kb.store.rows import Chunk
from kb.store.sql.export_tables import (
    AUDIT,
    BIN,
    DOCUMENTS,
    FOLDERS,
    JOBS,
    LEFT_OUT,
    OPERATIONS,
    REMEDY,
    VERSIONS,
    Line,
)

if TYPE_CHECKING:
    from kb.store.backend import MovedTransaction

PLAIN: Final = {f"{table.name}.jsonl": table for table in (OPERATIONS, FOLDERS, LEFT_OUT, AUDIT, JOBS)}
"""The files whose lines are rows of one table."""

KEYS: Final = "keys.jsonl"
VECTORS: Final = "vectors"
"""The vector of each chunk, in the order of the documents' lines: 32-bit floats, little-endian."""

UNREADABLE: Final = (StoreError, ValueError, TypeError, LookupError, zlib.error)
"""The errors that a damaged row raises when it is read."""


def exported_lines(tx: MovedTransaction) -> dict[str, Iterator[Line]]:
    """Return the lines of each file of an export, except keys."""
    rows = {name: tx.transfer.rows(table) for name, table in PLAIN.items()}
    return {"documents.jsonl": _document_lines(tx), "versions.jsonl": _version_lines(tx)} | rows


def keys_of(settings: Settings, tx: MovedTransaction) -> Keys:
    """Return the keys with rights of a database."""
    return tx.keys or KeyFile(settings.data_dir / FILE)


def key_lines(keys: Keys) -> Iterator[Line]:
    """Yield the keys in the order of their names."""
    for key in sorted(keys.all(), key=lambda key: key.name):
        yield asdict(key) | {"tags": list(key.tags)}


def exported_vectors(tx: MovedTransaction) -> Iterator[bytes]:
    """Yield the vectors of each document.

    Raises:
        StoreError: a vector is missing or damaged.
    """
    for document in tx.transfer.rows(DOCUMENTS):
        vectors = tx.transfer.vectors([place.id for place in tx.documents.chunk_places(document["id"])])
        with np.errstate(over="ignore", invalid="ignore"):
            if not (np.isfinite(vectors).all() and vectors.any(axis=1).all()):
                raise StoreError(
                    f"Document {document['id']}: a vector is missing or damaged. If jobs are queued, wait until they"
                    " are done. Otherwise run 'kb reindex', which recomputes it, or export without --vectors."
                )
        yield vectors.astype("<f4").tobytes()


def _document_lines(tx: MovedTransaction) -> Iterator[Line]:
    for line in tx.transfer.rows(DOCUMENTS):
        with _named(line["id"]):
            document, chunks = tx.documents.get(line["id"]), tx.documents.chunks(line["id"])
            if document is None or [chunk.index for chunk in chunks] != list(range(len(chunks))):
                raise ValueError("some of its chunks are missing")
            line |= {"tags": list(document.tags), "chunks": list(map(_chunk, chunks))}
            if ids := tx.documents.links.message_ids(document.content_hash):
                line["message_ids"] = ids
        yield line


def _version_lines(tx: MovedTransaction) -> Iterator[Line]:
    """Yield earlier versions; the last one of a document in the bin includes its deletion."""
    binned = {(line.pop("id"), line.pop("version")): line for line in tx.transfer.rows(BIN)}
    holders: dict[int, int] = {}
    document_id = 0
    for line in tx.transfer.rows(VERSIONS):
        if line["id"] != document_id:
            document_id, holders = line["id"], {}
        content_id, number = line.pop("content_id"), line["version"]
        holder = None if content_id is None else holders.setdefault(content_id, number)
        is_first = holder == number
        with _named(document_id):
            chunks = list(map(_chunk, tx.documents.former_chunks(content_id))) if is_first else None
        line |= {"chunks": chunks, "chunks_of": None if is_first else holder}
        if deletion := binned.get((document_id, number)):
            line["deleted"] = deletion
        yield line


@contextmanager
def _named(document_id: int) -> Iterator[None]:
    """Name the document in errors.

    Raises:
        StoreError: the document cannot be read.
    """
    try:
        yield
    except UNREADABLE as error:
        raise StoreError(f"kb cannot read document {document_id}: {error}. {REMEDY}") from error


def _chunk(chunk: Chunk) -> dict[str, Any]:
    return {
        "id": chunk.id,
        "text": chunk.text,
        "header": chunk.header,
        "heading": list(chunk.place.heading),
        "page": chunk.place.page,
        "lines": [chunk.place.line_start, chunk.place.line_end],
        "characters": [chunk.place.char_start, chunk.place.char_end],
    }
