"""Databases as kb 2 may have left them, and questions as its code asked them."""

from __future__ import annotations

import re

import apsw
import numpy as np
import sqlite_vec

DIMENSIONS = 384

PLAIN = """
CREATE TABLE documents (
  id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT, source_path TEXT, doc_type TEXT NOT NULL, content_hash TEXT,
  created_at TEXT NOT NULL DEFAULT (datetime('now'))
);
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY AUTOINCREMENT, document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  chunk_index INTEGER NOT NULL, text TEXT NOT NULL
);
CREATE VIRTUAL TABLE chunks_fts USING fts5 (text, content = 'chunks', content_rowid = 'id');
CREATE TRIGGER chunks_ai AFTER INSERT ON chunks BEGIN
  INSERT INTO chunks_fts (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER chunks_ad AFTER DELETE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER chunks_au AFTER UPDATE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, text) VALUES ('delete', old.id, old.text);
  INSERT INTO chunks_fts (rowid, text) VALUES (new.id, new.text);
END;
CREATE VIRTUAL TABLE chunks_vec USING vec0 (chunk_id INTEGER PRIMARY KEY, embedding float[384]);
CREATE TABLE tags (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE);
CREATE TABLE document_tags (
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  tag_id INTEGER NOT NULL REFERENCES tags (id) ON DELETE CASCADE, PRIMARY KEY (document_id, tag_id)
);
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, status TEXT NOT NULL DEFAULT 'pending', text TEXT, filename TEXT,
  tags TEXT, error TEXT, document_id INTEGER, created_at TEXT NOT NULL DEFAULT (datetime('now'))
);
"""

STRICT = """
CREATE TABLE documents (
  id INTEGER PRIMARY KEY, title TEXT NOT NULL, source_path TEXT NOT NULL, doc_type TEXT NOT NULL
  CHECK (doc_type IN ('note', 'pdf')), hash TEXT NOT NULL UNIQUE, file_size INTEGER NOT NULL, created_at REAL NOT NULL
);
CREATE INDEX documents_doc_type ON documents (doc_type, id);
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY, document_id INTEGER NOT NULL, position INTEGER NOT NULL, content TEXT NOT NULL,
  token_count INTEGER NOT NULL, UNIQUE (document_id, position),
  FOREIGN KEY (document_id) REFERENCES documents (id) ON DELETE CASCADE
);
CREATE INDEX idx_chunks_document ON chunks (document_id);
CREATE VIRTUAL TABLE chunks_fts USING fts5 (content);
CREATE TRIGGER chunks_ai AFTER INSERT ON chunks BEGIN
  INSERT INTO chunks_fts (rowid, content) VALUES (new.id, new.content);
END;
CREATE TRIGGER chunks_ad AFTER DELETE ON chunks BEGIN DELETE FROM chunks_fts WHERE rowid = old.id; END;
CREATE TRIGGER chunks_au AFTER UPDATE OF content ON chunks BEGIN
  UPDATE chunks_fts SET content = new.content WHERE rowid = old.id;
END;
CREATE VIRTUAL TABLE chunks_vec USING vec0 (embedding float[384] distance_metric=cosine);
CREATE TABLE tags (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, color TEXT NOT NULL DEFAULT 'grey');
CREATE TABLE document_tags (document_id INTEGER REFERENCES documents (id), tag_id INTEGER REFERENCES tags (id));
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY, job_type TEXT NOT NULL, payload TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'completed', 'failed')),
  error_message TEXT, document_id INTEGER REFERENCES documents (id), created_at REAL NOT NULL, completed_at REAL
);
"""

BARE = """
CREATE TABLE documents (id INTEGER PRIMARY KEY, title TEXT, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE chunks (id INTEGER PRIMARY KEY, document_id INTEGER, text TEXT);
CREATE VIRTUAL TABLE chunks_fts USING fts5 (text, content = '', contentless_delete = 1);
CREATE TRIGGER chunks_ai AFTER INSERT ON chunks BEGIN
  INSERT INTO chunks_fts (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER chunks_ad AFTER DELETE ON chunks BEGIN DELETE FROM chunks_fts WHERE rowid = old.id; END;
CREATE VIRTUAL TABLE chunks_vec USING vec0 (id INTEGER PRIMARY KEY, embedding float[384]);
CREATE TABLE tags (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE document_tags (document_id INTEGER, tag_id INTEGER);
CREATE TABLE jobs (id INTEGER PRIMARY KEY, status TEXT, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
"""

SCHEMAS = {"plain": PLAIN, "strict": STRICT, "bare": BARE}

DOCUMENTS = {
    3: (
        "The lighthouse",
        ["The keeper was walking to the lighthouse.\n\n", "He lit the lamp,\nand slept."],
        ["sea", "a"],
    ),
    4: ("Ledgers", ["A ledger holds numbers; one page holds the sums."], ["money"]),
    9: (
        "Japanese 日本語",
        ["灯台の話 \x00 and an elephant 🐘", "Second part", "Third part about lighthouses"],
        ["sea"],
    ),
}


