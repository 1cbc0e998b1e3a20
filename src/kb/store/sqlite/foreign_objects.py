"""Find declarations that are not from kb, such as a trigger that somebody added to a backup.

Such a trigger would act on all later changes. Several programs created tables of version 2, and these tables kept their
columns, so kb compares a table column by column. Additional columns are allowed if they only hold values.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import apsw

from kb.api.errors import StoreError
from kb.store.migrations import migrations

SHADOWS: Final = re.compile(r"(chunks_fts|chunks_vec)_\w+|sqlite_\w+")
"""The names of the internal tables of SQLite and of virtual tables."""

SHADOW: Final = re.compile(
    r"create table '?\w+'?\((?!.*\b(?:as|check|collate|default|references)\b)[\w ,()]+\)(?:without rowid)?"
)
"""The declaration of an internal table that only holds values."""

VECTORS: Final = re.compile(
    r"create virtual table chunks_vec using vec0"
    r"\((\w+ integer primary key,)?\w+ float\[\d+\]( distance_metric=cosine)?(,chunk_size=8)?\)"
)
COLUMN: Final = re.compile(
    r"\w+( (integer|text|real|blob|timestamp|datetime|numeric|boolean|int|varchar))?"
    r"( not null| unique| primary key( autoincrement)?"
    r"| default ?('[\w -]*'|-?[\d.]+|null|true|false|current_timestamp|\(datetime\('now'\)\))"
    r"| generated always as\(\w+\)(virtual|stored))*"
)
"""The declaration of a column that only holds values."""

KEY: Final = re.compile(r"primary key\([\w,]+\)")
TAGGED: Final = "tag_id integer not null references tags(id)on delete cascade"
"""The declaration in version 2."""

PLAIN_INDEX: Final = re.compile(r"create index \w+ on \w+\([\w,]+\)")
TABLE: Final = re.compile(r"create table \w+\((.*)\)(?:without rowid|strict|,)*", re.DOTALL)
STATEMENT: Final = re.compile(
    r"\s*(?:--[^\n]*\n\s*)*(CREATE\s+(?:UNIQUE\s+|VIRTUAL\s+)?(TABLE|INDEX|TRIGGER|VIEW)\b.*)", re.DOTALL
)


def refuse_foreign(path: Path, what: str) -> None:
    """Refuse a database with foreign declarations. No other program may use the database.

    Args:
        what: the name of the database in the message.

    Raises:
        StoreError: the database has foreign declarations, or cannot be read.
    """
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            foreign = foreign_names(connection)
    except apsw.Error as error:
        raise StoreError(f"kb cannot read {what}: {error}.") from error
    if foreign:
        raise StoreError(
            f"Another program changed {what}: it contains objects that kb does not create ({', '.join(foreign[:5])})."
            " Use a backup from a place that nobody else can write to."
        )


def foreign_parts(connection: apsw.Connection) -> Iterator[tuple[str, str]]:
    """Yield the type and name of each object whose declaration is not from any version of kb."""
    rows: list[Any] = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    for kind, name, sql in rows:
        if not _is_known(kind, name, sql):
            yield kind, name


def foreign_names(connection: apsw.Connection) -> list[str]:
    """Return the foreign parts as text, such as "trigger name"."""
    return [f"{kind} {name}" for kind, name in foreign_parts(connection)]


def foreign_tables(connection: apsw.Connection) -> Iterator[str]:
    """Yield the names of foreign tables, and of other foreign objects with the name of a table of kb."""
    for kind, name in foreign_parts(connection):
        if kind == "table" or any(sql.startswith(f"create table {name}(") for sql in known()):
            yield name


@lru_cache(maxsize=1024)
def _is_known(kind: str, name: str, declared: str) -> bool:
    sql = plain(declared)
    if sql in known():
        return True
    if kind == "index":
        return bool(PLAIN_INDEX.fullmatch(sql))
    if kind != "table":
        return False
    if SHADOWS.fullmatch(name):
        return bool(SHADOW.fullmatch(sql))
    if sql.startswith("create virtual"):
        return bool(VECTORS.fullmatch(sql))
    match = TABLE.fullmatch(sql)
    return match is not None and all(_is_harmless(part, name) for part in _parts(match[1]))


def _is_harmless(part: str, table: str) -> bool:
    """Return whether a column or constraint only holds values, or is declared like this by kb."""
    if part in _declared_parts(table) or (table == "document_tags" and part == TAGGED):
        return True
    return bool(COLUMN.fullmatch(part) or KEY.fullmatch(part))


@cache
def known() -> frozenset[str]:
    """Return all of kb's own declarations, as `plain` returns them."""
    declared = [sql for _, script in migrations(__package__, after=0) for sql in _declarations(script)]
    return frozenset(map(plain, declared))


@cache
def _declared_parts(table: str) -> frozenset[str]:
    """Return the columns and constraints that any version of kb declares in a table."""
    tables = (TABLE.fullmatch(sql) for sql in known() if sql.startswith(f"create table {table}("))
    return frozenset(part for match in tables if match for part in _parts(match[1]))


def plain(sql: str) -> str:
    """Return a declaration without comments, optional blanks, quotes of names and capitals."""
    pieces = [part for part in re.split(r"('(?:[^']|'')*')|--[^\n]*|/\*.*?\*/", sql, flags=re.DOTALL) if part]
    return "".join(part if part.startswith("'") else _plain_code(part) for part in pieces).strip()


def _plain_code(sql: str) -> str:
    unquoted = re.sub(r'"(\w+)"|\[([A-Za-z_]\w*)\]|`(\w+)`', r"\1\2\3", sql)
    spaced = re.sub(r"\s+", " ", unquoted).lower().replace("if not exists ", "")
    return re.sub(r"\s*([(),;=])\s*", r"\1", spaced)


def _declarations(script: str) -> Iterator[str]:
    """Yield the CREATE statements of a script."""
    statement = ""
    for piece in re.split(r"(?<=;)", script):
        statement += piece
        if apsw.complete(statement):
            if match := STATEMENT.fullmatch(statement):
                yield match[1].rstrip().removesuffix(";")
            statement = ""


def _parts(body: str) -> Iterator[str]:
    """Yield the parts of a declaration, which commas outside of parentheses and string literals separate."""
    depth, part = 0, ""
    for piece in re.findall(r"'(?:[^']|'')*'|[(),]|[^'(),]+", body):
        depth += (piece == "(") - (piece == ")")
        if piece == "," and not depth:
            yield part.strip()
            part = ""
        else:
            part += piece
    yield part.strip()
