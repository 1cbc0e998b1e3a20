"""Write the passages of `bench.corpus` into PostgreSQL with COPY, then create the indexes.

A store writes at most a few hundred passages per second, which is too slow for a million. The tables have the same
rows as after the store's own writes.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import closing
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import apsw
import numpy as np

from bench.corpus import CHUNKS, drawn, tags_of, texts_of
from kb.store.analyzer import FtsTokenizer
from kb.store.default_space import DEFAULT_SPACE
from kb.store.postgres.full_text import index_term
from kb.store.postgres.statements import statements
from kb.store.postgres.store import PostgresStore, connect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from bench.corpus import Drawn, Sentences
    from kb.store.postgres.connection import Connection

BATCH: Final = 2000
"""How many documents are copied at once."""

HEAD: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
END: Final = b"\xff\xff"
INT4_OID: Final = 23
LATER: Final = (
    "ALTER TABLE postings DROP CONSTRAINT postings_pkey",
    "DROP INDEX postings_document",
    "DROP INDEX vectors_a_nearest",
    "ALTER TABLE vectors_a DROP CONSTRAINT {foreign}",
)
INDEXES: Final = (
    "ALTER TABLE postings ADD PRIMARY KEY (term_id, chunk_id, document_id) INCLUDE (count, length)",
    "CREATE INDEX postings_document ON postings (document_id)",
    "ALTER TABLE vectors_a ADD FOREIGN KEY (chunk_id, document_id) REFERENCES chunks ON DELETE CASCADE",
)
FOREIGN: Final = "SELECT conname FROM pg_constraint WHERE conrelid = 'vectors_a'::regclass AND contype = 'f'"


class Words:
    """The terms of sentences, numbered."""

    def __init__(self, texts: Iterable[str]) -> None:
        tokenizer = FtsTokenizer(apsw.Connection(":memory:"))
        numbers: defaultdict[str, int] = defaultdict(lambda: len(numbers) + 1)
        self._of = [
            np.array([numbers[index_term(each)] for each in tokenizer.indexed(text)], np.int64) for text in texts
        ]
        self.terms = list(numbers)
        self.chunks = np.zeros(len(numbers) + 1, np.int64)
        self.words = 0

    def of(self, sentences: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the terms of a passage, in their order, and count them."""
        terms = np.concatenate([self._of[place] for place in sentences])
        self.chunks[np.unique(terms)] += 1
        self.words += terms.size
        return terms


