"""kb reembed: by the engine while it runs, and in KB_DATA_DIR while none does."""

from __future__ import annotations

import shutil

import pytest

from kb.client.client import EngineClient
from tests.conftest import free_port
from tests.http.conftest import added
from tests.support.stores import Database, served_store


def models_of(folder):
    """The names of the model in use and of the other one."""
    with Database(folder)() as store, store.read() as tx:
        return tx.space.model, tx.second.get().space.model


@pytest.mark.slow
async def test_an_engine_with_another_model_says_what_to_do_and_does_it(
    outside, start_server, tmp_path, model_files, other_model
):
    data = tmp_path / "data"
    with start_server(data) as server:
        async with EngineClient(server.url) as client:
            await added(client, "The key is under the mat.")
    with start_server(data, KB_MODEL_DIR=str(other_model)) as server:
        here = {"KB_ENGINE_URL": server.url}
        shown = outside("reembed", "status", env=here)
        assert "settings  other (weights " in shown.stdout
        assert "'kb reembed' computes its vectors" in shown.stdout
        assert (
            outside("reembed", "rollback", env=here).stderr
            == "kb: kb has only the vectors in use. Start with 'kb reembed'.\n"
        )
        made = outside("reembed", "--wait", env=here)
        assert (made.returncode, made.stderr) == (0, "")
        assert "in use  other (weights " in made.stdout
        assert "'kb reembed rollback' uses them again" in made.stdout
        again = outside("reembed", env=here)
        assert (again.returncode, again.stdout) == (6, "")
        assert "kb already has vectors from other (weights " in again.stderr
        async with EngineClient(server.url) as client:
            assert (await client.status())["model"]["name"] == "other"
            [found] = (await client.search(query="Where is the key?", vec_only=True))["results"]
            assert found["text"] == "The key is under the mat."
        assert outside("reembed", "rollback", "--wait", env=here).returncode == 0
    assert models_of(data) == ("all-MiniLM-L6-v2", "other")


@pytest.mark.slow
async def test_a_database_whose_model_is_gone_is_no_dead_end(outside, start_server, tmp_path, model_files, other_model):
    data, gone = tmp_path / "data", tmp_path / "gone"
    shutil.copytree(other_model, gone)
    with start_server(data, KB_MODEL_DIR=str(gone)) as server:
        async with EngineClient(server.url) as client:
            await added(client, "The key is under the mat.")
    shutil.rmtree(gone)
    here = {"KB_MODEL_DIR": str(model_files.onnx.parent), "KB_DATA_DIR": str(data), "KB_PORT": str(free_port())}
    here |= served_store(data)
    refused = outside("serve", env=here)
    assert refused.returncode == 8
    assert "run 'kb reembed'" in refused.stderr
    del here["KB_PORT"]
    assert outside("reembed", "status", env=here).stdout.startswith("in use    other (weights ")
    made = outside("reembed", env=here)
    assert (made.returncode, made.stderr) == (0, "")
    assert models_of(data) == ("all-MiniLM-L6-v2", "other")
    with start_server(data) as server:
        async with EngineClient(server.url) as client:
            [found] = (await client.search(query="Where is the key?", vec_only=True))["results"]
            assert found["text"] == "The key is under the mat."
            assert (await client.reembed("finish"))["state"] is None