def vector(chunk_id):
    numbers = np.random.default_rng(chunk_id).normal(size=DIMENSIONS).astype(np.float32)
    return numbers / np.linalg.norm(numbers)


def connect(path):
    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)  # noqa: FBT003 - it has no keyword
    connection.load_extension(sqlite_vec.loadable_path())
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def names(connection, table):
    return [name for (name,) in connection.execute(f"SELECT name FROM pragma_table_xinfo('{table}')")]


def key(connection):
    return re.search(r"(\w+) INTEGER PRIMARY|$", definition(connection, "chunks_vec"))[1] or "rowid"


def definition(connection, table):
    return connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get


def build(path, schema=PLAIN, *, version=2, filled=True):
    """A database of version 2; answers the ids of its chunks by document."""
    connection = connect(path)
    connection.execute(schema)
    connection.pragma("user_version", version)
    chunks = fill(connection) if filled else {}
    connection.close()
    return chunks


def insert(connection, table, **values):
    """As much of a row as the table has columns for."""
    known = {name: value for name, value in values.items() if name in names(connection, table)}
    places = ", ".join("?" * len(known))
    connection.execute(f"INSERT INTO {table} ({', '.join(known)}) VALUES ({places})", tuple(known.values()))


def fill(connection):
    chunks, next_id = {}, 11
    when = 1700000000.25 if "created_at REAL" in definition(connection, "documents") else "2023-11-14 22:13:20"
    for tag_id, name in enumerate(("sea", "a", "money"), 5):
        insert(connection, "tags", id=tag_id, name=name)
    for document_id, (title, texts, tags) in DOCUMENTS.items():
        path, digest = f"/old/{document_id}", f"hash{document_id}"
        kind = "note" if document_id != 4 else "pdf"
        insert(connection, "documents", id=document_id, title=title, source_path=path, doc_type=kind,
               content_hash=digest, hash=digest, file_size=1, created_at=when)  # fmt: skip
        for index, text in enumerate(texts):
            write_chunk(connection, next_id, document_id, index, text)
            chunks.setdefault(document_id, []).append(next_id)
            next_id += 2
        for tag in tags:
            connection.execute("INSERT INTO document_tags SELECT ?, id FROM tags WHERE name = ?", (document_id, tag))
    fill_jobs(connection, when)
    return chunks


def write_chunk(connection, chunk_id, document_id, index, text):
    insert(connection, "chunks", id=chunk_id, document_id=document_id, chunk_index=index, position=index,
           text=text, content=text, token_count=len(text))  # fmt: skip
    sql = f"INSERT INTO chunks_vec ({key(connection)}, embedding) VALUES (?, ?)"
    connection.execute(sql, (chunk_id, vector(chunk_id).tobytes()))


def fill_jobs(connection, when):
    done = "completed" if "completed" in definition(connection, "jobs") else "done"
    insert(connection, "jobs", id=21, status=done, job_type="note", payload="{}", document_id=3, created_at=when)
    insert(connection, "jobs", id=22, status="pending", job_type="note", text="A waiting note", tags="sea, b",
           payload='{"text": "A waiting note", "tags": ["sea", "b"]}', created_at=when)  # fmt: skip
    insert(connection, "jobs", id=23, status="pending", job_type="file", filename="/uploads/a.pdf",
           payload='{"filename": "/uploads/a.pdf"}', created_at=when)  # fmt: skip
    insert(connection, "jobs", id=24, status="failed", job_type="file", error="it broke", error_message="it broke",
           payload="not JSON", created_at=when)  # fmt: skip


def text_column(connection):
    return "content" if "content" in names(connection, "chunks") else "text"


def words(connection, match):
    """Search as kb 2 did: return the text and the title of each matching chunk."""
    return connection.execute(
        f"SELECT c.id, d.id, d.title, c.{text_column(connection)} FROM chunks_fts f JOIN chunks c ON c.id = f.rowid"
        " JOIN documents d ON d.id = c.document_id WHERE chunks_fts MATCH ? ORDER BY bm25(chunks_fts), c.id",
        (match,),
    ).fetchall()


def nearest(connection, query, k=3):
    """Search as kb 2 did: return the chunks nearest to a vector."""
    sql = f"SELECT {key(connection)} FROM chunks_vec WHERE embedding MATCH ? AND k = ? ORDER BY distance"
    return [chunk_id for (chunk_id,) in connection.execute(sql, (query.tobytes(), k))]


def tagged(connection, tag):
    """As kb 2 listed."""
    sql = (
        "SELECT d.id FROM documents d JOIN document_tags dt ON dt.document_id = d.id"
        " JOIN tags t ON t.id = dt.tag_id WHERE t.name = ? ORDER BY d.id"
    )
    return [document_id for (document_id,) in connection.execute(sql, (tag,))]


def rows(connection, table):
    """Every row of a table, by column."""
    cursor = connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2")
    listed = cursor.fetchall()
    return [dict(zip(names(connection, table), row, strict=True)) for row in listed]
