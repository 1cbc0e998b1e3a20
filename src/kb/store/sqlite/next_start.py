"""What the first start of this kb does to the database of an earlier one. Reads only; an engine may run."""

import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw

from kb.settings import Settings
from kb.store.migrations import FIRST
from kb.store.sqlite.connection import unopened
from kb.store.sqlite.schema import SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class NextStart:
    """What the next start does, as a sentence, and whether kb can do it."""

    sentence: str
    is_possible: bool = True


def next_start(settings: Settings) -> NextStart:
    """Tell what the next start does to the database.

    Raises:
        StoreError: the database cannot be read.
    """
    path = settings.database_path
    if settings.database_url:
        return NextStart("Dump the PostgreSQL database before you start a newer version of kb: kb makes no copy of it.")
    if not path.exists():
        return NextStart(f"kb has no database yet: its first start creates {path}.")
    try:
        version = read_version(path) or 2
    except apsw.Error as error:
        raise unopened(path, error) from error
    return migration(path, version)


def read_version(path: Path) -> int:
    """Return the version of a database. No file appears beside it, which SQLite would make for its log."""
    log = path.with_name(f"{path.name}-wal")
    address = f"{path.absolute().as_uri()}?mode=ro{'' if log.exists() else '&immutable=1'}"
    with closing(apsw.Connection(address, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)) as connection:
        return int(connection.pragma("user_version"))


def migration(path: Path, version: int) -> NextStart:
    """Tell what the next start does to a database of a version."""
    if version == SCHEMA_VERSION:
        return NextStart(f"{path} has version {version}, as this version of kb does: the next start changes nothing.")
    if version > SCHEMA_VERSION or 2 < version < FIRST:
        refusal = f"{path} has version {version}, which this version of kb cannot read; it reads {SCHEMA_VERSION}."
        return NextStart(refusal, is_possible=False)
    free = shutil.disk_usage(path.parent).free
    needed = path.stat().st_size * 2  # the copy, and the pages of the migration
    sentence = (
        f"{path} has version {version}. The next start copies it to {path.name}.v{version}-backup and migrates it to"
        f" version {SCHEMA_VERSION}. This takes {needed / 1e6:,.0f} MB of disk; {free / 1e6:,.0f} MB are free."
    )
    return NextStart(sentence, is_possible=free >= needed)
