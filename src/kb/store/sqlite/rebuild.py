"""A database made anew from what it holds: the full text and the vectors follow from the texts."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
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

Embed = Callable[[Sequence[tuple[str, str]]], NDArray[np.float32]]
"""From headers and texts of chunks to their vectors."""

SLICE = 64
STEPS = 100_000
"""How many of SQLite's instructions run before an interruption is looked for."""

COPIED = (
    "SELECT name, sql FROM old.sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL TABLE%'"
    " AND name NOT GLOB 'chunks_fts_*' AND name NOT GLOB 'chunks_vec_*' AND name NOT GLOB 'sqlite_*'"
)
MADE_OF_VECTORS = {"vector_mean", "vector_codes", "vector_copies"}
"""The engine makes these anew when they are missing."""

DERIVED = "SELECT sql FROM old.sqlite_schema WHERE name IN ('chunks_fts', 'chunks_vec')"
OTHERS = "SELECT sql FROM old.sqlite_schema WHERE type <> 'table' AND sql IS NOT NULL ORDER BY type = 'trigger', rowid"


def rebuild(path: Path, space: VectorSpace, embed: Embed, on_chunks: Callable[[int, int], None], *, anew: bool) -> None:
    """Write the database anew beside itself, and put that in its place when it is whole and on the disk.

    Args:
        path: the database; nothing else may use it.
        space: what its vectors are of.
        embed: what makes vectors.
        on_chunks: is told how many chunks have their vector, and of how many.
        anew: make every vector, instead of those alone that are damaged or missing.

    Raises:
        StoreError: what cannot be made from anything else is damaged, or another program reads the database; that is
            as it was.
    """
    path = path.resolve()  # a link to a database stays one
    target = path.with_name(f"{path.name}.new")
    if target.exists() and path.stat().st_size == 0:
        raise StoreError(
            f"The database {path} is empty, and {target} may be all there is of it: put that in its place."
        )
    _remove(target)
    try:
        with closing(connect(path)) as old:
            prepare_schema(old, path, space.dimensions)
            if not anew:
                bind_space(old, path, space)
        _create(target, path)
        with closing(connect(target)) as new:
            # A log would be brought into the database after the commit, and nothing tell that there was no room for it.
            new.pragma("journal_mode", "DELETE")
            new.set_progress_handler(lambda: False, STEPS)  # SQLite itself heeds no signal
            new.execute("ATTACH ? AS old", (str(path),))
            new.pragma("foreign_keys", False)  # noqa: FBT003 - it has no keyword
            with new:
                _write(new, embed, on_chunks, anew=anew)
                change_space(new, space)
                if anew:
                    recount_precisions(new, space.precision)
        sync(target)
        if path.with_name(f"{path.name}-wal").exists():  # the last program to close a database brings its log into it
            raise StoreError(f"Another program reads the database {path}, such as a backup: wait until it has ended.")
        target.replace(path)
        sync(path.parent)
    except apsw.Error as error:
        raise StoreError(f"The database {path} cannot be made anew: {error}; take a backup.") from error
    finally:
        _remove(target)


def _create(target: Path, path: Path) -> None:
    """Make a file that those alone can read who can read the one at `path`."""
    target.touch(mode=0o600)
    give_to_owner(path, target)
    shutil.copymode(path, target)


def _remove(target: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        target.with_name(f"{target.name}{ending}").unlink(missing_ok=True)


def _write(connection: apsw.Connection, embed: Embed, on_chunks: Callable[[int, int], None], *, anew: bool) -> None:
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
    if execute("SELECT 1 FROM old.sqlite_schema WHERE name = 'sqlite_sequence'").get:
        execute("INSERT INTO sqlite_sequence SELECT * FROM old.sqlite_sequence")
    for (sql,) in [*execute(DERIVED).fetchall(), *execute(OTHERS).fetchall()]:
        execute(sql)
    _write_vectors(connection, embed, on_chunks, anew=anew)
    execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('secure-delete', 1)")
    execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')")
    version = execute("PRAGMA old.user_version").get
    execute(f"PRAGMA main.user_version = {version}")


def _copy(execute: Execute, table: str) -> None:
    names = execute(f"SELECT name FROM old.pragma_table_xinfo('{table}') WHERE hidden = 0").fetchall()
    columns = ", ".join(f'"{name}"' for (name,) in names)
    execute(f'INSERT INTO main."{table}" ({columns}) SELECT {columns} FROM old."{table}"')


def _write_vectors(
    connection: apsw.Connection, embed: Embed, on_chunks: Callable[[int, int], None], *, anew: bool
) -> None:
    execute: Execute = connection.execute
    table = VectorSchema.of(connection)
    total, done = execute("SELECT count(*) FROM main.chunks").get, 0
    rows = execute("SELECT id, text, header FROM main.source_texts ORDER BY id")
    while part := list(islice(rows, SLICE)):
        vectors = {} if anew else dict(_sound_vectors(execute, table, [row[0] for row in part]))
        missing = [row for row in part if row[0] not in vectors]
        if missing:
            made = embed([(header, text) for _, text, header in missing])
            vectors |= {row[0]: vector.tobytes() for row, vector in zip(missing, made, strict=True)}
        for row in part:
            execute(table.sql("insert"), (row[0], vectors[row[0]]))
        done += len(part)
        on_chunks(done, total)


def _sound_vectors(execute: Execute, table: VectorSchema, ids: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Yield those vectors of the chunks that are there and of length 1."""
    for chunk_id in ids:
        with suppress(apsw.Error):
            raw = execute(f"SELECT {table.embedding} FROM old.chunks_vec WHERE {table.key} = ?", (chunk_id,)).get
            if raw is not None and is_unit(raw):
                yield chunk_id, raw
