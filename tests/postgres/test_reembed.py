"""Several engines over one database: one makes the vectors of another model, and all go by them afterwards."""

from __future__ import annotations

import asyncio
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import numpy as np
import onnx
import psycopg
import pytest

from kb.api.errors import KbError, ModelChanged, NotReembedding, StoreUnavailable, Unavailable
from kb.client.client import EngineClient
from kb.embed.artifact import WEIGHTS, load_model, save_model
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.ingest.chunk import Chunker
from kb.settings import Settings
from kb.store.postgres import reembed_vectors
from kb.store.postgres.opening import moment
from kb.store.postgres.store import PostgresStore
from kb.store.rows import Filter, NewJob, VectorSpace
from tests.http.conftest import added, finished, until_idle
from tests.postgres.test_engines import until_gone
from tests.store.test_second_vectors import FIRST, SAME_LENGTH, complete, late_content, nearest, switch
from tests.store.test_vectors import fill, found
from tests.support.eventually import eventually, eventually_async
from tests.support.model_hub import model_hub
from tests.support.postgres import database_url
from tests.support.small_models import write_small_model

pytestmark = pytest.mark.postgres
NOTES = 150


@pytest.fixture
def url(tmp_path):
    return database_url(tmp_path)


def engine(url, of=FIRST):
    return closing(PostgresStore(url, of))


def takes(store):
    with store.write() as tx:
        return tx.second.take()


def begun(store, of=SAME_LENGTH):
    with store.write() as tx:
        tx.second.begin(of)


def test_one_of_the_engines_makes_them_and_another_one_when_that_is_gone(url):
    with engine(url) as other:
        with engine(url) as first:
            fill(first, 2)
            begun(first)
            assert takes(first)
            assert not takes(other)
            assert takes(first), "it goes on"
        until_gone(url)
        assert takes(other)


def test_one_that_hangs_is_relieved(url):
    with engine(url) as hung, engine(url) as other:
        fill(hung, 1)
        begun(hung)
        assert takes(hung)
        with other.write() as tx:
            late = f"interval '{reembed_vectors.HUNG_SECONDS + 1} seconds'"
            tx.connection.execute(f"UPDATE second_space SET heartbeat_at = heartbeat_at - {late}")
        assert takes(other)
        assert not takes(hung)


def test_after_the_switch_every_engine_sees_the_other_vectors_and_takes_none_of_the_former_model(url):
    with engine(url) as one, engine(url) as other:
        fill(one, 3)
        complete(one, SAME_LENGTH)
        assert found(other, 7) == ["text 7"]
        assert switch(one)
        assert nearest(other, "text 7", SAME_LENGTH) == "text 7"
        with pytest.raises(ModelChanged), other.write() as tx:
            tx.documents.replace(1, late_content(FIRST))
        with other.write() as tx:
            tx.documents.replace(1, late_content(SAME_LENGTH))


def test_a_switch_waits_for_no_reader_and_who_deletes_says_that_somebody_reads(url):
    with engine(url) as store, psycopg.connect(url) as backup:
        fill(store, 1)
        complete(store, SAME_LENGTH)
        for table in ("vectors_a", "vectors_b"):
            backup.execute(f"SELECT count(*) FROM kb.{table}")
        assert switch(store)
        with pytest.raises(StoreUnavailable, match="Another program"), store.write() as tx:
            tx.second.discard()
        backup.rollback()
        with store.write() as tx:
            tx.second.discard()
            assert tx.second.get() is None
        assert nearest(store, "text 7", SAME_LENGTH) == "text 7"


def test_while_a_database_is_exported_who_begins_is_refused_and_nobody_waits_for_the_export(url):
    def refused_to_begin(store):
        with pytest.raises(StoreUnavailable, match="Another program"):
            begun(store)

    def write(store):
        with store.write() as tx:
            tx.jobs.add(NewJob("note", text="text"))

    def count(store):
        with store.read() as tx:
            tx.second.counts()

    with engine(url) as store, engine(url) as other, ThreadPoolExecutor() as pool:
        fill(store, 1)
        with moment(Settings(database_url=url)):
            refusal = pool.submit(refused_to_begin, store)
            eventually("it wants the vectors for itself", lambda: is_waiting_for_vectors(url))
            meanwhile = [pool.submit(do, other) for do in (write, count)]
            assert found(other, 7)
            for each in (refusal, *meanwhile):
                each.result()
        begun(store)


