"""An import that was cut off: no engine starts on half of a knowledge base, and nothing else comes into it."""

from __future__ import annotations

from contextlib import closing, contextmanager
from random import Random

import pytest

from kb.access.keyring import FILE, KeyFile
from kb.api.errors import StoreError
from kb.exchange.export import export
from kb.exchange.importing import import_folder
from kb.settings import Settings
from kb.store.open import open_store
from kb.store.rows import NamedKey
from kb.store.sqlite.store import SqliteStore
from tests.support.library import Library
from tests.support.spaces import space

DIMENSIONS = 16
KEY = NamedKey("anna", "write", ("red",), None, "ab" * 32, "2026-01-31T12:00:00.000Z")


class CutOff(Exception):
    """The import is killed."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An export with its vectors."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("library"))
    with closing(SqliteStore(settings.data_dir / "kb.db", space(DIMENSIONS))) as store:
        Library(store, settings, DIMENSIONS).fill(60)
    KeyFile(settings.data_dir / FILE).add(KEY)
    folder = tmp_path_factory.mktemp("exports") / "export"
    export(settings, folder, as_notes=False, with_vectors=True)
    return folder


@pytest.fixture
def half(folder, tmp_path):
    """The settings of a knowledge base that has documents of the export, but no jobs and no keys."""
    settings = Settings(data_dir=tmp_path / "half")

    def cut_off(_: int) -> None:
        raise CutOff

    with pytest.raises(CutOff):
        import_folder(settings, folder, cut_off)
    return settings


@contextmanager
def started(settings):
    """The store as an engine opens it."""
    with open_store(settings, space(DIMENSIONS)) as store:
        yield store


def test_no_engine_starts_on_half_an_import_until_it_is_whole(half, folder):
    with pytest.raises(StoreError, match="An import into this database was interrupted"), started(half):
        pass
    came = import_folder(half, folder, lambda _: None)
    assert came.there > 0
    assert came.keys == 1
    with started(half) as store, store.read() as tx:
        assert sum(tx.counts().documents.values()) > 0
    again = import_folder(half, folder, lambda _: None)
    assert (again.added, again.there) == (0, came.added + came.there)


def test_half_an_import_is_not_exported(half, tmp_path):
    with pytest.raises(StoreError, match="An import into this database was interrupted"):
        export(half, tmp_path / "again", as_notes=False)
    assert list(tmp_path.glob("again*")) == []


def test_nothing_else_comes_into_half_an_import(half, folder, tmp_path):
    other = Settings(data_dir=tmp_path)
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS))) as store:
        Library(store, other, DIMENSIONS, Random(2)).fill(20)
    export(other, tmp_path / "second", as_notes=False, with_vectors=True)
    with pytest.raises(StoreError, match="An import into this database was interrupted"):
        import_folder(half, tmp_path / "second", lambda _: None)
    assert import_folder(half, folder, lambda _: None).keys == 1
