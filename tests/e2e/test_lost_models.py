"""Models that are damaged, gone, renamed or of another shape: kb refuses them or goes on, and never mixes two models."""

from __future__ import annotations

import shutil
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from kb.api.errors import NotReembedding
from kb.client.client import EngineClient
from kb.documents.write_document import write_document
from kb.embed.artifact import load_model, write_manifest
from kb.embed.models.install import install
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.ingest.chunk import Chunker
from kb.ingest.draft import draft_note, embed_draft
from kb.store.rows import Filter, VectorSpace
from kb.store.sqlite.store import SqliteStore
from tests.conftest import ServerEnded
from tests.http.conftest import added
from tests.support.eventually import eventually_async
from tests.support.model_hub import model_hub
from tests.support.small_models import WORDS, write_small_model

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]
NOTES = 12
NOWHERE = {"HTTPS_PROXY": "http://127.0.0.1:9", "UV_OFFLINE": "1", "PIP_NO_INDEX": "1"}
"""The environment of a machine without a network."""


@pytest.fixture
def data(tmp_path):
    """A data folder whose notes have vectors of a small model, named *first*, and a raw model *second* beside it."""
    files = install(str(write_small_model(tmp_path / "first", seed=1)), tmp_path / "data")
    write_small_model(tmp_path / "second", seed=2)
    embedder = OnnxEmbedder(files, "cpu")
    with closing(SqliteStore(tmp_path / "data" / "kb.db", VectorSpace.of(embedder.spec, files.onnx.parent))) as store:
        for number in range(NOTES):
            draft = draft_note(note(number), None, embedder)
            with store.write() as tx:
                write_document(tx, embed_draft(draft, embedder), f"/{number}.md", ())
    return tmp_path / "data"


@pytest.fixture
def serve(start_server, data):
    """Starts a server over the data folder, without a network and without a setting for the model."""

    @contextmanager
    def start(**environment):
        with start_server(data, **NOWHERE | {"KB_MODEL_DIR": ""} | environment) as server:
            yield server

    return start


def note(number):
    return " ".join(WORDS[4 + (number * step) % (len(WORDS) - 4)] for step in (1, 2, 3, 5)) + f" {number}"


def folder_of(data, name):
    [found] = (data / "models").glob(f"{name}-*")
    return found


def flip(path):
    raw = bytearray(path.read_bytes())
    raw[100] ^= 1
    path.write_bytes(raw)


async def kept(client):
    return await eventually_async(
        "it is in use", client.reembedding, lambda now: now["state"] == "kept" or now["error"]
    )


async def until_other(client, name):
    return await eventually_async("it is in use", client.status, lambda now: now["model"]["name"] == name)


async def first_of(client, text):
    """The text that a search by meaning alone finds first."""
    return (await client.search(query=text, vec_only=True, top=1))["results"][0]["text"]


def assert_every_passage_has_its_vector(data, name):
    embedder = OnnxEmbedder(load_model(folder_of(data, name)), "cpu")
    chunker = Chunker(embedder)
    with closing(SqliteStore(data / "kb.db", VectorSpace.of(embedder.spec))) as store, store.read() as tx:
        documents = tx.documents.page(Filter(), sort="id", limit=99, cursor=None)
        chunks = sorted((chunk for each in documents for chunk in tx.documents.chunks(each.id)), key=lambda one: one.id)
        stored = tx.index.select(Filter()).vectors(np.array([chunk.id for chunk in chunks]))
    made = embedder.embed_passages([chunker.passage(chunk.header, chunk.text) for chunk in chunks])
    assert np.abs(made - stored).max() < 1e-5
    return len(chunks)


@pytest.mark.parametrize("file", ["model.onnx", "model.onnx.data", "tokenizer.json"])
def test_a_changed_byte_of_a_file_is_named_at_the_start_and_nothing_is_written(serve, data, file):
    path = folder_of(data, "first") / file
    flip(path)
    before = (data / "kb.db").read_bytes()
    with pytest.raises(ServerEnded) as ended, serve():
        pass
    said = str(ended.value)
    assert "first-" in said
    assert "it is damaged" in said
    assert (data / "kb.db").read_bytes() == before
    flip(path)
    with serve():
        pass


