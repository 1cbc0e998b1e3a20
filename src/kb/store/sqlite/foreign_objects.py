"""Declarations in a database that kb never makes, such as a trigger that somebody put into a backup.

It would work on everything that comes later. Tables of version 2 came from several programs and kept their columns, so
a table is compared column by column. A column that kb does not declare may stay if it only holds values.
"""

from __future__ import annotations

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
"""The names of tables that SQLite and the modules of virtual tables keep for themselves."""

SHADOW: Final = re.compile(
    r"create table '?\w+'?\((?!.*\b(?:as|check|collate|default|references)\b)[\w ,()]+\)(?:without rowid)?"
)
"""Such a table, which only holds values."""

VECTORS: Final = re.compile(
    r"create virtual table chunks_vec using vec0"
    r"\((\w+ integer primary key,)?\w+ float\[\d+\]( distance_metric=cosine)?\)"
)
COLUMN: Final = re.compile(
    r"\w+( (integer|text|real|blob|timestamp|datetime|numeric|boolean|int|varchar))?"
    r"( not null| unique| primary key( autoincrement)?"
    r"| default ?('[\w -]*'|-?[\d.]+|null|true|false|current_timestamp|\(datetime\('now'\)\))"
    r"| generated always as\(\w+\)(virtual|stored))*"
)
"""A column that holds a value and does nothing."""

KEY: Final = re.compile(r"primary key\([\w,]+\)")
TAGGED: Final = "tag_id integer not null references tags(id)on delete cascade"
"""As version 2 declared it."""

PLAIN_INDEX: Final = re.compile(r"create index \w+ on \w+\([\w,]+\)")
TABLE: Final = re.compile(r"create table \w+\((.*)\)(?:without rowid|strict|,)*", re.DOTALL)
STATEMENT: Final = re.compile(
    r"\s*(?:--[^\n]*\n\s*)*(CREATE\s+(?:UNIQUE\s+|VIRTUAL\s+)?(TABLE|INDEX|TRIGGER|VIEW)\b.*)", re.DOTALL
)


def refuse_foreign(path: Path, what: str) -> None:
    """Refuse a database that nobody uses, if it declares what kb never does.

    Args:
        path: the database.
        what: how the message calls it.

    Raises:
        StoreError: it does, or cannot be read.
    """
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            foreign = foreign_names(connection)
    except apsw.Error as error:
        raise StoreError(f"{what} cannot be read: {error}.") from error
    if foreign:
        raise StoreError(
            f"{what} declares what kb never does ({', '.join(foreign[:5])}): somebody changed it. Use a backup from a"
            " place that nobody else can write to."
        )


def foreign_parts(connection: apsw.Connection) -> Iterator[tuple[str, str]]:
    """Yield type and name of what a database declares otherwise than any version of kb."""
    rows: list[Any] = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    for kind, name, sql in rows:
        if not _is_known(kind, name, sql):
            yield kind, name


def foreign_names(connection: apsw.Connection) -> list[str]:
    """Return what `foreign_parts` yields in words."""
    return [f"{kind} {name}" for kind, name in foreign_parts(connection)]


def foreign_tables(connection: apsw.Connection) -> Iterator[str]:
    """Yield the names of foreign tables, and of what has the name of a table of kb's."""
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
    """Return whether a column or a constraint of a table does nothing, or what kb declares there."""
    if part in _declared_parts(table) or (table == "document_tags" and part == TAGGED):
        return True
    return bool(COLUMN.fullmatch(part) or KEY.fullmatch(part))


@cache
def known() -> frozenset[str]:
    """Return all declarations of kb's own, as `plain` has them."""
    declared = [sql for _, script in migrations(__package__, after=0) for sql in _declarations(script)]
    return frozenset(map(plain, declared))


@cache
def _declared_parts(table: str) -> frozenset[str]:
    """Return the columns and constraints that kb has declared in a table."""
    tables = (TABLE.fullmatch(sql) for sql in known() if sql.startswith(f"create table {table}("))
    return frozenset(part for match in tables if match for part in _parts(match[1]))


def plain(sql: str) -> str:
    """Return a declaration without what does not change its meaning: comments, blanks, quotes of names, capitals."""
    pieces = [part for part in re.split(r"('(?:[^']|'')*')|--[^\n]*|/\*.*?\*/", sql, flags=re.DOTALL) if part]
    return "".join(part if part.startswith("'") else _plain_code(part) for part in pieces).strip()


def _plain_code(sql: str) -> str:
    unquoted = re.sub(r'"(\w+)"|\[([A-Za-z_]\w*)\]|`(\w+)`', r"\1\2\3", sql)
    spaced = re.sub(r"\s+", " ", unquoted).lower().replace("if not exists ", "")
    return re.sub(r"\s*([(),;=])\s*", r"\1", spaced)


def _declarations(script: str) -> Iterator[str]:
    """Yield the statements of a script that declare something."""
    statement = ""
    for piece in re.split(r"(?<=;)", script):
        statement += piece
        if apsw.complete(statement):
            if match := STATEMENT.fullmatch(statement):
                yield match[1].rstrip().removesuffix(";")
            statement = ""


def _parts(body: str) -> Iterator[str]:
    """Yield what commas outside of parentheses and texts are between."""
    depth, part = 0, ""
    for piece in re.findall(r"'(?:[^']|'')*'|[(),]|[^'(),]+", body):
        depth += (piece == "(") - (piece == ")")
        if piece == "," and not depth:
            yield part.strip()
            part = ""
        else:
            part += piece
    yield part.strip()