def fill(url: str, sentences: Sentences, chunks: int) -> None:
    """Make a database of so many passages."""
    PostgresStore(url, DEFAULT_SPACE).close()
    words = Words(sentences.texts)
    with closing(connect(url)) as connection:
        [(foreign,)] = connection.execute(FOREIGN).fetchall()
        for sql in LATER:
            connection.execute(sql.format(foreign=foreign))
        documents = enumerate(drawn(sentences, chunks // CHUNKS), start=1)
        while batch := list(islice(documents, BATCH)):
            with connection.transaction():
                _copy(connection, sentences, words, batch)
        _finish(connection, words, chunks)


def _finish(connection: Connection, words: Words, chunks: int) -> None:
    rows = ((number, term, int(words.chunks[number])) for number, term in enumerate(words.terms, start=1))
    _copy_rows(connection, "terms (id, term, chunks)", (row for row in rows if row[2]))
    connection.execute("UPDATE statistics SET chunks = %s, words = %s", (chunks, words.words))
    connection.execute("SELECT setval(pg_get_serial_sequence('terms', 'id'), max(id)) FROM terms")
    for table in ("document", "chunk"):
        connection.execute(f"SELECT setval('{table}_ids', max(id)) FROM {table}s")
    for sql in INDEXES:
        connection.execute(sql)
    nearest = statements("vectors")["create_index"]
    connection.execute(nearest.format(vectors="vectors_a", dimensions=DEFAULT_SPACE.dimensions))
    connection.execute("VACUUM ANALYZE")


def _copy(connection: Connection, sentences: Sentences, words: Words, batch: Sequence[tuple[int, Drawn]]) -> None:
    texts = {number: texts_of(sentences, document) for number, document in batch}
    rows = (
        (number, texts[number][0][:60], f"/{number - 1}", "note", f"{number - 1}", "{}", False) for number, _ in batch
    )
    columns = "id, title, source_path, doc_type, content_hash, own_tags, title_given, created_at"
    moment = connection.execute("SELECT now_ms()").fetchone()[0]  # type: ignore[index]
    _copy_rows(connection, f"documents ({columns})", ((*row, moment) for row in rows))
    tags = ((number, tag) for number, _ in batch for tag in tags_of(number - 1))
    _copy_rows(connection, "document_tags (document_id, tag)", tags)
    terms = [words.of(row) for _, document in batch for row in document.sentences]
    documents = np.repeat([number for number, _ in batch], CHUNKS)
    ids = (documents - 1) * CHUNKS + np.tile(np.arange(CHUNKS), len(batch)) + 1
    columns = "id, document_id, chunk_index, text, line_start, line_end, char_start, char_end, length"
    places = zip(ids.tolist(), documents.tolist(), chain.from_iterable(texts.values()), terms, strict=True)
    lines = ((id_, of, (id_ - 1) % CHUNKS, text, 1, 1, 0, len(text), own.size) for id_, of, text, own in places)
    _copy_rows(connection, f"chunks ({columns})", lines)
    vectors = np.concatenate([document.vectors for _, document in batch])
    _copy_bytes(connection, "vectors_a (chunk_id, document_id, embedding)", [_vectors(ids, documents, vectors)])
    columns = "chunk_id, document_id, term_id, count, length, places"
    _copy_bytes(connection, f"postings ({columns})", _postings(ids, documents, terms))


def _copy_rows(connection: Connection, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def _copy_bytes(connection: Connection, table: str, blocks: Iterable[NDArray[Any]]) -> None:
    with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT binary)") as copy:
        copy.write(HEAD)
        for block in blocks:
            copy.write(block.tobytes())
        copy.write(END)


def _vectors(ids: NDArray[np.int64], documents: NDArray[np.int64], vectors: NDArray[np.float32]) -> NDArray[Any]:
    dimensions = vectors.shape[1]
    rows = np.zeros(
        len(vectors),
        [
            *(
                ("columns", ">i2"),
                ("chunk size", ">i4"),
                ("chunk", ">i8"),
                ("document size", ">i4"),
                ("document", ">i8"),
            ),
            *(("size", ">i4"), ("dimensions", ">i2"), ("unused", ">i2"), ("vector", ">f4", dimensions)),
        ],
    )
    rows["columns"], rows["chunk size"], rows["document size"] = 3, 8, 8
    rows["chunk"], rows["document"], rows["vector"] = ids, documents, vectors
    rows["size"], rows["dimensions"] = 4 + 4 * dimensions, dimensions
    return rows


def _postings(
    ids: NDArray[np.int64], documents: NDArray[np.int64], terms: Sequence[NDArray[np.int64]]
) -> Iterator[NDArray[Any]]:
    """Yield the postings of passages, grouped by the number of occurrences of their terms."""
    lengths = np.array([each.size for each in terms])
    row, term = np.repeat(np.arange(len(terms)), lengths), np.concatenate(terms)
    place = 2 * (np.arange(term.size) - np.repeat(np.cumsum(lengths) - lengths, lengths))
    order = np.lexsort((place, term, row))
    row, term, place = row[order], term[order], place[order]
    first = np.flatnonzero(np.r_[True, (row[1:] != row[:-1]) | (term[1:] != term[:-1])])
    counts = np.diff(np.r_[first, term.size])
    for count in np.unique(counts).tolist():
        at = first[counts == count]
        yield _postings_of(
            ids[row[at]], documents[row[at]], term[at], lengths[row[at]], place[at[:, None] + np.arange(count)]
        )


def _postings_of(
    ids: NDArray[np.int64],
    documents: NDArray[np.int64],
    terms: NDArray[np.int64],
    lengths: NDArray[np.int64],
    places: NDArray[np.int64],
) -> NDArray[Any]:
    count = places.shape[1]
    rows = np.zeros(
        len(ids),
        [
            *(
                ("columns", ">i2"),
                ("chunk size", ">i4"),
                ("chunk", ">i8"),
                ("document size", ">i4"),
                ("document", ">i8"),
            ),
            *(("term size", ">i4"), ("term", ">i8"), ("count size", ">i4"), ("count", ">i4")),
            *(("length size", ">i4"), ("length", ">i4"), ("size", ">i4"), ("array", ">i4", 5)),
            ("places", [("size", ">i4"), ("place", ">i4")], count),
        ],
    )
    rows["columns"], rows["count"], rows["size"] = 6, count, 20 + 8 * count
    for name, size in (("chunk", 8), ("document", 8), ("term", 8), ("count", 4), ("length", 4)):
        rows[f"{name} size"] = size
    rows["chunk"], rows["document"], rows["term"], rows["length"] = ids, documents, terms, lengths
    rows["array"] = 1, 0, INT4_OID, count, 1
    rows["places"]["size"], rows["places"]["place"] = 4, places
    return rows
