"""The lock that keeps a data folder or a database to one engine."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from kb.api.errors import REMEDY, StoreError
from kb.filesystem import give_to_owner, ownership
from kb.running_engine import find_running


def database_lock(path: Path) -> Path:
    """Return the lock file of the database at `path`."""
    return path.with_name(f"{path.name}.lock")


@contextmanager
def sole_user(path: Path) -> Iterator[None]:
    """Hold the lock at `path`. An engine keeps the vectors in memory, so no other engine may write.

    Raises:
        StoreError: another engine has the lock, or the folder is not writable.
    """
    try:
        acquired = FileLock(path, timeout=0).acquire()
    except Timeout:
        running = find_running(path.parent)
        where = f". It is running at {running}" if running else ""
        raise StoreError(f"Another kb engine is using {path.parent} ({path.name}){where}. Stop it first.") from None
    except PermissionError as error:
        closed = path if path.exists() else path.parent
        raise StoreError(f"kb has no permission to write to {closed}.{ownership(closed)}") from error
    except OSError as error:
        raise StoreError(f"kb cannot write to {path.parent}: {error.strerror} ({path.name}). {REMEDY}.") from error
    give_to_owner(path.parent, path)
    with acquired:
        yield
