"""Connections to the database."""

from __future__ import annotations

from contextlib import suppress
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
"""PostgreSQL's texts hold no NUL: this one, which is no character and stands in no text, is written in its place."""

MILLISECONDS = 3
PATIENCE: Final[dict[str, Any]] = {
    "connect_timeout": 5,  # for each server that the URL names
    "target_session_attrs": "read-write",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Of several servers the one counts that takes changes, and one that is silent is given up; a URL may say otherwise."""

NEARBY: Final[dict[str, Any]] = {
    "connect_timeout": 2,
    "target_session_attrs": "standby",
    "load_balance_hosts": "random",
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "tcp_user_timeout": 3_000,
}
"""For replicas: all of them count, and one that is silent is given up sooner, for then the primary answers."""

SCHEMA = "kb"
READ_SECONDS = 60
"""How long a statement that reads may take."""

READ = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '{READ_SECONDS}s'"


class PgCursor(Cursor[tuple[Any, ...]]):
    """A cursor that says what APSW's says, so that rows are mapped alike."""

    @property
    def get(self) -> Any:  # noqa: ANN401 - what the statement's first row has
        """The only column of the first row, or that row; None if there is none."""
        row = self.fetchone()
        return row[0] if row is not None and len(row) == 1 else row

    def get_description(self) -> tuple[tuple[str, str], ...]:
        """Return name and type of each column."""
        return tuple((column.name, str(column.type_code)) for column in self.description or ())


Connection = psycopg.Connection[tuple[Any, ...]]


class TextDumper(StrDumperUnknown):
    """Writes a stand-in for each NUL."""

    def dump(self, obj: str) -> Buffer | None:
        """Return the text as it is sent."""
        return super().dump(obj.replace(NUL, STAND_IN))


class NulLoader(TextLoader):
    """Reads it back."""

    def load(self, data: Buffer) -> bytes | str:
        """Return the text as it was written."""
        text = super().load(data)
        return text.replace(STAND_IN, NUL) if isinstance(text, str) else text


class MomentLoader(Loader):
    """Reads a moment as `kb.store.row_mapping` knows it: UTC, to the millisecond."""

    def load(self, data: Buffer) -> str:
        """Return the moment as text."""
        whole, _, fraction = bytes(data).decode().removesuffix("+00").partition(".")
        return f"{whole}.{fraction:0<{MILLISECONDS}}"


class VectorDumper(Dumper):
    """Writes an array of numbers as pgvector reads it."""

    def dump(self, obj: Any) -> Buffer | None:  # noqa: ANN401 - as psycopg has it
        """Return the vector as text."""
        return f"[{','.join(map(repr, obj.tolist()))}]".encode()


def checked(url: str, setting: str = "KB_DATABASE_URL") -> str:
    """Return a URL that can be read as one. What cannot is not told: its password may be in what is wrong with it.

    Raises:
        SettingError: it cannot.
    """
    with suppress(psycopg.ProgrammingError):
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
        if "@" not in parts.get("host", "")[1:] and parts.get("port", "0").replace(",", "0").isdigit():
            return url
    raise SettingError(
        f"{setting}: it is no postgresql://user:password@host/database that can be read; in a user or a password"
        " write %40 for @, %2F for /, %25 for % and %20 for a space"
    )


def conninfo(url: str) -> str:
    """Return how to connect. Raises as `checked`."""
    return make_conninfo("", **(PATIENCE | conninfo_to_dict(checked(url))))


def replica_conninfo(url: str) -> str:
    """Return how to connect to replicas. Raises as `checked`."""
    return make_conninfo("", **(PATIENCE | NEARBY | conninfo_to_dict(checked(url, "KB_DATABASE_READ_URL"))))


def prepare(connection: Connection) -> None:
    """Make a new connection one of the store's."""
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
