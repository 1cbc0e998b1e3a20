"""The database's refusals and failures as errors of the engine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from kb.api.errors import DiskFull, Invalid, KbError, NoConnection, Overloaded, StoreUnavailable

TOO_LONG: Final = "A path or another name is too long: PostgreSQL's indexes accept at most about 2,700 bytes."
AGAIN: Final = "Nothing was changed; try again in a few seconds."
BUSY: Final = f"Other changes have kept the database busy for too long. {AGAIN}"

GONE: Final = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.IdleInTransactionSessionTimeout,
    errors.TransactionTimeout,
    PoolTimeout,
)
"""The errors of a lost server or connection; more specific ones must be handled before these."""

OVERTAXED: Final = (
    errors.QueryCanceled,
    errors.InsufficientResources,
    errors.OutOfMemory,
    errors.TooManyConnections,
    errors.ConfigurationLimitExceeded,
)
"""The errors of a server that answers but cannot run this statement."""


@contextmanager
def translated_errors(trouble: Callable[[], str | None]) -> Iterator[None]:
    """Raise the database's errors as the engine's own; `trouble` returns the reason for a missing connection.

    Raises:
        DiskFull: the database's disk is full.
        Invalid: a value is too long for an index.
        Overloaded: the database cannot do this now.
        StoreUnavailable: the database does not answer, or accepts no changes.
    """
    try:
        yield
    except (psycopg.Error, PoolTimeout) as error:
        if fault := translate_error(error, trouble() or "all connections are in use"):
            raise fault from error
        raise


def translate_error(error: Exception, trouble: str) -> KbError | None:
    """Return the engine's error for an error of the driver; None if the engine itself is at fault."""
    match error:
        case errors.DiskFull():
            return DiskFull()
        case errors.ProgramLimitExceeded():  # a retry would not help
            return Invalid(TOO_LONG)
        case errors.LockNotAvailable():
            return StoreUnavailable(BUSY)
        case errors.ReadOnlySqlTransaction():
            return StoreUnavailable(f"The database does not accept changes now: {first_line(error)}. {AGAIN}")
        case PoolTimeout():
            return NoConnection(f"kb has no free connection to the database: {trouble}. {AGAIN}")
        case _ if isinstance(error, OVERTAXED):
            return Overloaded(f"The database could not run this: {first_line(error)}. {AGAIN}")
        case _ if isinstance(error, GONE):
            return StoreUnavailable(f"The database does not answer: {first_line(error)}. Try again in a few seconds.")
    return None


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return str(error).partition("\n")[0]
