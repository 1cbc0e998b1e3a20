"""A database of schema version 3, as kb left it before version 4."""

from __future__ import annotations

from pathlib import Path

from tests.support.store_v2 import connect, vector

SQL = Path(__file__).with_suffix(".sql")
TITLES_GIVEN = {1: False, 2: True, 3: False, 5: False, 6: False, 7: True, 8: False}
FILENAMES = {1: None, 2: None, 3: "second.txt", 5: "1.eml", 6: "a.txt", 7: "r.pdf", 8: None}
DEPTHS = {9: 2, 10: 0, 11: 0}


JOINED = """
CREATE TEMP VIEW chunks AS
SELECT stored.*, COALESCE(header, '') AS header, COALESCE(heading, '[]') AS heading
FROM main.chunks AS stored LEFT JOIN sections ON sections.id = section_id
"""


def build(path, *changes):
    """A database of version 3, with what was found in others of that version."""
    connection = connect(path)
    connection.execute(SQL.read_text())
    for (chunk_id,) in connection.execute("SELECT id FROM chunks").fetchall():
        connection.execute("INSERT INTO chunks_vec VALUES (?, ?)", (chunk_id, vector(chunk_id).tobytes()))
    for sql in changes:
        connection.execute(sql)
    connection.close()


def answers(connection):
    """All that stands in the tables of version 3, by its columns."""
    if connection.pragma("user_version") > 4:
        connection.execute(JOINED)
    tables = ("documents", "tags", "document_tags", "chunks", "jobs", "last_ids", "generation", "vector_space")
    return {table: _rows(connection, table) for table in tables}


def _rows(connection, table):
    cursor = connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2")
    names = [name for name, _ in cursor.get_description()]
    return [dict(zip(names, row, strict=True)) for row in cursor]
