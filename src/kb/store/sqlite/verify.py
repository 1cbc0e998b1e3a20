"""Checks of a database. They only read it, and an engine may be using it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from kb.api.errors import StoreError
from kb.index.vectors.quantize import Quantizer
from kb.store.analyzer import FtsTokenizer
from kb.store.sqlite.connection import load_vectors, unopened
from kb.store.sqlite.file_identity import refuse_blend
from kb.store.sqlite.foreign_objects import foreign_parts
from kb.store.sqlite.integrity_rules import AHEAD, RULES, add_functions, missing_parts
from kb.store.sqlite.schema import SCHEMA_VERSION, VectorSchema
from kb.store.sqlite.statements import statements
from kb.store.sqlite.vector_codes import CHECKSUM, read_codes, read_quantizer
from kb.store.sqlite.vector_reader import SqliteVectorReader

MISCUT = (
    "SELECT 1 FROM (SELECT 1 FROM chunks LEFT JOIN documents ON documents.id = document_id"
    " WHERE segmented IS NOT segmented(text) OR variants IS NOT varied(text, language)"
    " UNION ALL SELECT 1 FROM sections LEFT JOIN documents ON documents.id = document_id"
    " WHERE segmented IS NOT segmented(header) OR variants IS NOT varied(header, language))"
    " WHERE NOT EXISTS (SELECT 1 FROM reanalysis)"
)
PENDING = (
    "SELECT id FROM chunks WHERE document_id IN"
    " (SELECT document_id FROM jobs WHERE status IN ('queued', 'running') AND document_id IS NOT NULL)"
)
"""The chunks whose vectors a job will make."""

MASK = (1 << 64) - 1
# Vectors per read.
PART = 4096

# The tolerance for the length of a unit vector.
UNIT = 1e-3


class Remedy(Enum):
    """The remedy for the faults that a check finds."""

    ROWS = "stop the engine and run 'kb doctor --repair'"
    REBUILD = "stop the engine and run 'kb doctor --repair', which rebuilds the database from its text"
    FILES = "stop the engine and run 'kb doctor --repair', which removes leftovers and makes files private"
    CODES = "stop the engine and run 'kb doctor --repair'; the engine then computes them again"
    VECTORS = "stop the engine and run 'kb doctor --repair', which recomputes every vector"
    BACKUP = "restore a backup with 'kb backup restore'"
    OPERATOR = "kb cannot repair this; correct it on this machine"
    NOTICE = "only a notice"


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a database.

    Args:
        find: yields a description of each fault.
        remedy: the remedy for these faults.
    """

    name: str
    find: Callable[[], Iterator[str]]
    remedy: Remedy


