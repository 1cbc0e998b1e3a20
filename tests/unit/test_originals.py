"""What is kept of uploaded files, and what is not."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from kb.documents.originals import Originals
from tests.store.test_store import add, content

FILES = {name: sha256(name.encode()).hexdigest() for name in ("needed", "stray", "part", "waiting")}


@pytest.fixture
def store(make_store):
    with make_store(dimensions=8) as opened:
        yield opened


@pytest.fixture
def originals(tmp_path):
    originals = Originals(tmp_path / "files", keep=True)
    for name, digest in FILES.items():
        path = originals.path(digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.with_suffix(".part") if name == "part" else path).write_text(name)
    for foreign in ("readme.txt", "ab/readme.txt", "ab/" + "cd" * 32, f"{FILES['stray'][:2]}/{'x' * 64}"):
        (tmp_path / "files" / foreign).parent.mkdir(exist_ok=True)
        (tmp_path / "files" / foreign).write_text("foreign")
    return originals


def kept(tmp_path):
    return sorted(path.read_text() for path in (tmp_path / "files").rglob("*") if path.is_file())


def test_files_that_no_document_needs_go_and_nothing_that_is_not_ours(store, originals, tmp_path):
    with store.write() as tx:
        for name in ("needed", "waiting"):
            tx.documents.add(replace(content(name, doc_type="text"), content_hash=FILES[name]), None, ())
        note = replace(content("stray"), content_hash=FILES["stray"])
        tx.documents.add(note, None, ())
    originals.sweep_strays(store)
    assert kept(tmp_path) == ["foreign"] * 4 + ["needed", "waiting"]


def test_nothing_goes_where_the_database_is_empty(store, originals, tmp_path):
    originals.sweep_strays(store)
    assert kept(tmp_path) == sorted(["foreign"] * 4 + list(FILES))
    add(store, "one")
    originals.sweep_strays(store)
    assert kept(tmp_path) == ["foreign"] * 4
