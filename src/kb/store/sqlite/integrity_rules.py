"""Rules for the rows of a database that SQLite does not enforce, and the repairs of rows that break them."""

import zlib
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import apsw

from kb.index.words.segmentation import segmented, varied
from kb.store.chunk_compression import decompressed
from kb.store.sqlite.connection import connect, load_vectors
from kb.store.sqlite.foreign_objects import foreign_parts
from kb.store.sqlite.schema import create
from kb.store.sqlite.vector_codes import CHECKSUM, drop_codes
from kb.store.sqlite.vector_space import HISTORY_SIZE


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for rows.

    Args:
        found: a description of rows that break the rule, for messages.
        select: the query that yields one value for each of these rows.
        repair: the statement that repairs them; None if only a backup can.
    """

    found: str
    select: str
    repair: str | None = None


def _dangling(table: str, column: str, parent: str) -> str:
    return f"{table} WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT id FROM {parent})"


SHORT_SECOND: Final = f"second_vectors WHERE length(vector) <> 4 * (SELECT dimensions FROM second_space) + {CHECKSUM}"

NO_DIGEST: Final = "length(content_hash) <> 64 OR content_hash GLOB '*[^0-9a-f]*'"

GIVEN_IDS: Final = (
    "SELECT 'documents' AS name, max(id) AS last FROM (SELECT id FROM documents"
    " UNION ALL SELECT document_id FROM versions UNION ALL SELECT document_id FROM bin)"
    " UNION ALL SELECT 'chunks', max(id) FROM (SELECT id FROM chunks"
    " UNION ALL SELECT last_chunk_id(chunks) FROM former_contents)"
    " UNION ALL SELECT 'jobs', max(id) FROM jobs"
)
"""The highest known ids, including ids of deleted rows."""

RULES: Final = (
    Rule(
        "tags of missing documents",
        f"SELECT document_id FROM {_dangling('document_tags', 'document_id', 'documents')}",
        f"DELETE FROM {_dangling('document_tags', 'document_id', 'documents')}",
    ),
    Rule(
        "documents with a tag without a name",
        f"SELECT document_id FROM {_dangling('document_tags', 'tag_id', 'tags')}",
        f"DELETE FROM {_dangling('document_tags', 'tag_id', 'tags')}",
    ),
    Rule(
        "tags without documents",
        "SELECT name FROM tags WHERE id NOT IN (SELECT tag_id FROM document_tags)",
        "DELETE FROM tags WHERE id NOT IN (SELECT tag_id FROM document_tags)",
    ),
    Rule(
        "sections of missing documents",
        f"SELECT id FROM {_dangling('sections', 'document_id', 'documents')}"
        " AND id NOT IN (SELECT section_id FROM chunks WHERE section_id IS NOT NULL)",
        f"DELETE FROM {_dangling('sections', 'document_id', 'documents')}"
        " AND id NOT IN (SELECT section_id FROM chunks WHERE section_id IS NOT NULL)",
    ),
    *(
        Rule(
            f"rows of {table} for missing passages",
            f"SELECT chunk_id FROM {_dangling(table, 'chunk_id', 'chunks')}",
            f"DELETE FROM {_dangling(table, 'chunk_id', 'chunks')}",
        )
        for table in ("vector_codes", "second_vectors", "second_codes")
    ),
    Rule(
        "second vectors without a recorded model",
        "SELECT chunk_id FROM second_vectors WHERE NOT EXISTS (SELECT 1 FROM second_space)",
        "DELETE FROM second_vectors; DELETE FROM second_codes; DELETE FROM second_mean",
    ),
    Rule(
        "second vectors of the wrong length",
        f"SELECT chunk_id FROM {SHORT_SECOND}",
        f"DELETE FROM {SHORT_SECOND}",
    ),
    Rule("passages whose section is missing", f"SELECT id FROM {_dangling('chunks', 'section_id', 'sections')}"),
    Rule(
        "documents with missing passages",
        "SELECT document_id FROM chunks GROUP BY document_id"
        " HAVING min(chunk_index) <> 0 OR max(chunk_index) <> count(*) - 1",
    ),
    Rule(
        "passages that end before they begin",
        "SELECT id FROM chunks WHERE char_end < char_start OR line_end < line_start",
    ),
    Rule(
        "documents from a message or archive that is missing",
        f"SELECT id FROM {_dangling('documents', 'part_of', 'documents')}",
        "UPDATE documents SET part_of = NULL WHERE part_of IS NOT NULL AND part_of NOT IN (SELECT id FROM documents)",
    ),
    Rule(
        "documents with unreadable tags of their own",
        "SELECT id FROM documents WHERE NOT json_valid(own_tags)",
        "UPDATE documents SET own_tags = '[]' WHERE NOT json_valid(own_tags)",
    ),
    *(
        Rule(
            f"{rows} with unreadable counts of skipped content",
            f"SELECT id FROM {table} WHERE NOT json_valid(omitted)",
            f"UPDATE {table} SET omitted = '{{}}' WHERE NOT json_valid(omitted)",
        )
        for rows, table in (("documents", "documents"), ("earlier versions", "versions"), ("jobs", "jobs"))
    ),
    Rule("documents whose content_hash is not a SHA-256", f"SELECT id FROM documents WHERE {NO_DIGEST}"),
    Rule("earlier versions whose content_hash is not a SHA-256", f"SELECT id FROM versions WHERE {NO_DIGEST}"),
    Rule(
        "documents without a valid date",
        "SELECT id FROM documents WHERE julianday(created_at) IS NULL"
        " OR (updated_at IS NOT NULL AND julianday(updated_at) IS NULL)",
    ),
    Rule(
        "id counters below the ids already assigned",
        f"SELECT name FROM ({GIVEN_IDS}) LEFT JOIN last_ids USING (name)"
        " WHERE last_ids.id IS NULL OR last > last_ids.id",
        "INSERT OR REPLACE INTO last_ids (name, id) SELECT name, max(coalesce(last, 0), coalesce(last_ids.id, 0))"
        f" FROM ({GIVEN_IDS}) LEFT JOIN last_ids USING (name)",
    ),
    Rule(
        "missing counters of changes",
        "SELECT 'generation' WHERE NOT EXISTS (SELECT 1 FROM generation)",
        "INSERT INTO generation VALUES (1, 0)",
    ),
    Rule(
        "jobs in an unknown state",
        "SELECT id FROM jobs WHERE status NOT IN ('queued', 'running', 'done', 'failed')",
    ),
    Rule(
        "queued jobs without content",
        "SELECT id FROM jobs WHERE status IN ('queued', 'running') AND text IS NULL AND staged IS NULL"
        " AND document_id IS NULL",
    ),
    Rule(
        "jobs with unreadable tags",
        "SELECT id FROM jobs WHERE NOT json_valid(tags)",
        "UPDATE jobs SET tags = '[]' WHERE NOT json_valid(tags) AND status = 'done'",
    ),
    Rule(
        "earlier versions whose content is missing",
        f"SELECT id FROM {_dangling('versions', 'content_id', 'former_contents')}",
    ),
    Rule(
        "earlier versions with the content of a missing document",
        "SELECT id FROM versions WHERE content_id IS NULL AND document_id NOT IN (SELECT id FROM documents)",
    ),
    Rule(
        "earlier versions of documents that are neither present nor in the bin",
        "SELECT id FROM versions WHERE document_id NOT IN (SELECT id FROM documents UNION SELECT document_id FROM bin)",
    ),
    Rule(
        "unreadable contents of earlier versions", "SELECT id FROM former_contents WHERE last_chunk_id(chunks) IS NULL"
    ),
    Rule(
        "documents in the bin without their last version",
        "SELECT document_id FROM bin WHERE NOT EXISTS (SELECT 1 FROM versions"
        " WHERE versions.document_id = bin.document_id AND versions.number = bin.number)",
    ),
    *(
        Rule(
            f"earlier versions with unreadable {column}",
            f"SELECT id FROM versions WHERE NOT json_valid({column})",
            f"UPDATE versions SET {column} = '[]' WHERE NOT json_valid({column})",
        )
        for column in ("tags", "own_tags")
    ),
    Rule(
        "missing starts of the history",
        "SELECT 'history' WHERE NOT EXISTS (SELECT 1 FROM history)",
        "INSERT INTO history VALUES (1, strftime('%Y-%m-%d %H:%M:%f', 'now'), 0)",
    ),
    Rule(
        "wrong sizes of the history",
        f"SELECT size FROM history WHERE size <> ({HISTORY_SIZE})",
        f"UPDATE history SET size = ({HISTORY_SIZE})",
    ),
)

AHEAD: Final = (
    "SELECT id, max(created_at, coalesce(updated_at, '')) FROM documents"
    " WHERE julianday(max(created_at, coalesce(updated_at, ''))) > julianday('now') + 1 / 24.0"
)
"""Documents with a date more than an hour in the future."""


def missing_parts(connection: apsw.Connection) -> Iterator[tuple[str, str, str]]:
    """Yield the type, name and declaration of each object of the schema that is missing in the database."""
    existing = {row[:2] for row in connection.execute("SELECT type, name FROM sqlite_schema")}
    for kind, name, sql in _declared():
        if (kind, name) not in existing:
            yield kind, name, sql


def add_functions(connection: apsw.Connection) -> None:
    """Register the SQL functions that read contents of earlier versions and segment texts for the index."""
    functions = (("last_chunk_id", _last_chunk_id, 1), ("segmented", segmented, 1), ("varied", varied, 2))
    for name, function, arguments in functions:
        connection.create_scalar_function(name, cast("Any", function), arguments, deterministic=True)


def _last_chunk_id(blob: bytes) -> int | None:
    """Return the highest chunk id of an earlier version's content, 0 without chunks; None if it cannot be read."""
    try:
        return max((chunk.id for chunk in decompressed(blob)), default=0)
    except (ValueError, TypeError, LookupError, zlib.error):
        return None