class Verification:
    """The checks of a database, all at the same point in time.

    Raises:
        StoreError: the database is missing or damaged, or has another version.
    """

    def __init__(self, path: Path) -> None:
        refuse_blend(path)
        try:
            self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
            load_vectors(self._connection)
            add_functions(self._connection)
            self._connection.execute("BEGIN")
            version = self._connection.pragma("user_version")
        except (apsw.NotADBError, apsw.CorruptError) as error:
            raise StoreError(
                f"The database {path} is damaged ({error}). Restore a backup with 'kb backup restore'."
            ) from error
        except apsw.Error as error:
            raise unopened(path, error) from error
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"The database {path} has schema version {version}, but kb checks version {SCHEMA_VERSION}. If the"
                " database is older, start the engine once, which migrates it; otherwise use a newer version of kb."
            )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @property
    def checks(self) -> Sequence[Check]:
        steps = (
            ("database pages", self._pages, Remedy.REBUILD),
            ("schema", self._schema, Remedy.ROWS),
            ("tables", self._tables, Remedy.BACKUP),
            ("references", self._references, Remedy.BACKUP),
            ("consistency", partial(self._broken, repairable=True), Remedy.ROWS),
            ("documents and jobs", partial(self._broken, repairable=False), Remedy.BACKUP),
            ("keyword index", self._full_text, Remedy.REBUILD),
            ("vectors", self._vectors, Remedy.REBUILD),
            ("vector codes", self._codes, Remedy.CODES),
            ("changed vectors", self._changed, Remedy.VECTORS),
            ("note texts", self._notes, Remedy.BACKUP),
            ("dates", self._clock, Remedy.NOTICE),
        )
        return [Check(name, partial(_readable, find), remedy) for name, find, remedy in steps]

    def sample(self, size: int) -> list[tuple[str, str, bytes]]:
        """Return the headers, texts and vectors of some chunks; nothing if they cannot be read. Skips empty vectors."""
        try:
            table = VectorSchema.of(self._connection)
            rows: list[Any] = self._connection.execute(
                f"SELECT header, text, {table.embedding} FROM chunks_vec JOIN source_texts ON id = {table.key}"
                f" WHERE {table.key} IN"
                f" (SELECT id FROM chunks WHERE id NOT IN ({PENDING}) ORDER BY random() LIMIT ?)",
                (size,),
            ).fetchall()
        except apsw.Error:
            return []
        return [row for row in rows if any(row[2])]

    def file_hashes(self) -> Iterator[tuple[int, str]]:
        """Yield the ids of documents, also of earlier versions, that came from files, with the files' hashes."""
        for table, key in (("documents", "id"), ("versions", "document_id")):
            yield from self._rows(f"SELECT {key}, content_hash FROM {table} WHERE doc_type <> 'note'")

    def staged(self) -> Iterator[tuple[int, str]]:
        """Yield the ids of the jobs that have a staged file, and the file's name."""
        yield from self._rows("SELECT id, staged FROM jobs WHERE staged IS NOT NULL")

    def queue_age(self) -> float:
        """Return the seconds that the oldest queued job has waited."""
        with suppress(apsw.Error):
            return self._connection.execute(statements("jobs")["queue_age"]).get or 0.0
        return 0.0

    def _rows(self, sql: str) -> Iterable[Any]:
        return self._connection.execute(sql)

    def pending_hashes(self) -> set[str]:
        """Return the content hashes of the jobs that are queued or running."""
        return {
            digest for (digest,) in self._rows("SELECT content_hash FROM jobs WHERE status IN ('queued', 'running')")
        }

    def _schema(self) -> Iterator[str]:
        yield from (f"the {kind} {name} is missing" for kind, name, _ in missing_parts(self._connection))
        for kind, name in foreign_parts(self._connection):
            if kind != "table":
                yield f"the {kind} {name} was not created by kb"

    def _tables(self) -> Iterator[str]:
        for kind, name in foreign_parts(self._connection):
            if kind == "table":
                yield f"another program changed or added the {kind} {name}"

    def _broken(self, *, repairable: bool) -> Iterator[str]:
        for rule in RULES:
            if bool(rule.repair) == repairable and (rows := [value for (value,) in self._rows(rule.select)]):
                yield f"{len(rows)} {rule.found}, such as {rows[0]}"

    def _clock(self) -> Iterator[str]:
        for document_id, at in self._rows(f"{AHEAD} LIMIT 1"):
            yield f"document {document_id} has the date {at} UTC, which is in the future: the clock was or is wrong"

    def _pages(self) -> Iterator[str]:
        yield from (text for (text,) in self._rows("PRAGMA integrity_check") if text != "ok")

    def _references(self) -> Iterator[str]:
        for table, row, parent, _ in self._rows("PRAGMA foreign_key_check"):
            yield f"row {row} of {table} refers to a missing row of {parent}"

    def _full_text(self) -> Iterator[str]:
        self._connection.execute(
            "CREATE VIRTUAL TABLE temp.instances USING fts5vocab('main', 'chunks_fts', 'instance')"
        )
        yield from full_text_faults(self._connection)

    def _vectors(self) -> Iterator[str]:
        table = VectorSchema.of(self._connection)
        vectors, chunks = _ids(self._connection, "chunks_vec", table.key), _ids(self._connection, "chunks", "id")
        yield from _compared("vector", "vector table", vectors, chunks)
        pending = {chunk_id for (chunk_id,) in self._rows(PENDING)}
        empty = set[int]()
        for chunk_id, raw in self._rows(table.sql("select_all")):
            if is_unit(raw) or chunk_id in pending:
                continue
            if any(raw):
                yield f"the vector of passage {chunk_id} does not have length 1"
            else:
                empty.add(chunk_id)
        if empty:
            [(document_id,)] = self._rows(f"SELECT document_id FROM chunks WHERE id = {min(empty)}")
            yield f"{len(empty)} passages have an empty vector, such as a passage of document {document_id}"

    def _codes(self) -> Iterator[str]:
        """Yield faults of damaged codes; missing codes are not faults, as the engine makes them in the background."""
        mean: bytes | None = self._connection.execute(statements("vectors")["select_mean"]).get
        if mean is None:
            return
        quantizer = self._quantizer()
        if quantizer is None:
            yield "the centre of the vector codes is damaged"
            return
        coded = _ids(self._connection, "vector_codes", "chunk_id")
        rows = read_codes(self._connection, quantizer)
        if damaged := len(coded & _ids(self._connection, "chunks", "id")) - int(rows.alive.sum()):
            yield f"{damaged} vector codes are damaged"

    def _changed(self) -> Iterator[str]:
        """Yield the vectors of the right length that differ from their intact code."""
        quantizer = self._quantizer()
        if quantizer is None:
            return
        rows = read_codes(self._connection, quantizer)
        ids, codes = rows.ids[rows.alive], rows.data[rows.alive]
        reader = SqliteVectorReader(self._connection, VectorSchema.of(self._connection), quantizer.mean.size)
        for start in range(0, ids.size, PART):
            part, vectors = ids[start : start + PART], reader.vectors(ids[start : start + PART])
            differ = ~quantizer.agree(codes[start : start + PART], vectors)
            for chunk_id in part[differ & (np.abs(np.linalg.norm(vectors, axis=1) - 1) <= UNIT)]:
                yield f"the vector of passage {chunk_id} differs from its code"

    def _quantizer(self) -> Quantizer | None:
        mean: bytes = self._connection.execute(statements("vectors")["select_mean"]).get or b""
        return read_quantizer(self._connection, (len(mean) - CHECKSUM) // 4)

    def _notes(self) -> Iterator[str]:
        notes = "SELECT id, content_hash FROM documents WHERE doc_type = 'note'"
        for document_id, content_hash in self._connection.execute(notes).fetchall():
            texts = self._connection.execute(
                "SELECT text FROM chunks WHERE document_id = ? ORDER BY chunk_index", (document_id,)
            )
            if sha256("".join(chain.from_iterable(texts)).encode()).hexdigest() != content_hash:
                yield f"the text of note {document_id} does not match its content_hash"


def full_text_faults(connection: apsw.Connection) -> Iterator[str]:
    """Yield each difference between the full text and the texts.

    Args:
        connection: a connection with `temp.instances` (the words and their positions) and the functions of the rules.
    """
    indexed, chunks = _ids(connection, "chunks_fts_docsize", "id"), _ids(connection, "chunks", "id")
    yield from _compared("index entry", "keyword index", indexed, chunks)
    if cut := connection.execute(MISCUT).fetchall():
        yield f"{len(cut)} texts are indexed with the wrong words"
    fingerprint = _fingerprint(connection.execute("SELECT term, doc, col, offset FROM temp.instances"))
    if fingerprint != _fingerprint(_words(connection)):
        yield "the words in the index differ from the words of the texts"


def _words(connection: apsw.Connection) -> Iterator[tuple[str, int, str, int]]:
    """Yield the expected words of the index, with their chunk, column and position."""
    tokenizer = FtsTokenizer(connection)
    for row_id, *texts in connection.execute("SELECT rowid, text, header FROM chunks_fts"):
        for column, text in zip(("text", "header"), texts, strict=True):
            yield from ((term, row_id, column, offset) for offset, term in enumerate(tokenizer.tokens(text)))


def _ids(connection: apsw.Connection, table: str, column: str) -> set[int]:
    return {id_ for (id_,) in connection.execute(f"SELECT {column} FROM {table}")}


def is_unit(raw: bytes) -> bool:
    """Return whether a stored vector has the length 1."""
    with np.errstate(invalid="ignore"):  # damaged bytes may be NaN
        return bool(abs(np.linalg.norm(np.frombuffer(raw, np.float32).astype(np.float64)) - 1) <= UNIT)


def _readable(check: Callable[[], Iterator[str]]) -> Iterator[str]:
    try:
        yield from check()
    except (apsw.Error, ValueError) as error:
        yield f"kb cannot read this part of the database: {error}"


def _compared(what: str, where: str, actual: set[int], chunks: set[int]) -> Iterator[str]:
    if missing := chunks - actual:
        yield f"{len(missing)} passages have no {what}, such as passage {min(missing)}"
    if stray := actual - chunks:
        yield f"{len(stray)} passages in the {where} do not exist, such as passage {min(stray)}"


def _fingerprint(rows: Iterable[tuple[str, int, str, int]]) -> int:
    """Return a checksum of the rows that does not depend on their order."""
    return sum(map(hash, rows)) & MASK
