"""Connections to the database."""

from __future__ import annotations

import os
from contextlib import suppress
from socket import gethostname
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import Cursor
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.string import StrDumperUnknown, TextLoader

from kb.api.errors import SettingError

if TYPE_CHECKING:
    from psycopg.abc import Buffer

NUL, STAND_IN = "\0", "\ufdd0"
"""PostgreSQL's texts cannot contain NUL, so kb writes this code point instead, which is not a character."""

MILLISECONDS = 3
PATIENCE: Final[dict[str, Any]] = {
    "connect_timeout": 5,  # per server in the URL
    "target_session_attrs": "read-write",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""kb uses the server that accepts changes, and gives up on a silent one; the URL can override these parameters."""

NEARBY: Final[dict[str, Any]] = {
    "connect_timeout": 2,
    "target_session_attrs": "standby",
    "load_balance_hosts": "random",
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "tcp_user_timeout": 3_000,
}
"""For replicas: kb uses all of them, and gives up on a silent one sooner, because then the primary answers."""

NAME = "fallback_application_name"
SCHEMA = "kb"
READ_SECONDS = 60
"""The time limit of a statement that reads."""

READ = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '{READ_SECONDS}s'"


class PgCursor(Cursor[tuple[Any, ...]]):
    """A cursor with the interface of APSW's, so that rows are mapped in the same way."""

    @property
    def get(self) -> Any:  # noqa: ANN401 - the first row of any statement
        """The only column of the first row, or the row itself if it has several, or None if there is no row."""
        row = self.fetchone()
        return row[0] if row is not None and len(row) == 1 else row

    def get_description(self) -> tuple[tuple[str, str], ...]:
        """Return the name and type of each column."""
        return tuple((column.name, str(column.type_code)) for column in self.description or ())


Connection = psycopg.Connection[tuple[Any, ...]]


class TextDumper(StrDumperUnknown):
    """Writes `STAND_IN` for each NUL."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace(NUL, STAND_IN))


class NulLoader(TextLoader):
    """Reads NUL for each `STAND_IN`."""

    def load(self, data: Buffer) -> bytes | str:
        text = super().load(data)
        return text.replace(STAND_IN, NUL) if isinstance(text, str) else text


class MomentLoader(Loader):
    """Reads a time in the form that `kb.store.row_mapping` expects: UTC, with milliseconds."""

    def load(self, data: Buffer) -> str:
        whole, _, fraction = bytes(data).decode().removesuffix("+00").partition(".")
        return f"{whole}.{fraction:0<{MILLISECONDS}}"


class VectorDumper(Dumper):
    """Writes an array of numbers in the text form of pgvector."""

    def dump(self, obj: Any) -> Buffer | None:  # noqa: ANN401 - psycopg's signature
        return f"[{','.join(map(repr, obj.tolist()))}]".encode()


def checked(url: str, setting: str = "KB_DATABASE_URL") -> str:
    """Return the URL if it is valid. The error quotes no part of it, because any part may contain the password.

    Raises:
        SettingError: the URL is not valid.
    """
    with suppress(psycopg.ProgrammingError):
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
        if not {"@", "#"} & set(parts.get("host", "")[1:]) and parts.get("port", "0").replace(",", "0").isdigit():
            return url
    raise SettingError(
        f"{setting} is not a valid URL of the form postgresql://user:password@host/database. In a user name or"
        " password, write %40 for @, %2F for /, %25 for % and %20 for a space."
    )


def conninfo(url: str) -> str:
    """Return the connection string for libpq. Raises the same errors as `checked`."""
    return make_conninfo("", **(PATIENCE | {NAME: process_name()} | conninfo_to_dict(checked(url))))


def process_name() -> str:
    """Return the name of this process for `pg_stat_activity`, which the URL and PGAPPNAME override."""
    return f"kb {gethostname()[:40]} {os.getpid()}"


def replica_conninfo(url: str) -> str:
    """Return the connection string for replicas. Raises the same errors as `checked`."""
    return make_conninfo(
        "", **(PATIENCE | NEARBY | {NAME: process_name()} | conninfo_to_dict(checked(url, "KB_DATABASE_READ_URL")))
    )


def prepare(connection: Connection) -> None:
    """Configure a new connection for the store."""
    connection.cursor_factory = PgCursor
    adapters = connection.adapters
    adapters.register_dumper(str, TextDumper)
    for name in ("text", "varchar"):
        adapters.register_loader(name, NulLoader)
    adapters.register_loader("timestamptz", MomentLoader)
    adapters.register_dumper("numpy.ndarray", VectorDumper)
    connection.execute(f"SET search_path = {SCHEMA}, public")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET DateStyle = 'ISO'")
