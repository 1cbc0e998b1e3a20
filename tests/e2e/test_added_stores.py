"""A package outside kb adds a store; kb says what is wrong with one that it cannot use."""

from __future__ import annotations

import os
import subprocess
import tomllib

import httpx2
import pytest

from kb.api import store_kinds
from kb.api.errors import SettingError
from kb.api.store_kinds import GROUP, store_kind
from kb.backup.make import back_up
from kb.settings import Settings
from kb.store.open import backend
from tests.conftest import ROOT
from tests.docs.blocks import blocks

pytestmark = pytest.mark.sqlite
PAGE = ROOT / "docs/add-a-store.md"
KIND = "from kb.api.store_kinds import StoreKind\nKIND = StoreKind('Boxes', {})\n"
BROKEN = {
    "broken": ("import nothing_of_that_name", "KB_DATABASE_URL: broken:KIND fails with ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    "ends": ("import sys; sys.exit('bye')", "KB_DATABASE_URL: ends:KIND fails with SystemExit: bye"),
    "without": ("", "KB_DATABASE_URL: without:KIND fails with AttributeError: module 'without' has no attribute 'KIND'"),
    "other": ("KIND = 'other'", "KB_DATABASE_URL: other:KIND fails with TypeError: 'other' is not a StoreKind"),
}  # fmt: skip


def install(folder, scheme, value, **modules):
    """Put modules into a folder, with the metadata of an installed package that has this entry point."""
    for module, code in modules.items():
        (folder / f"{module}.py").write_text(code)
    metadata = folder / f"kb_{scheme}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: kb-{scheme}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{scheme} = {value}\n")


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs a package for this process."""
    monkeypatch.syspath_prepend(tmp_path)
    return lambda *arguments, **modules: install(tmp_path, *arguments, **modules)


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """The package on the page."""
    folder = tmp_path_factory.mktemp("packages")
    made = next(block.text for block in blocks(PAGE))
    subprocess.run(["bash", "-euc", made], env=os.environ | {"HOME": str(folder)}, check=True)
    source = folder / "kb-timed"
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    [(scheme, value)] = project["entry-points"][GROUP].items()
    install(folder, scheme, value, **{each.stem: each.read_text() for each in source.glob("*.py")})
    return folder


def test_the_store_on_the_page_keeps_notes_that_searches_and_backups_find(
    start_server, packages, tmp_path, monkeypatch
):
    url = f"timed:///{tmp_path}/elsewhere/mine.db"
    with (
        start_server(tmp_path / "data", PYTHONPATH=str(packages), KB_DATABASE_URL=url) as server,
        httpx2.Client(base_url=f"{server.url}/api/v1") as engine,
    ):
        job = engine.post("jobs", params={"wait": 30}, json={"text": "The oars are in the shed."}).json()
        [found] = engine.post("search", json={"query": "oars"}).json()["results"]
        assert found["document_id"] == job["document_id"]
    assert "a write took 0." in server.log.read_text()
    monkeypatch.syspath_prepend(packages)
    settings = Settings(data_dir=tmp_path / "data", database_url=url)
    assert back_up(settings, tmp_path / "backups", 1).manifest.counts["documents"] == 1


@pytest.mark.parametrize("scheme", BROKEN)
def test_a_store_that_cannot_be_used_is_refused_with_the_reason(scheme, installed):
    code, reason = BROKEN[scheme]
    installed(scheme, f"{scheme}:KIND", **{scheme: code})
    with pytest.raises(SettingError) as refused:
        Settings.read({"KB_DATABASE_URL": f"{scheme}://secret"})
    assert refused.value.detail == reason


def test_a_url_without_a_store_is_refused_with_the_schemes_that_are_installed(installed):
    installed("boxes", "boxes:KIND", boxes=KIND.format("'boxes_backend'"))
    for url in ("mine://secret@host/kb", "secret", "boxes:secret"):
        with pytest.raises(
            SettingError, match="stores have the schemes boxes, postgres, postgresql, sqlite; "
        ) as refused:
            store_kind(url)
        assert "secret" not in refused.value.detail


def test_a_store_whose_driver_is_missing_names_what_to_install(installed):
    code = KIND.format("'absent_driver_user', install='kb-boxes[driver]'")
    installed("absent", "absent:KIND", absent=code, absent_driver_user="import absent_driver")
    expected = "the package absent_driver is not installed. For Boxes, install 'kb-boxes\\[driver\\]'"
    with pytest.raises(SettingError, match=expected):
        backend(Settings(database_url="absent:///a.db"))


def test_no_package_replaces_a_store_of_kb(installed):
    code = KIND.format("'other_backend'")
    installed("postgresql", "replaces:KIND", replaces=code)
    assert store_kind("postgresql://host/kb").title == "PostgreSQL"


@pytest.mark.parametrize("url", [None, "sqlite:////srv/kb.db"])
def test_a_start_with_sqlite_searches_for_no_packages(url, monkeypatch):
    monkeypatch.setattr(store_kinds, "entry_points", None)
    assert store_kind(url) == store_kinds.SQLITE
