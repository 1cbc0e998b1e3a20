"""Another model and back: the database is what it was, also if the change is killed at any point."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

from kb.api.errors import ModelError, NotReembedding
from kb.documents.write_document import write_document
from kb.embed.models.install import install
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.ingest.chunk import Chunker
from kb.ingest.draft import draft_note, embed_draft
from kb.repair import named_model
from kb.repair.reembed import models, reembed
from kb.settings import Settings
from kb.store.rows import Filter, VectorSpace
from kb.store.sqlite.store import SqliteStore
from kb.store.sqlite.vector_space import recorded_space
from tests.support.small_models import WORDS, write_small_model
from tests.support.store_v2 import connect

pytestmark = pytest.mark.sqlite

NOTES = 24
KILLED = """
import os, signal, sys
from pathlib import Path
import kb.worker.reembed as work
from kb.repair.reembed import reembed
from kb.settings import Settings
from kb.store.sqlite.reembed_vectors import SqliteSecondVectors

point, work.SLICE, switch = int(sys.argv[2]), 4, SqliteSecondVectors.switch
steps = iter(range(point))

def step(*_):
    if next(steps, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)

def counted(self):
    step()
    done = switch(self)
    step()
    return done

SqliteSecondVectors.switch = counted
reembed(Settings(data_dir=Path(sys.argv[1]), precision="fp32"), "start", step, sys.argv[3])
step()
"""


@pytest.fixture
def data(tmp_path):
    """A data folder with notes that have vectors of one small model, and another model beside it."""
    folder = tmp_path / "data"
    files = install(str(write_small_model(tmp_path / "first", seed=1)), folder)
    write_small_model(tmp_path / "second", seed=2)
    embedder = OnnxEmbedder(files, "cpu")
    with closing(SqliteStore(folder / "kb.db", VectorSpace.of(embedder.spec, files.onnx.parent))) as store:
        for number in range(NOTES):
            add(store, embedder, number)
    return folder


def add(store, embedder, number):
    words = " ".join(WORDS[4 + (number * step) % (len(WORDS) - 4)] for step in (1, 2, 3, 5))
    with store.write() as tx:
        write_document(tx, embed_draft(draft_note(f"{words} {number}", None, embedder), embedder), f"/{number}.md", ())


def settings_of(folder):
    return Settings(data_dir=folder, precision="fp32")


def change(folder, action, model=None):
    return reembed(settings_of(folder), action, lambda *_: None, str(model) if model else None)


def contents(folder):
    """Everything in a database but the number of its changes, with the vectors."""
    with closing(connect(folder / "kb.db")) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'chunks_*_*' AND name <> 'generation'"
        )
        return {
            name: connection.execute(f'SELECT * FROM "{name}" ORDER BY 1').fetchall() for (name,) in tables.fetchall()
        }


def assert_all_vectors_are_of(folder, model):
    embedder = OnnxEmbedder(model, "cpu")
    chunker = Chunker(embedder)
    with closing(SqliteStore(folder / "kb.db", VectorSpace.of(embedder.spec))) as store, store.read() as tx:
        documents = tx.documents.page(Filter(), sort="id", limit=99, cursor=None)
        chunks = sorted((chunk for each in documents for chunk in tx.documents.chunks(each.id)), key=lambda one: one.id)
        stored = tx.index.select(Filter()).vectors(np.array([chunk.id for chunk in chunks]))
    made = embedder.embed_passages([chunker.passage(chunk.header, chunk.text) for chunk in chunks])
    assert np.abs(made - stored).max() < 1e-5


def test_a_database_that_changed_its_model_and_back_is_what_it_was(data, tmp_path):
    before = contents(data)
    there = change(data, "start", tmp_path / "second")
    assert (there.state, there.in_use.partition(" ")[0]) == ("kept", "second")
    assert contents(data)["chunks_vec"] != before["chunks_vec"]
    assert change(data, "rollback").in_use.startswith("first ")
    assert change(data, "finish").state is None
    assert contents(data) == before


def test_the_database_names_its_model_without_a_setting_or_the_default_model(data, tmp_path):
    change(data, "start", tmp_path / "second")
    embedder, in_use = named_model.open_named_model(settings_of(data))
    assert VectorSpace.of(embedder.spec) == in_use
    assert in_use.model == "second"
    shutil.move(data, tmp_path / "elsewhere")
    assert named_model.open_named_model(settings_of(tmp_path / "elsewhere"))[0].spec.name == "second"


def test_a_model_in_use_is_not_used_once_more(data, tmp_path):
    before = contents(data)
    assert change(data, "start", tmp_path / "first").in_use.startswith("first ")
    assert contents(data) == before
    with pytest.raises(NotReembedding, match="kb has only the vectors in use"):
        change(data, "rollback")


def test_a_model_that_the_database_lacks_comes_back_by_the_command_that_brought_it(data, tmp_path, monkeypatch):
    before = contents(data)
    shutil.rmtree(data / "models")
    monkeypatch.setattr(named_model, "open_embedder", unreachable)
    with pytest.raises(ModelError, match="kb cannot find the model first"):
        change(data, None)
    assert change(data, "start", tmp_path / "first").state is None
    assert change(data, None).in_use.startswith("first ")
    assert contents(data) == before


def unreachable(*_):
    raise ModelError("kb cannot download the model.")


def test_what_is_installed_and_in_use_is_in_the_list(data, tmp_path):
    change(data, "start", tmp_path / "second")
    listed = models(settings_of(data))
    assert listed.passages == NOTES
    assert {each.name for each in listed.models if each.is_installed} == {"first", "second"}
    [used] = [each for each in listed.models if each.is_in_use]
    assert used.name == "second"
    assert used.passages_per_second > 0
    assert used.seconds is not None


def test_a_model_with_a_changed_byte_is_refused_and_the_other_vectors_stay(data, tmp_path, monkeypatch):
    monkeypatch.setattr(named_model, "open_embedder", unreachable)
    [weights] = data.glob("models/first-*/model.onnx.data")
    raw = bytearray(weights.read_bytes())
    raw[100] ^= 1
    weights.write_bytes(raw)
    before = contents(data)
    with pytest.raises(ModelError, match="kb cannot find the model first"):
        change(data, None)
    assert contents(data) == before
    raw[100] ^= 1
    weights.write_bytes(raw)
    assert change(data, None).state is None


def test_notes_of_any_moment_have_vectors_of_the_model_in_use_in_the_end(data, tmp_path):
    first, second = (install(str(tmp_path / name), data) for name in ("first", "second"))
    for number, (model, action) in enumerate([(first, "start"), (second, "rollback"), (first, "rollback")], NOTES):
        embedder = OnnxEmbedder(model, "cpu")
        with closing(SqliteStore(data / "kb.db", VectorSpace.of(embedder.spec, model.onnx.parent))) as store:
            add(store, embedder, number)
        change(data, action, tmp_path / "second" if action == "start" else None)
    assert recorded_space(data / "kb.db").model == "second"
    assert_all_vectors_are_of(data, second)


@pytest.mark.slow
def test_a_change_that_is_killed_at_ten_points_goes_on_or_is_undone(data, tmp_path):
    second, killed = install(str(tmp_path / "second"), data), 0
    before = contents(data)
    for point in range(10):
        folder = tmp_path / f"killed-{point}"
        shutil.copytree(data, folder)
        command = [sys.executable, "-c", KILLED, str(folder), str(point), str(tmp_path / "second")]
        killed += subprocess.run(command, check=False).returncode == -signal.SIGKILL
        state = change(folder, None).state
        undone = tmp_path / f"undone-{point}"
        shutil.copytree(folder, undone)
        if state != "kept":
            assert change(folder, "resume").state == "kept"
        assert_all_vectors_are_of(folder, second)
        assert change(undone, "rollback").in_use.startswith("first ")
        if state == "kept":
            change(undone, "finish")
        assert contents(undone) == before
    assert killed >= 9
