"""Open the store that the settings name."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import cast

from kb.api.errors import SettingError
from kb.api.store_kinds import SETTING
from kb.settings import Settings
from kb.store.backend import Backend
from kb.store.backfill import Backfill
from kb.store.protocol import Store
from kb.store.rows import VectorSpace


@contextmanager
def open_store(settings: Settings, space: VectorSpace, read_url: str | None = None) -> Iterator[Store]:
    """Open the store that the settings name.

    Args:
        read_url: the URL of replicas of a shared database.

    Raises:
        SettingError: no backend supports the URL.
        StoreError: the database cannot be opened, is incomplete, has vectors of another space, or is open in another
            engine.
    """
    with backend(settings).opened(settings, space, read_url) as store:
        with store.read() as tx:
            tx.transfer.check_whole()
        with Backfill(store):
            yield store


def backend(settings: Settings) -> Backend:
    """Return the module that opens the database.

    Raises:
        SettingError: no backend supports the URL, or a package that it needs is not installed.
    """
    kind = settings.store_kind
    try:
        return cast("Backend", import_module(kind.backend))
    except ModuleNotFoundError as error:
        name = str(error.name)
        if not kind.install or name.partition(".")[0] == kind.backend.partition(".")[0]:
            raise
        raise SettingError(
            f"{SETTING}: the package {name} is not installed. For {kind.title}, install '{kind.install}'."
        ) from error