def is_waiting_for_vectors(url):
    waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted)"
    with psycopg.connect(url) as connection:
        return connection.execute(waiting).fetchone()[0]


def test_vectors_that_no_index_holds_are_refused(url):
    with engine(url) as store, pytest.raises(NotReembedding, match="more than 4000 numbers"):
        begun(store, replace(FIRST, dimensions=4001))


async def state_of(api):
    return (await api.reembedding())["state"]


async def until_kept(api):
    await eventually_async("the vectors are in use", lambda: state_of(api), lambda state: state == "kept")


def assert_same_vectors(url, embedder):
    """Check that each chunk has its vector by the model."""
    with engine(url, VectorSpace.of(embedder.spec)) as store, store.read() as tx:
        documents = tx.documents.page(Filter(), sort="id", limit=10_000, cursor=None)
        chunks = [chunk for document in documents for chunk in tx.documents.chunks(document.id)]
        chunks.sort(key=lambda chunk: chunk.id)
        vectors = tx.index.select(Filter()).vectors(np.array([chunk.id for chunk in chunks]))
    chunker = Chunker(embedder)
    made = embedder.embed_passages([chunker.passage(chunk.header, chunk.text) for chunk in chunks])
    assert np.abs(made - vectors).max() < 1e-4
    return len(chunks)


async def test_an_engine_takes_up_what_a_killed_one_began_while_both_answer(
    start_server, tmp_path, url, other_model, embedder
):
    """The second engine has the first model in its settings, and finds the other one where the database says it is."""
    shared = {"KB_DATABASE_URL": url}
    ended, missed = asyncio.Event(), []
    with (
        start_server(tmp_path / "one", **shared) as first,
        start_server(tmp_path / "two", **shared) as second,
    ):
        async with EngineClient(second.url) as api:
            jobs = [await api.add_note(text=f"The keeper number {number} has a ledger.") for number in range(NOTES)]
            await until_idle(api)
        first.stop()
        with start_server(tmp_path / "one", KB_MODEL_DIR=str(other_model), **shared) as first:
            async with EngineClient(first.url) as killed, EngineClient(second.url) as api:
                searching = asyncio.create_task(search_on(api, ended, missed))
                assert (await killed.reembed("start"))["state"] == "building"
                first.kill()
                late = [await api.add_note(text=f"The late keeper number {number}.") for number in range(20)]
                await until_kept(api)
                assert (await api.reembedding())["in_use"].startswith("other (weights ")
                for job in late:
                    await finished(api, job)
                await added(api, "The very last keeper.")
                ended.set()
                await searching
                assert missed == []
                with pytest.raises(NotReembedding):
                    await api.reembed("stop")
    made = assert_same_vectors(url, OnnxEmbedder(load_model(other_model), "cpu"))
    assert made == len(jobs) + len(late) + 1


async def search_on(api, ended, missed):
    """Look for notes again and again until the end: each is found first, and a refusal says that a model is loaded."""
    number = 0
    while not ended.is_set():
        number = (number + 7) % NOTES
        text = f"The keeper number {number} has a ledger."
        try:
            [first] = (await api.search(query=text, top=1))["results"]
            missed += [text] if first["text"] != text else []
        except Unavailable as error:
            missed += [] if "The vectors are now of other" in error.detail else [error.detail]


def test_a_worker_alone_makes_them_and_does_its_jobs_with_the_other_model(
    start_server, tmp_path, url, other_model, embedder
):
    other = OnnxEmbedder(load_model(other_model), "cpu")

    def add(store, text):
        with store.write() as tx:
            job_id = tx.jobs.add(NewJob("note", text=text))
        eventually("the job has ended", lambda: job(store, job_id).status, lambda status: status == "done")

    with (
        engine(url, VectorSpace.of(embedder.spec)) as store,
        start_server(tmp_path / "worker", program=("kb_cli.main", "worker"), KB_DATABASE_URL=url),
    ):
        for number in range(3):
            add(store, f"The keeper number {number} has a ledger.")
        begun(store, VectorSpace.of(other.spec, other_model))
        eventually("the vectors are in use", lambda: second(store).state, lambda state: state == "kept")
        add(store, "The very last keeper.")
    assert assert_same_vectors(url, other) == 4


