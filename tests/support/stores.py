"""The stores that everything a store must do is tried on: each opens one in a folder, or the same one again."""

from __future__ import annotations

from contextlib import closing

from kb.store.sqlite.store import SqliteStore
from tests.support.spaces import space


def sqlite(folder, **changes):
    return closing(SqliteStore(folder / "kb.db", space(**changes)))


STORES = {"sqlite": sqlite}
