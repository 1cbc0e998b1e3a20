"""Where a database is from that is a copy, as long as no engine has used it; see `kb.store.transfer`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.store.postgres.statements import statements
from kb.store.transfer import check_arrived

if TYPE_CHECKING:
    from kb.store.postgres.connection import Connection


def read_arrival(connection: Connection) -> tuple[str, bool] | None:
    """Return what the database was copied from, and whether it is whole; None if it is no copy."""
    sql = statements("transfer")
    if connection.execute(sql["is_arriving"]).fetchone() == (False,):
        return None
    row = connection.execute(sql["select_arrival"]).fetchone()
    return (row[0], row[1]) if row else None


def record_arrival(connection: Connection, source: str, *, done: bool) -> None:
    """Record what the database is copied from, and whether it is whole."""
    connection.execute(statements("transfer")["create_arrival"])
    connection.execute(statements("transfer")["set_arrival"], (source, done))


def settle(connection: Connection) -> None:
    """Let the database stand for itself: what is written now is nowhere else.

    Raises:
        StoreError: it is a copy that was cut off.
    """
    mark = read_arrival(connection)
    check_arrived(mark)
    if mark is not None:
        connection.execute(statements("transfer")["drop_arrival"])
