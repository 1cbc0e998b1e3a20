"""Change the tables of version 2 so that version 3 can write them.

If a table only lacks columns, kb adds them. If version 2 declared something that version 3 cannot comply with, kb
rebuilds the table with all its rows and columns. Examples are a path that must not be NULL, a hash that must be unique,
a number stored as text, and a column with another name. The other name stays readable as a generated column.
"""

import re
from collections.abc import Iterator

import apsw

from kb.store.sqlite.legacy_v2.detect import TABLES, Column, find_alias, read_columns
from kb.store.sqlite.schema import VectorSchema

FALLBACKS = {
    "title": "''",
    "doc_type": "''",
    "content_hash": "''",
    "created_at": "''",
    "chunk_index": "0",
    "text": "''",
}
"""Placeholders for columns that must have a value, until fill.sql finds a better one."""

JOB_COLUMNS = {
    "text": ("content", "note_text", "note", "body"),
    "filename": ("file_name", "original_filename", "file_path", "path"),
    "title": ("name",),
    "kind": ("type", "job_type"),
    "error": ("error_message", "message"),
    "document_id": ("doc_id",),
    "finished_at": ("completed_at",),
}
"""Columns of jobs in version 3, and the columns of version 2 with their values."""

JOB_PAYLOADS = ("payload", "data", "params", "input")
"""Columns that may hold a job as JSON in version 2."""


def fit_tables(connection: apsw.Connection, newest: apsw.Connection) -> None:
    """Give the tables every column of the `newest` schema, and drop the full text, triggers and indexes of kb.

    Raises:
        apsw.Error: some of the data does not fit, such as an id that is not a number.
    """
    _keep_last_ids(connection, newest)
    _drop_derived(connection, newest)
    _set_foreign_jobs_aside(connection, newest)
    for table in TABLES:
        before = read_columns(connection, table)
        if _misfit(connection, newest, table):
            _rebuild_table(connection, newest, table)
        else:
            _add_columns(connection, newest, table)
        if table == "jobs":
            _fill_jobs(connection, before)


def _keep_last_ids(connection: apsw.Connection, newest: apsw.Connection) -> None:
    connection.execute(_definition(newest, "last_ids"))
    counted = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'").get
    for table in ("documents", "chunks", "jobs"):
        used = f"SELECT max(id) AS id FROM {table}"
        if counted:
            used += f" UNION ALL SELECT seq FROM sqlite_sequence WHERE name = '{table}'"
        connection.execute(
            f"INSERT INTO last_ids SELECT '{table}', COALESCE(max(CAST(id AS INTEGER)), 0) FROM ({used})"
        )


def _drop_derived(connection: apsw.Connection, newest: apsw.Connection) -> None:
    ours = "SELECT name FROM sqlite_schema WHERE type IN ('trigger', 'index') AND sql IS NOT NULL"
    names = {name for (name,) in newest.execute(ours)}
    rows = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('trigger', 'index') AND sql IS NOT NULL"
    ).fetchall()
    for kind, name, sql in rows:
        if name in names or (kind == "trigger" and "chunks_fts" in str(sql)):
            connection.execute(f'DROP {kind} "{name}"')
    connection.execute("DROP TABLE chunks_fts")


def _set_foreign_jobs_aside(connection: apsw.Connection, newest: apsw.Connection) -> None:
    """Rename a table of jobs whose ids are not numbers, so that it stays readable, and start an empty queue."""
    if connection.execute("SELECT 1 FROM jobs WHERE typeof(id) <> 'integer' LIMIT 1").get:
        connection.execute("ALTER TABLE jobs RENAME TO jobs_v2")
        connection.execute(_definition(newest, "jobs"))


def _misfit(connection: apsw.Connection, newest: apsw.Connection, table: str) -> bool:
    """Return whether the declaration of the table does not allow rows of version 3."""
    old, new = read_columns(connection, table), read_columns(newest, table)
    missing = [column for name, column in new.items() if name not in old]
    return (
        any(column.needed or find_alias(table, column.name, old) for column in missing)
        or any(column.needed for name, column in old.items() if name not in new)
        or any(column.type == "INTEGER" and "INT" not in old[name].type for name, column in new.items() if name in old)
        or any(old[name].not_null and not column.not_null for name, column in new.items() if name in old)
        or bool(_promises(connection, table) - _promises(newest, table))
        or bool(_promises(newest, table, indexes=False) - _promises(connection, table))
        or re.search(r"\bCHECK\b", _definition(connection, table), re.IGNORECASE) is not None
    )


def _promises(connection: apsw.Connection, table: str, *, indexes: bool = True) -> set[tuple[object, ...]]:
    """Return the table's constraints: its unique columns and its references to other tables."""
    promises: set[tuple[object, ...]] = set()
    listed = connection.execute(f"SELECT name, origin FROM pragma_index_list('{table}') WHERE \"unique\"").fetchall()
    for name, origin in listed:
        if indexes or origin != "c":
            names = connection.execute(f"SELECT name FROM pragma_index_info('{name}')").fetchall()
            promises.add(("unique", frozenset(names)))
    if indexes:
        rows = connection.execute(f'SELECT "from", "table" FROM pragma_foreign_key_list(\'{table}\')')
        promises |= {("refers", *row) for row in rows}
    return promises


