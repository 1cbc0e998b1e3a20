"""Another model recomputes every vector while searches continue, even if the engine is killed repeatedly."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from dataclasses import dataclass, field, fields
from itertools import islice

import numpy as np
import pytest

from kb.api.errors import EngineUnreachable, NotReembedding
from kb.client.client import EngineClient
from kb.documents.write_document import write_document
from kb.embed.artifact import load_model
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.ingest.chunk import Chunker
from kb.ingest.draft import draft_note, embed_slices, embedded_contents
from kb.store.rows import Filter, VectorSpace
from tests.conftest import free_port
from tests.support.eventually import eventually_async
from tests.support.stores import Database

SAME = 1e-4


@pytest.fixture(scope="module")
def sentences(test_data):
    """So many sentences of SciFact's abstracts, each once."""

    def read(count):
        with (test_data / "scifact" / "corpus.jsonl").open() as corpus:
            texts = (json.loads(line)["text"] for line in corpus)
            found = (each for text in texts for each in re.split(r"(?<=\.) ", text) if len(each) > 40)
            return list(islice(dict.fromkeys(found), count))

    return read


def opened(folder, embedder, model=None):
    """The store that is tried, as a server with this data directory has it."""
    return Database(folder)(**vars_of(VectorSpace.of(embedder.spec, model)))


def vars_of(of):
    return {each.name: getattr(of, each.name) for each in fields(of)}


def fill(folder, embedder, texts, model=None):
    """A new database with a note for each text."""
    with opened(folder, embedder, model) as store:
        for start in range(0, len(texts), 256):
            drafts = [draft_note(text, None, embedder) for text in texts[start : start + 256]]
            contents = embedded_contents(drafts, list(embed_slices(drafts, embedder)))
            with store.write() as tx:
                for content in contents:
                    write_document(tx, content, None, [])
                tx.documents.write_names(len(contents))


def chunks_of(store):
    """The header, the text and the vector of each chunk, by the chunk's id."""
    with store.read() as tx:
        documents = tx.documents.page(Filter(), sort="id", limit=1 << 30, cursor=None)
        chunks = {chunk.id: chunk for document in documents for chunk in tx.documents.chunks(document.id)}
        ids = sorted(chunks)
        vectors = tx.index.select(Filter()).vectors(np.array(ids))
        return {
            chunk_id: (chunks[chunk_id].header, chunks[chunk_id].text, vector)
            for chunk_id, vector in zip(ids, vectors, strict=True)
        }


def assert_same_vectors(folder, embedder):
    """Each chunk has the vector that the model makes of it."""
    chunker = Chunker(embedder)
    with opened(folder, embedder) as store:
        rows = chunks_of(store).values()
    made = embedder.embed_passages([chunker.passage(header, text) for header, text, _ in rows])
    assert np.abs(made - np.stack([vector for _, _, vector in rows])).max() < SAME


@dataclass
class Engine:
    """An engine with the other model in its settings, killed and started again."""

    start_server: object
    data: object
    model: object
    port: int = field(default_factory=free_port)
    searches: int = 0
    missed: int = 0

    def start(self):
        return self.start_server(self.data, port=self.port, KB_MODEL_DIR=str(self.model))

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    async def search_on(self, texts, ended):
        """Look for texts again and again until the end: each is found first, whenever the engine runs."""
        async with EngineClient(self.url) as api:
            for number in range(10**9):
                if ended.is_set():
                    return
                text = texts[number * 7 % len(texts)]
                with suppress(EngineUnreachable):
                    [first] = (await api.search(query=text, top=1))["results"]
                    self.searches += 1
                    self.missed += first["text"] != text
                await asyncio.sleep(0.01)

    async def searched(self):
        """Wait for a search."""
        before = self.searches

        async def count():
            return self.searches

        await eventually_async("searches go on", count, lambda now: now > before)


async def reached(api, share):
    """Wait until so much is done, or all."""

    async def state():
        return await api.reembedding()

    return await eventually_async(
        f"{share} is done", state, lambda now: now["state"] == "kept" or now["done"] >= share * now["total"]
    )


async def change(api, number):
    """Add a note, change another and delete a third."""
    added = await api.add_note(text=f"The clerk number {number} keeps a ledger.", wait=30)
    await api.update_note(20 + number, f"Rewritten by the clerk number {number}.")
    await api.delete_document(40 + number)
    return added["document_id"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "kills"), [(200, 2), pytest.param(10_000, 10, marks=[pytest.mark.long, pytest.mark.timeout(3600)])]
)
async def test_vectors_are_made_anew_while_searches_go_on_and_the_engine_is_killed(
    start_server, tmp_path, model_files, embedder, other_model, sentences, count, kills
):
    texts, other = sentences(count), OnnxEmbedder(load_model(other_model), "cpu")
    engine = Engine(start_server, tmp_path / "data", other_model)
    engine.data.mkdir()
    fill(engine.data, embedder, texts, model_files.onnx.parent)
    kept = texts[100:]
    ended = asyncio.Event()
    dones = []
    with engine.start() as server:
        async with EngineClient(engine.url) as api:
            assert "'kb reembed'" in server.log.read_text()
            state = await api.reembedding()
            assert (state["in_use"], state["wanted"]) == tuple(
                str(VectorSpace.of(each.spec)) for each in (embedder, other)
            )
            with pytest.raises(NotReembedding):
                await api.reembed("resume")
            searching = asyncio.create_task(engine.search_on(kept, ended))
            assert (await api.reembed("start"))["state"] == "building"
            await change(api, 0)
            dones.append((await reached(api, 1 / (kills + 2)))["done"])
        server.kill()
    for kill in range(1, kills + 1):
        with engine.start() as server:
            async with EngineClient(engine.url) as api:
                state = await api.reembedding()
                assert state["state"] in ("building", "kept"), state
                assert state["done"] >= dones[-1] - 64, "what was made is not made once more"
                if kill == 1:
                    assert (await api.reembed("stop"))["state"] == "stopped"
                    assert (await api.reembed("resume"))["state"] == "building"
                await change(api, kill)
                dones.append((await reached(api, (kill + 1) / (kills + 2)))["done"])
                if kill < kills:
                    server.kill()
                    continue
                state = await reached(api, 2)
                assert (state["state"], state["in_use"]) == ("kept", state["wanted"])
                await change(api, kills + 1)
                await engine.searched()
    assert engine.searches > 10 * kills
    assert engine.missed == 0
    print(f"\n{count} documents, {kills} kills at {dones}, {engine.searches} searches, {engine.missed} missed")
    assert_same_vectors(engine.data, other)
    with engine.start() as server:
        async with EngineClient(engine.url) as api:
            assert (await api.reembed("rollback"))["state"] == "returning"
            state = await reached(api, 2)
            assert state["in_use"] == str(VectorSpace.of(embedder.spec))
            ended.set()
            await searching
            assert (await api.reembed("finish"))["state"] is None
    assert engine.missed == 0
    assert_same_vectors(engine.data, embedder)
