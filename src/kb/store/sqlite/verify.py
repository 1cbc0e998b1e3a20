"""Whether a database is whole. It is only read; an engine may be using it."""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np
import sqlite_vec

from kb.api.errors import StoreError
from kb.store.sqlite.schema import SCHEMA_VERSION, VectorTable
from kb.store.sqlite.words import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

MASK = (1 << 64) - 1
UNIT = 1e-3
"""By how much a vector's length may differ from 1."""


class Verification:
    """One moment of a database, to be looked through.

    Raises:
        StoreError: there is no database, or it is of another version.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
            self._connection.enable_load_extension(True)  # noqa: FBT003 - it has no keyword
            self._connection.load_extension(sqlite_vec.loadable_path())
            self._connection.execute("BEGIN")
            version = self._connection.pragma("user_version")
        except apsw.Error as error:
            raise StoreError(f"The database {path} cannot be opened: {error}.") from error
        if version != SCHEMA_VERSION:
            raise StoreError(f"The database {path} has schema version {version}, and this looks at {SCHEMA_VERSION}.")

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()

    @property
    def checks(self) -> Mapping[str, Callable[[], Iterator[str]]]:
        """What there is to look at, by name; each yields what it finds wrong."""
        found = {
            "pages": self._pages,
            "references": self._references,
            "full text": self._full_text,
            "vectors": self._vectors,
            "copies of vectors": self._copies,
            "notes": self._notes,
        }
        return {name: partial(_readable, check) for name, check in found.items()}

    def file_hashes(self) -> Iterator[tuple[int, str]]:
        """Yield the documents that came from files, and the hashes of these."""
        yield from self._rows("SELECT id, content_hash FROM documents WHERE doc_type <> 'note'")

    def staged(self) -> Iterator[tuple[int, str]]:
        """Yield the jobs that wait with a file, and its name."""
        yield from self._rows("SELECT id, staged FROM jobs WHERE staged IS NOT NULL")

    def _rows(self, sql: str) -> Iterable[Any]:
        return self._connection.execute(sql)

    def _pages(self) -> Iterator[str]:
        yield from (text for (text,) in self._rows("PRAGMA integrity_check") if text != "ok")

    def _references(self) -> Iterator[str]:
        for table, row, parent, _ in self._rows("PRAGMA foreign_key_check"):
            yield f"row {row} of {table} refers to what is not in {parent}"

    def _full_text(self) -> Iterator[str]:
        yield from _compared("full text", self._ids("chunks_fts_docsize", "id"), self._ids("chunks", "id"))
        self._connection.execute(
            "CREATE VIRTUAL TABLE temp.instances USING fts5vocab('main', 'chunks_fts', 'instance')"
        )
        indexed = _fingerprint(self._rows("SELECT term, doc, col, offset FROM temp.instances"))
        if indexed != _fingerprint(self._words()):
            yield "the words in the index are not those of the texts"

    def _words(self) -> Iterator[tuple[str, int, str, int]]:
        """Yield each word as the index should have it."""
        tokenizer = Tokenizer(self._connection)
        for row_id, *texts in self._rows("SELECT rowid, text, header FROM chunks_fts"):
            for column, text in zip(("text", "header"), texts, strict=True):
                yield from ((term, row_id, column, offset) for offset, term in enumerate(tokenizer.tokens(text)))

    def _vectors(self) -> Iterator[str]:
        table = VectorTable.of(self._connection)
        yield from _compared("a vector", self._ids("chunks_vec", table.key), self._ids("chunks", "id"))
        for chunk_id, raw in self._rows(table.select):
            if not is_unit(raw):
                yield f"the vector of chunk {chunk_id} is not of length 1"

    def _copies(self) -> Iterator[str]:
        for chunk_id, raw, copy in self._rows(VectorTable.of(self._connection).with_copies):
            if copy is not None and copy[: len(raw)] != raw:
                yield f"the copy of the vector of chunk {chunk_id} is another"

    def _notes(self) -> Iterator[str]:
        notes = "SELECT id, content_hash FROM documents WHERE doc_type = 'note'"
        for document_id, content_hash in self._connection.execute(notes).fetchall():
            texts = self._connection.execute(
                "SELECT text FROM chunks WHERE document_id = ? ORDER BY chunk_index", (document_id,)
            )
            if sha256("".join(chain.from_iterable(texts)).encode()).hexdigest() != content_hash:
                yield f"the text of note {document_id} does not match its content_hash"

    def _ids(self, table: str, column: str) -> set[int]:
        return {id_ for (id_,) in self._rows(f"SELECT {column} FROM {table}")}


def is_unit(raw: bytes) -> bool:
    """Return whether a vector as it is stored has the length 1."""
    with np.errstate(invalid="ignore"):  # damaged bytes may be no number
        return bool(abs(np.linalg.norm(np.frombuffer(raw, np.float32).astype(np.float64)) - 1) <= UNIT)


def _readable(check: Callable[[], Iterator[str]]) -> Iterator[str]:
    try:
        yield from check()
    except (apsw.Error, ValueError) as error:
        yield f"cannot be read: {error}"


def _compared(what: str, found: set[int], chunks: set[int]) -> Iterator[str]:
    if missing := chunks - found:
        yield f"{len(missing)} chunks are without {what}, such as chunk {min(missing)}"
    if stray := found - chunks:
        yield f"{what} is there for {len(stray)} chunks that are not, such as chunk {min(stray)}"


def _fingerprint(rows: Iterable[tuple[str, int, str, int]]) -> int:
    """Return a number that is the same for the same rows in any order."""
    return sum(map(hash, rows)) & MASK