def job(store, job_id):
    with store.read() as tx:
        return tx.jobs.get(job_id)


def second(store):
    with store.read() as tx:
        return tx.second.get()


async def refused(api):
    """The error of a semantic search."""
    try:
        await api.search(query="Where is the key?")
    except KbError as error:
        return error
    return None


async def test_an_engine_that_does_not_find_the_model_says_so_leaves_the_work_to_others_and_comes_back(
    start_server, tmp_path, url, model_files
):
    gone, away = tmp_path / "gone", tmp_path / "away"
    sources = model_files.manifest.sources | {WEIGHTS: "ab" * 32}
    manifest = replace(model_files.manifest, model="gone", sources=sources, passage_prefix="passage: ")
    save_model(gone, onnx.load(model_files.onnx), model_files.tokenizer, manifest)
    shared = {"KB_DATABASE_URL": url}
    with start_server(tmp_path / "one", **shared) as lost:
        async with EngineClient(lost.url) as api:
            await added(api, "The key is under the mat.")
            lost.process.send_signal(signal.SIGSTOP)  # it sees nothing of what comes now
            with start_server(tmp_path / "two", KB_MODEL_DIR=str(gone), **shared) as other:
                async with EngineClient(other.url) as able:
                    await able.reembed("start")
                    await until_kept(able)
                    shutil.move(gone, away)
                    lost.process.send_signal(signal.SIGCONT)
                    error = await eventually_async("it is refused", lambda: refused(api))
                    assert (error.status, "The vectors are now of gone" in error.detail) == (503, True)
                    assert (await api.search(query="key mat", fts_only=True))["results"]
                    told = await eventually_async("it says why", api.reembedding, lambda state: state["error"])
                    assert "cannot find the model" in told["error"]
                    job = await finished(api, await api.add_note(text="The spare key is in the shed."))
                    assert job["status"] == "done"
            shutil.move(away, gone)
            await eventually_async("it answers again", lambda: refused(api), lambda error: error is None)
            assert await added(api, "The third key is lost.")
    assert_same_vectors(url, OnnxEmbedder(load_model(gone), "cpu"))


async def test_a_model_of_the_hub_is_used_by_name_while_both_engines_answer_and_given_back(start_server, tmp_path, url):
    """The second engine finds the installed model where the database says it is."""
    text, shared = "The key is under the mat.", {"KB_DATABASE_URL": url}
    with (
        model_hub(write_small_model(tmp_path / "raw")) as hub,
        start_server(tmp_path / "one", HF_ENDPOINT=hub.url, **shared) as one,
        start_server(tmp_path / "two", HF_ENDPOINT="http://127.0.0.1:9", **shared) as two,
    ):
        hub.breaks = [1000, 2000]
        async with EngineClient(one.url) as first, EngineClient(two.url) as second:
            await added(first, text)
            before = stored_vectors(url)
            await first.reembed("start", "someone/small-model")
            await until_kept(first)
            for each in (first, second):
                await until_model(each, "small-model")
                [found] = (await each.search(query="Where is the key?", vec_only=True))["results"]
                assert found["text"] == text
            listed = (await second.models())["models"]
            assert [each["name"] for each in listed if each["is_in_use"]] == ["small-model"]
            await second.reembed("rollback")
            for each in (first, second):
                await until_model(each, "all-MiniLM-L6-v2")
            await second.reembed("finish")
            assert stored_vectors(url) == before
    assert [begin for name, begin in hub.asked if name == "model.safetensors"] == [0, 1000, 3000]


async def until_model(api, name):
    await eventually_async(f"it uses {name}", api.status, lambda now: now["model"]["name"] == name)


def stored_vectors(url):
    """The vectors in use, as PostgreSQL has them."""
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT to_regclass('kb.vectors_a'), to_regclass('kb.vectors_b')").fetchone()
        return [
            row for table in filter(None, tables) for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1")
        ]
