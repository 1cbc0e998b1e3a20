"""Models that are fed otherwise than the default one, through the whole program."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice

import onnx
import pytest

from kb.client.client import EngineClient
from kb.embed.artifact import load_model, save_model
from kb.embed.onnx.embedder import OnnxEmbedder
from tests.http.conftest import until_idle

FED = {
    "a window of 64": {"window": 64},
    "prefixes": {"query_prefix": "query: ", "passage_prefix": "passage: "},
}
SHARE = 0.9


@pytest.fixture
def artifact(model_files, tmp_path):
    """The default model's weights in an artifact of their own; `artifact(window=64)`."""

    def make(**changes):
        manifest = replace(model_files.manifest, model="mine", **changes)
        save_model(tmp_path / "mine", onnx.load(model_files.onnx), model_files.tokenizer, manifest)
        return tmp_path / "mine"

    return make


@pytest.fixture
def abstracts(test_data):
    """So many of SciFact's, as notes."""

    def read(count):
        with (test_data / "scifact" / "corpus.jsonl").open() as corpus:
            texts = [json.loads(line) for line in islice(corpus, count)]
        return [{"text": each["text"], "title": each["title"], "source_path": each["_id"]} for each in texts]

    return read


@pytest.mark.slow
@pytest.mark.requirement("S-4")
@pytest.mark.parametrize("count", [25, pytest.param(500, marks=pytest.mark.long)])
@pytest.mark.parametrize("feeding", FED)
async def test_abstracts_are_indexed_whole_and_found(start_server, artifact, abstracts, tmp_path, feeding, count):
    notes, model = abstracts(count), artifact(**FED[feeding])
    with start_server(tmp_path / "data", KB_MODEL_DIR=str(model)) as server:
        async with EngineClient(server.url) as client:
            for note in notes:
                await client.add_note(**note)
            assert await until_idle(client) == {"queued": 0, "running": 0, "done": count, "failed": 0}
            documents = [await best_by_vector(client, note["title"]) for note in notes]
    embedder = OnnxEmbedder(load_model(model), "cpu")
    chunks = [chunk["text"] for document in documents for chunk in document["chunks"]]
    assert max(embedder.count_tokens(embedder.spec.passage_prefix + each) for each in chunks) <= embedder.spec.window
    found = [
        "".join(chunk["text"] for chunk in document["chunks"]) == note["text"]
        for document, note in zip(documents, notes, strict=True)
    ]
    assert sum(found) >= SHARE * count


async def best_by_vector(client, query):
    """The document of the best passage by vectors alone."""
    [best] = (await client.search(query=query, vec_only=True, top=1))["results"]
    return await client.document(best["document_id"])