async def test_without_its_models_a_running_kb_goes_on_and_a_start_is_refused(serve, data, tmp_path):
    with serve() as server:
        async with EngineClient(server.url) as client:
            shutil.move(data / "models", tmp_path / "away")
            await added(client, "key under mat")
            assert await first_of(client, "key under mat")
    with pytest.raises(ServerEnded, match="kb cannot find the model first"), serve():
        pass
    shutil.rmtree(data / "models", ignore_errors=True)  # the start looked for a model to download
    shutil.move(tmp_path / "away", data / "models")
    with serve():
        pass
    assert assert_every_passage_has_its_vector(data, "first") == NOTES + 1


async def test_a_setting_with_a_model_of_another_shape_or_name_changes_nothing_until_it_is_wanted(
    serve, data, tmp_path, model_files
):
    renamed = tmp_path / "renamed"
    shutil.copytree(folder_of(data, "first"), renamed)
    write_manifest(renamed, replace(load_model(renamed).manifest, model="renamed"))
    for model in (model_files.onnx.parent, renamed):
        with serve(KB_MODEL_DIR=str(model)) as server:
            async with EngineClient(server.url) as client:
                assert (await client.status())["model"]["name"] == "first"
                assert await first_of(client, note(3))
                await added(client, f"key of {model.name.partition('-')[0]}")
    assert assert_every_passage_has_its_vector(data, "first") == NOTES + 2


async def test_a_download_can_be_stopped_and_begun_again(serve, tmp_path):
    with model_hub(write_small_model(tmp_path / "raw")) as hub, serve(HF_ENDPOINT=hub.url) as server:
        hub.refuses = 1000
        async with EngineClient(server.url) as client:
            await client.reembed("start", "someone/small-model")
            await eventually_async("it downloads", client.reembedding, lambda now: "downloading" in (now["step"] or ""))
            await client.reembed("rollback")
            now = await eventually_async("it has stopped", client.reembedding, lambda now: now["step"] is None)
            assert (now["state"], now["error"]) == (None, None)
            hub.refuses = 0
            await client.reembed("start", "someone/small-model")
            assert (await kept(client))["error"] is None
            await until_other(client, "small-model")


async def test_a_change_survives_kills_and_the_loss_of_either_model_with_notes_added_in_each_state(
    serve, data, tmp_path
):
    numbers = count(100)

    async def add(client):
        await added(client, note(next(numbers)))

    with serve() as server:
        async with EngineClient(server.url) as client:
            await client.reembed("start", str(tmp_path / "second"))
            server.kill()
    with serve() as server:
        async with EngineClient(server.url) as client:
            await add(client)
            if (await client.reembedding())["state"] is None:  # it was killed before it had recorded its wish
                await client.reembed("start", str(tmp_path / "second"))
            assert (await kept(client))["error"] is None
            await until_other(client, "second")
            await add(client)
    first, second = (folder_of(data, name) for name in ("first", "second"))
    shutil.move(first, tmp_path / "gone")
    with serve() as server:
        async with EngineClient(server.url) as client:
            await add(client)
            await client.reembed("rollback")
            told = await eventually_async("it says why", client.reembedding, lambda now: now["error"])
            assert "kb cannot find the model first" in told["error"]
            assert (await client.status())["model"]["name"] == "second"
            assert await first_of(client, note(3))
            shutil.move(tmp_path / "gone", first)
            await client.reembed("resume")
            await until_other(client, "first")
            await add(client)
    shutil.move(second, tmp_path / "gone")
    with serve() as server:
        async with EngineClient(server.url) as client:
            assert (await client.status())["model"]["name"] == "first"
            await add(client)
            shutil.move(tmp_path / "gone", second)
            await client.reembed("finish")
            with pytest.raises(NotReembedding):
                await client.reembed("rollback")
    assert assert_every_passage_has_its_vector(data, "first") == NOTES + 5