def repair_rows(path: Path) -> None:
    """Repair the declarations and the rows that break a rule, in one transaction.

    Drops indexes, triggers and views that kb does not declare, and creates missing ones.
    """
    with closing(connect(path)) as connection, connection:
        add_functions(connection)
        drop_foreign(connection)
        make_missing(connection)
        for rule in RULES:
            if rule.repair and connection.execute(rule.select).fetchone():
                connection.execute(rule.repair)


def drop_foreign(connection: apsw.Connection) -> list[tuple[str, str]]:
    """Drop the indexes, triggers and views that kb does not declare; return their types and names."""
    dropped = [(kind, name) for kind, name in foreign_parts(connection) if kind != "table"]
    for kind, name in dropped:
        connection.execute(f"DROP {kind} IF EXISTS {quoted(name)}")
    return dropped


def make_missing(connection: apsw.Connection, among: Collection[tuple[str, str]] | None = None) -> None:
    """Create the missing indexes, triggers and views: all of them, or only the ones `among` these."""
    for kind, name, sql in list(missing_parts(connection)):
        if kind != "table" and (among is None or (kind, name) in among):
            connection.execute(sql)


def quoted(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"{}"'.format(name.replace('"', '""'))


def repair_codes(path: Path) -> None:
    """Delete the codes of vectors; the engine rebuilds them."""
    with closing(connect(path)) as connection, connection:
        drop_codes(connection)


def _declared() -> list[tuple[str, str, str]]:
    """Return the type, name and declaration of each object of a new database."""
    with closing(apsw.Connection(":memory:")) as connection:
        load_vectors(connection)
        create(connection, 1)
        rows: list[Any] = connection.execute(
            "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
            " AND name NOT GLOB 'chunks_fts_*' AND name NOT GLOB 'chunks_vec_*' AND name NOT GLOB 'sqlite_*'"
        ).fetchall()
    return rows
