"""PostgreSQL as a kind of databases. This module works without the driver."""

from typing import Final

from kb.api.store_kinds import StoreKind

WHERE: Final = ("host", "hostaddr", "port", "dbname")
"""The options of a URL that identify the database."""


def identify(url: str) -> str:
    """Return the parts of a URL that identify the database, without its user and connection options."""
    place, _, options = url.partition("://")[2].partition("?")
    server, slash, database = place.partition("/")
    where = [option for option in options.split("&") if option.partition("=")[0] in WHERE]
    address = f"postgresql://{server.rpartition('@')[2]}{slash}{database}"
    return f"{address}?{'&'.join(where)}" if where else address


POSTGRES: Final = StoreKind("PostgreSQL", "kb.store.postgres.opening", "kb-local[postgres]", "pg_dump", identify)
