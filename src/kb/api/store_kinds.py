"""The kinds of databases. Packages add theirs through the entry point group `kb.stores`, as kb does with its own.

The name of an entry point is the scheme of the URLs, and it leads to a `StoreKind`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Final

from kb.api.errors import SettingError

GROUP: Final = "kb.stores"
SETTING: Final = "KB_DATABASE_URL"


@dataclass(frozen=True, slots=True)
class StoreKind:
    """A kind of databases. Every start of kb with such a URL imports it, so it must import little.

    Args:
        title: its name for people.
        backend: the full name of the module that opens such databases (`kb.store.backend.Backend`), imported when
            first needed.
        install: the package that people install for it, such as `kb-local[postgres]`.
        own_tools: the programs that back up such a database. Empty if each is an SQLite file at SCHEME:///PATH, for one
            engine: kb locks, checks, repairs and backs up these itself.
        identify: returns the part of a URL that identifies the database, without passwords and options.
    """

    title: str
    backend: str
    install: str = ""
    own_tools: str = ""
    identify: Callable[[str], str] = str

    @property
    def is_shared(self) -> bool:
        """Whether a server keeps the database, with its keys and uploaded files, for any number of engines."""
        return bool(self.own_tools)


SQLITE: Final = StoreKind("SQLite", "kb.store.sqlite.opening")


def store_kind(url: str | None) -> StoreKind:
    """Return the kind of the database at `url`; without a URL it is SQLite.

    Raises:
        SettingError: no installed package supports the URL, or the package is broken.
    """
    scheme, is_url, _ = (url or "sqlite://").partition("://")
    kind = SQLITE if scheme == "sqlite" else _installed(scheme)  # a search for packages takes milliseconds
    if not (kind and is_url):
        raise not_a_database(str(url))
    return kind


def not_a_database(url: str) -> SettingError:
    """Return the error for a URL that names no database. It quotes only the scheme: the rest may have a password."""
    scheme, is_url, _ = url.partition("://")
    begin = f"the URL that begins with {scheme}://" if is_url and scheme.isalnum() else "the URL"
    schemes = ", ".join(sorted(entry_points(group=GROUP).names))
    return SettingError(
        f"{SETTING}: {begin} does not name a database. Write sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE."
        f" The installed stores have the schemes {schemes}; PostgreSQL also needs 'kb-local[postgres]'."
    )


@cache
def _installed(scheme: str) -> StoreKind | None:
    """Return the kind of the URLs with this scheme; None if no package adds it. Raises the errors of `store_kind`."""
    for entry in sorted(entry_points(group=GROUP, name=scheme), key=lambda entry: not entry.value.startswith("kb.")):
        try:
            if not isinstance(kind := entry.load(), StoreKind):
                raise TypeError(f"{kind!r} is not a StoreKind")
        except (Exception, SystemExit) as error:
            raise SettingError(f"{SETTING}: {entry.value} fails with {type(error).__name__}: {error}") from error
        return kind
    return None
