"""Rebuild a database: kb computes the full text and the vectors from the texts."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.api.errors import StoreError
from kb.filesystem import give_to_owner, sync
from kb.store.row_mapping import Execute
from kb.store.rows import VectorSpace
from kb.store.sqlite.connection import connect
from kb.store.sqlite.integrity_rules import add_functions
from kb.store.sqlite.migrate import prepare_schema
from kb.store.sqlite.schema import VectorSchema
from kb.store.sqlite.vector_space import bind_space, change_space, recount_precisions
from kb.store.sqlite.verify import is_unit

# From headers and texts of chunks to their vectors.
Embed = Callable[[Sequence[tuple[str, str]]], NDArray[np.float32]]

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


def rebuild(
    path: Path, space: VectorSpace, embed: Embed, on_chunks: Callable[[int, int], None], *, recompute_all: bool
) -> None:
    """Write a new database next to the old one, and replace the old one when the new one is complete and on the disk.

    Args:
        path: the database; no other program may use it.
        space: the model and settings of its vectors.
        embed: computes vectors.
        on_chunks: receives the number of chunks that have their vector, and the number of all chunks.
        recompute_all: whether to compute every vector, not only the damaged and missing ones.

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
            prepare_schema(old, path, space.dimensions)
            if not recompute_all:
                bind_space(old, path, space)
        _create(target, path)
        with _opened_beside(target, path) as new, new:
            _write(new, embed, on_chunks, recompute_all=recompute_all)
            change_space(new, space)
            if recompute_all:
                recount_precisions(new, space.precision)
        sync(target)
        if path.with_name(f"{path.name}-wal").exists():  # the last connection removes the log when it closes
            raise StoreError(
                f"Another program, such as a backup, is reading the database {path}. Try again when it has ended."
            )
        target.replace(path)
        sync(path.parent)
    except apsw.Error as error:
        raise StoreError(f"kb cannot rebuild the database {path}: {error}. Restore a backup.") from error
    finally:
        _remove(target)


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


def _write(
    connection: apsw.Connection, embed: Embed, on_chunks: Callable[[int, int], None], *, recompute_all: bool
) -> None:
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
    _write_vectors(connection, embed, on_chunks, recompute_all=recompute_all)
    execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('secure-delete', 1)")
    execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')")
    version = execute("PRAGMA old.user_version").get
    execute(f"PRAGMA main.user_version = {version}")


def _copy(execute: Execute, table: str) -> None:
    names = execute(f"SELECT name FROM old.pragma_table_xinfo('{table}') WHERE hidden = 0").fetchall()
    columns = ", ".join(f'"{name}"' for (name,) in names)
    execute(f'INSERT INTO main."{table}" ({columns}) SELECT {columns} FROM old."{table}"')


def _write_vectors(
    connection: apsw.Connection, embed: Embed, on_chunks: Callable[[int, int], None], *, recompute_all: bool
) -> None:
    execute: Execute = connection.execute
    table = VectorSchema.of(connection)
    total, done = execute("SELECT count(*) FROM main.chunks").get, 0
    rows = execute("SELECT id, text, header FROM main.source_texts ORDER BY id")
    while part := list(islice(rows, SLICE)):
        vectors = {} if recompute_all else dict(_sound_vectors(execute, table, [row[0] for row in part]))
        missing = [row for row in part if row[0] not in vectors]
        if missing:
            made = embed([(header, text) for _, text, header in missing])
            vectors |= {row[0]: vector.tobytes() for row, vector in zip(missing, made, strict=True)}
        for row in part:
            execute(table.sql("insert"), (row[0], vectors[row[0]]))
        done += len(part)
        on_chunks(done, total)


def _sound_vectors(execute: Execute, table: VectorSchema, ids: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Yield the chunks whose vector is readable and has the length 1, with this vector."""
    for chunk_id in ids:
        with suppress(apsw.Error):
            raw = execute(f"SELECT {table.embedding} FROM old.chunks_vec WHERE {table.key} = ?", (chunk_id,)).get
            if raw is not None and is_unit(raw):
                yield chunk_id, raw