def _definition(connection: apsw.Connection, table: str) -> str:
    sql: str = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get
    return sql


def _add_columns(connection: apsw.Connection, newest: apsw.Connection, table: str) -> None:
    """Add the missing columns of the `newest` schema to a table."""
    present = read_columns(connection, table)
    for name, column in read_columns(newest, table).items():
        if name not in present:
            not_null = f" NOT NULL DEFAULT {column.default}" if column.not_null else ""
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column.name} {column.type}{not_null}")


def _rebuild_table(connection: apsw.Connection, newest: apsw.Connection, table: str) -> None:
    """Rebuild the table with the declaration of version 3, the rows of version 2 and its other columns."""
    old, new = read_columns(connection, table), read_columns(newest, table)
    indexes = _own_objects(connection, table)
    made = _definition(newest, table).replace(f"CREATE TABLE {table}", f"CREATE TABLE {table}_v3", 1)
    connection.execute(made)
    sources = {name: _source(table, column, old) for name, column in new.items()}
    for name, column in old.items():
        if name in sources.values():
            continue
        connection.execute(f"ALTER TABLE {table}_v3 ADD COLUMN {column.optional_definition}")
        sources[name] = name
    _copy(connection, table, sources)
    connection.execute(f"DROP TABLE {table}")
    # Without the pragma, renaming would also change the references of other tables, which are right again now.
    connection.execute("PRAGMA legacy_alter_table = ON")
    connection.execute(f"ALTER TABLE {table}_v3 RENAME TO {table}")
    connection.execute("PRAGMA legacy_alter_table = OFF")
    for name in new:
        if (alias := find_alias(table, name, old)) and name not in old and alias not in new:
            connection.execute(f'ALTER TABLE {table} ADD COLUMN "{alias}" GENERATED ALWAYS AS ({name}) VIRTUAL')
    for sql in indexes:
        connection.execute(sql)


def _own_objects(connection: apsw.Connection, table: str) -> list[str]:
    rows = connection.execute(
        "SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND type IN ('index', 'trigger')"
        " AND sql IS NOT NULL AND sql NOT LIKE 'CREATE UNIQUE%'",
        (table,),
    )
    return [sql for (sql,) in rows]


def _source(table: str, column: Column, old: dict[str, Column]) -> str | None:
    """Return the column of version 2 with the values for `column`."""
    name = column.name.lower()
    return name if name in old else find_alias(table, name, old)


def _copy(connection: apsw.Connection, table: str, sources: dict[str, str | None]) -> None:
    values = []
    new = read_columns(connection, f"{table}_v3")
    for name, source in sources.items():
        column = new[name]
        instead = column.default if column.default is not None else FALLBACKS.get(name)
        value = f'"{source}"' if source else "NULL"
        values.append(f"COALESCE({value}, {instead})" if column.not_null and instead is not None else value)
    names = ", ".join(f'"{name}"' for name in sources)
    # In a table without a primary key, a document may have the same tag twice.
    insert = "INSERT OR IGNORE" if table == "document_tags" else "INSERT"
    connection.execute(f"{insert} INTO {table}_v3 ({names}) SELECT {', '.join(values)} FROM {table}")


def _fill_jobs(connection: apsw.Connection, before: dict[str, Column]) -> None:
    """Fill the jobs with values that version 2 kept in columns of other names and in JSON."""
    if "kind" not in before:
        connection.execute("UPDATE jobs SET kind = ''")
    for column, names in JOB_COLUMNS.items():
        for name in filter(before.__contains__, names):
            first, second = (column, f'"{name}"') if column in before else (f'"{name}"', column)
            connection.execute(f"UPDATE jobs SET {column} = COALESCE({first}, {second})")
    for payload in filter(before.__contains__, JOB_PAYLOADS):
        for column in ("text", "title", "filename", "source_path"):
            connection.execute(f"UPDATE jobs SET {column} = COALESCE({column}, {_in_json(payload, column)})")
        if "tags" not in before:
            connection.execute(f"UPDATE jobs SET tags = COALESCE({_in_json(payload, 'tags')}, tags)")


def _in_json(payload: str, key: str) -> str:
    return f'CASE WHEN json_valid("{payload}") THEN "{payload}" ->> \'$.{key}\' END'


def drop_stray_vectors(connection: apsw.Connection) -> None:
    """Delete vectors without a chunk, because searches would find them."""
    table = VectorSchema.of(connection)
    known = {chunk_id for (chunk_id,) in connection.execute("SELECT id FROM chunks")}
    keys = {key for (key,) in connection.execute(table.sql("select_ids"))}
    connection.executemany(table.sql("delete"), [(key,) for key in keys - known])


def missing_objects(newest: apsw.Connection) -> Iterator[str]:
    """Yield the declarations of the objects of the `newest` schema that are missing after `fit_tables`."""
    present = (*TABLES, "chunks_vec", "last_ids")
    for name, sql in newest.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"):
        if name not in present and not name.startswith(("chunks_fts_", "chunks_vec_", "sqlite_")):
            yield sql
