"""Rebuild a database file: its words from the texts, and its vectors as far as they are sound."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path

import apsw

from kb.api.errors import StoreError
from kb.filesystem import give_to_owner, sync
from kb.store.row_mapping import Execute
from kb.store.sqlite.connection import connect
from kb.store.sqlite.integrity_rules import add_functions
from kb.store.sqlite.migrate import prepare_schema
from kb.store.sqlite.schema import VectorSchema
from kb.store.sqlite.vector_space import declared_dimensions
from kb.store.sqlite.verify import is_unit

SLICE = 64
# The number of SQLite's instructions between two checks for an interruption.
STEPS = 100_000

COPIED = (
    "SELECT name, sql FROM old.sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL TABLE%'"
    " AND name NOT GLOB 'chunks_fts_*' AND name NOT GLOB 'chunks_vec_*' AND name NOT GLOB 'sqlite_*'"
)
# The engine rebuilds these tables from the vectors if they are empty.
MADE_OF_VECTORS = {"vector_mean", "vector_codes"}

DERIVED = "SELECT sql FROM old.sqlite_schema WHERE name IN ('chunks_fts', 'chunks_vec')"
OTHERS = "SELECT sql FROM old.sqlite_schema WHERE type <> 'table' AND sql IS NOT NULL ORDER BY type = 'trigger', rowid"


def rebuild(path: Path, on_chunks: Callable[[int, int], None]) -> Counter[int]:
    """Write a new database next to the old one, and replace the old one when the new one is complete and on the disk.

    Args:
        path: the database; no other program may use it.
        on_chunks: receives the number of chunks whose vectors are copied, and the number of all chunks.

    Returns:
        The numbers of damaged and missing vectors by document; they are zeros now.

    Raises:
        StoreError: data that cannot be recomputed is damaged, or another program reads the database. The old database
            is unchanged.
    """
    path = path.resolve()  # so that a symbolic link to a database stays a link
    target = path.with_name(f"{path.name}.new")
    if target.exists() and path.stat().st_size == 0:
        raise StoreError(
            f"The database {path} is empty, and {target} may be its only copy. Rename {target.name} to {path.name}."
        )
    _remove(target)
    try:
        with closing(connect(path)) as old:
            prepare_schema(old, path, declared_dimensions(old))
        _create(target, path)
        with _opened_beside(target, path) as new, new:
            incomplete = _write(new, on_chunks)
        sync(target)
        if path.with_name(f"{path.name}-wal").exists():  # the last connection removes the log when it closes
            raise StoreError(
                f"Another program, such as a backup, is reading the database {path}. Try again once it has finished."
            )
        target.replace(path)
        sync(path.parent)
    except apsw.Error as error:
        raise StoreError(f"kb cannot rebuild the database {path}: {error}. Restore a backup.") from error
    finally:
        _remove(target)
    return incomplete


@contextmanager
def _opened_beside(target: Path, path: Path) -> Iterator[apsw.Connection]:
    """Open the new database, with the database at `path` attached as `old`."""
    with closing(connect(target)) as new:
        # SQLite would move a log into the database after the commit, and a full disk would go unnoticed then.
        new.pragma("journal_mode", "DELETE")
        new.set_progress_handler(lambda: False, STEPS)  # SQLite ignores signals
        new.execute("ATTACH ? AS old", (str(path),))
        new.pragma("foreign_keys", False)  # noqa: FBT003 - it has no keyword
        yield new


def _create(target: Path, path: Path) -> None:
    """Create a file with the owner and permissions of the file at `path`."""
    target.touch(mode=0o600)
    give_to_owner(path, target)
    shutil.copymode(path, target)


def _remove(target: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        target.with_name(f"{target.name}{ending}").unlink(missing_ok=True)


def _write(connection: apsw.Connection, on_chunks: Callable[[int, int], None]) -> Counter[int]:
    execute: Execute = connection.execute
    for table, sql in execute(COPIED).fetchall():
        execute(sql)
        if table not in MADE_OF_VECTORS:
            _copy(execute, table)
    add_functions(connection)
    for table, column in (("chunks", "text"), ("sections", "header")):
        execute(
            f"UPDATE main.{table} SET segmented = segmented({column}), variants = varied({column},"
            f" (SELECT language FROM main.documents WHERE documents.id = {table}.document_id))"
        )
    execute("DELETE FROM main.links_backfill")  # the engine reads all links again
    execute("INSERT INTO main.links_backfill SELECT max(id) + 1 FROM main.documents HAVING count(*) > 0")
    if execute("SELECT 1 FROM old.sqlite_schema WHERE name = 'sqlite_sequence'").get:
        execute("INSERT INTO sqlite_sequence SELECT * FROM old.sqlite_sequence")
    for (sql,) in [*execute(DERIVED).fetchall(), *execute(OTHERS).fetchall()]:
        execute(sql)
    incomplete = _write_vectors(connection, on_chunks)
    execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('secure-delete', 1)")
    execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')")
    version = execute("PRAGMA old.user_version").get
    execute(f"PRAGMA main.user_version = {version}")
    return incomplete


def _copy(execute: Execute, table: str) -> None:
    names = execute(f"SELECT name FROM old.pragma_table_xinfo('{table}') WHERE hidden = 0").fetchall()
    columns = ", ".join(f'"{name}"' for (name,) in names)
    execute(f'INSERT INTO main."{table}" ({columns}) SELECT {columns} FROM old."{table}"')


def _write_vectors(connection: apsw.Connection, on_chunks: Callable[[int, int], None]) -> Counter[int]:
    """Copy the sound vectors, and write zeros for the others; return the numbers of these by document."""
    execute: Execute = connection.execute
    table, empty = VectorSchema.of(connection), bytes(4 * declared_dimensions(connection))
    total, done, incomplete = execute("SELECT count(*) FROM main.chunks").get, 0, Counter[int]()
    rows = execute("SELECT id, document_id FROM main.chunks ORDER BY id")
    while part := dict(islice(rows, SLICE)):
        vectors = dict(_sound_vectors(execute, table, list(part)))
        for chunk_id in part:
            execute(table.sql("insert"), (chunk_id, vectors.get(chunk_id, empty)))
        incomplete.update(document_id for chunk_id, document_id in part.items() if chunk_id not in vectors)
        done += len(vectors)
        on_chunks(done, total)
    return incomplete


def _sound_vectors(execute: Execute, table: VectorSchema, ids: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Yield the chunks whose vector is readable and has the length 1, with this vector."""
    for chunk_id in ids:
        with suppress(apsw.Error):
            raw = execute(f"SELECT {table.embedding} FROM old.chunks_vec WHERE {table.key} = ?", (chunk_id,)).get
            if raw is not None and is_unit(raw):
                yield chunk_id, raw
