"""Reads from a streaming replica, and the answers while it is behind, gone or refuses."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from io import BytesIO
from itertools import count, cycle
from time import monotonic

import httpx2
import psycopg
import pytest

from kb.api.errors import SettingError, StoreError, StoreUnavailable
from kb.app import create_app
from kb.asgi.subapps import AppContext
from kb.client.client import EngineClient
from kb.store.postgres.replica import is_at_least, last_change
from kb.store.postgres.store import PostgresStore
from kb.store.rows import Filter
from tests.conftest import free_port
from tests.http.conftest import added, finished
from tests.support.documents import content
from tests.support.eventually import eventually, eventually_async
from tests.support.pdf import pdf
from tests.support.postgres import database_url
from tests.support.postgres_cluster import Node
from tests.support.spaces import space

pytestmark = pytest.mark.postgres
ROUNDS = int(os.environ.get("KB_REPLICA_ROUNDS", "200"))
"""How many writes are looked for at once."""

OUTAGE_SECONDS = 10
"""How long after a server went it is waited for."""
"""How long a read waits for a primary that has just gone, and how long it takes to be refused after that."""

NUMBERS = count(1)
PORT = "SELECT inet_server_port()"
BUSY = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"


class Pair:
    """A primary and its streaming replica, with a database on both."""

    def __init__(self, primary, replica, name):
        self.primary, self.replica, self.name = primary, replica, name
        self.url, self.read_url = (node.url.replace("/kb", f"/{name}") for node in (primary, replica))

    def engine(self, read_url=None):
        return closing(PostgresStore(self.url, space(8), read_url=read_url or self.read_url))

    def settings(self):
        return {"KB_DATABASE_URL": self.url, "KB_DATABASE_READ_URL": self.read_url}

    def ask_replica(self, query):
        return self.replica.ask(query, dbname=self.name)


@pytest.fixture(scope="module")
def nodes():
    primary = Node(free_port())
    made = [primary]
    try:
        primary.start()
        made.append(Node(free_port(), of=primary))
        made[1].start(max_standby_streaming_delay=0, hot_standby_feedback="off")
        yield made
    finally:
        for node in made:
            node.remove()


@pytest.fixture
def pair(nodes):
    name = f"kb{next(NUMBERS)}"
    nodes[0].ask(f"CREATE DATABASE {name} ENCODING 'UTF8'")
    made = Pair(*nodes, name)
    eventually("the replica has the database", lambda: made.ask_replica("SELECT 1"))
    return made


@pytest.fixture
def paused(pair):
    """A replica that applies no changes during the test, on request."""

    def pause():
        pair.ask_replica("SELECT pg_wal_replay_pause()")
        state = "SELECT pg_get_wal_replay_pause_state()"
        eventually("it stands still", lambda: pair.ask_replica(state), lambda rows: rows == [("paused",)])

    yield pause
    pair.ask_replica("SELECT pg_wal_replay_resume()")


def add(store, text):
    with store.write() as tx:
        return tx.documents.add(content(text), None, [])


def seen(store, document_id):
    """Whether a document is there, and the port of the server that says so."""
    with store.view() as tx:
        return tx.documents.get(document_id) is not None, tx.connection.execute(PORT).get


def is_seen_at(node, store, document_id):
    """Wait for a server to say that a document is there; each one that is asked says so."""

    def port():
        is_there, port = seen(store, document_id)
        assert is_there
        return port

    eventually("it is read there", port, lambda found: found == node.port)


def test_every_write_is_found_at_once_by_the_engine_that_wrote_it_and_by_another_one(pair):
    with pair.engine() as one, pair.engine() as other:
        ports = []
        for number, (writer, reader) in zip(range(ROUNDS), cycle([(one, one), (one, other)]), strict=False):
            is_there, port = seen(reader, add(writer, f"text {number}"))
            assert is_there
            ports.append(port)
        at_replica = ports.count(pair.replica.port)
        print(f"\n{ROUNDS} writes, each looked for at once: all found, {at_replica} at the replica")
        assert at_replica


def test_a_replica_that_is_behind_is_not_asked_until_it_has_caught_up(pair, paused):
    with pair.engine() as store:
        is_seen_at(pair.replica, store, add(store, "before"))
        paused()
        later = add(store, "later")
        assert seen(store, later) == (True, pair.primary.port)
        eventually("it is told for how long", lambda: store.replica.behind and not store.replica.answers)
        pair.ask_replica("SELECT pg_wal_replay_resume()")
        is_seen_at(pair.replica, store, later)
        eventually("it is told", lambda: store.replica.answers and not store.replica.behind)


def test_new_tags_and_deletions_are_seen_as_new_documents_are(pair, paused):
    with pair.engine() as store:
        document_id = add(store, "text")
        is_seen_at(pair.replica, store, document_id)
        paused()
        with store.write() as tx:
            tx.documents.change_tags(document_id, add=["new"], remove=[])
        with store.view() as tx:
            assert tx.documents.get(document_id).tags == ("new",)
        with store.write() as tx:
            tx.documents.delete(document_id)
        assert seen(store, document_id) == (False, pair.primary.port)


def test_a_write_that_changes_nothing_is_none_that_replicas_must_have(pair):
    with pair.engine() as store, psycopg.connect(pair.url, options="-csearch_path=kb", autocommit=True) as connection:
        add(store, "text")
        before = last_change(connection)
        with store.write() as tx:
            assert tx.documents.count(Filter()) == 1
        assert last_change(connection) == before
        add(store, "another text")
        assert is_at_least(last_change(connection), before + 1)


def test_a_change_that_the_primary_does_not_show_yet_is_not_shown_either(pair):
    with pair.engine() as writer, pair.engine() as reader, ThreadPoolExecutor(1) as thread:
        is_seen_at(pair.replica, reader, add(writer, "text"))
        set_primary(pair, "SET synchronous_standby_names = 'absent'")
        try:
            waiting = thread.submit(add, writer, "it waits for a replica")
            documents = "SELECT count(*) FROM kb.documents"
            eventually("it has it", lambda: pair.ask_replica(documents), lambda rows: rows == [(2,)])
            assert pair.primary.ask(documents, dbname=pair.name) == [(1,)]
            with reader.view() as tx:
                assert tx.documents.count(Filter()) == 1
        finally:
            set_primary(pair, "RESET synchronous_standby_names")
        is_seen_at(pair.replica, reader, waiting.result())


def set_primary(pair, change):
    pair.primary.ask(f"ALTER SYSTEM {change}")
    pair.primary.ask("SELECT pg_reload_conf()")


def test_the_model_of_an_empty_database_is_seen_as_documents_are(pair, paused):
    with pair.engine() as store:
        is_seen_at(pair.replica, store, document_id := add(store, "text"))
        with store.write() as tx:
            tx.documents.delete(document_id)
        assert seen(store, document_id) == (False, pair.replica.port)
    paused()
    with closing(PostgresStore(pair.url, space(16), read_url=pair.read_url)) as store, store.view() as tx:
        assert tx.space == space(16)


def test_numbers_of_transactions_are_compared_across_their_end():
    assert is_at_least(5, 5)
    assert is_at_least(6, 5)
    assert not is_at_least(5, 6)
    assert is_at_least(3, 2**32 - 2)
    assert not is_at_least(2**32 - 2, 3)


def test_what_the_replica_ends_for_what_it_takes_over_is_read_at_the_primary(pair):
    with pair.engine() as store:

        def conflict():
            document_id = add(store, "text")
            with store.view() as tx:
                if tx.connection.execute(PORT).get != pair.replica.port:
                    return
                assert tx.documents.get(document_id)
                with store.write() as change:
                    change.documents.delete(document_id)
                while tx.documents.get(document_id):
                    pair.primary.ask("VACUUM kb.documents", dbname=pair.name)

        # It may close the connection before it has said why.
        with pytest.raises(StoreUnavailable, match=r"conflict with recovery|server closed the connection"):
            eventually("it is read at the replica", conflict)


def test_an_engine_starts_without_its_replica_and_asks_it_when_it_comes(pair):
    pair.replica.kill()
    try:
        with pair.engine() as store:
            document_id = add(store, "text")
            assert not store.replica.answers
            assert seen(store, document_id) == (True, pair.primary.port)
            pair.replica.start()
            is_seen_at(pair.replica, store, document_id)
    finally:
        if not pair.replica.process.is_running():
            pair.replica.start()


@pytest.fixture
def frozen(pair):
    yield pair.replica.freeze
    pair.replica.thaw()


def test_a_replica_that_stands_still_is_left_and_an_engine_that_asked_it_ends(pair, frozen):
    with pair.engine() as store:
        document_id = add(store, "text")
        is_seen_at(pair.replica, store, document_id)
        frozen()
        assert seen(store, document_id) == (True, pair.primary.port)
        eventually("it is told", lambda: not store.replica.answers)
        pair.replica.thaw()
        is_seen_at(pair.replica, store, document_id)
        frozen()


def test_of_several_replicas_one_that_is_there_is_asked(pair):
    gone = free_port()
    url = pair.read_url.replace("127.0.0.1:", f"127.0.0.1:{gone},127.0.0.1:")
    with pair.engine(url) as store:
        is_seen_at(pair.replica, store, add(store, "text"))


def test_a_primary_is_no_replica_and_is_asked_as_the_primary(pair):
    with pair.engine(pair.url) as store:
        assert not store.replica.answers
        assert seen(store, add(store, "text")) == (True, pair.primary.port)


def test_a_replica_of_another_database_is_refused(pair, tmp_path):
    other = database_url(tmp_path)
    any_server = f"{other}{'&' if '?' in other else '?'}target_session_attrs=any"
    with pytest.raises(StoreError, match="KB_DATABASE_READ_URL: this server is not a replica"):
        PostgresStore(pair.url, space(8), read_url=any_server)
    with pytest.raises(StoreError, match="KB_DATABASE_READ_URL: this server is not a replica"):
        PostgresStore(pair.url, space(8), read_url=pair.read_url.replace(f"/{pair.name}", "/postgres"))


@pytest.mark.parametrize("url", [None, "sqlite:///kb.db"])
def test_replicas_of_a_file_are_refused(url):
    environment = {"KB_DATABASE_READ_URL": "postgresql://127.0.0.1:1/kb"} | ({"KB_DATABASE_URL": url} if url else {})
    with pytest.raises(SettingError, match="KB_DATABASE_READ_URL: replicas need PostgreSQL"):
        create_app(AppContext(environment))


def test_an_address_of_replicas_that_cannot_be_read_is_refused_and_its_password_is_not_told(pair):
    with pytest.raises(SettingError, match="KB_DATABASE_READ_URL is not a valid URL") as refused:
        PostgresStore(pair.url, space(8), read_url="postgresql://kb:a@secret@127.0.0.1:1/kb")
    assert "secret" not in str(refused.value)


def reads(server):
    """How many reads the replica did, and how many the primary in its place."""
    lines = httpx2.get(f"{server.url}/metrics").text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if line.startswith("kb_replica"))
    return [float(values[f'kb_replica_reads_total{{at="{at}"}}']) for at in ("replica", "primary")]


@pytest.fixture
def server(start_server, tmp_path, pair):
    with start_server(tmp_path, KB_APPS="api,metrics", **pair.settings()) as running:
        yield running


async def read_at_the_replica(server, ask):
    """The answer of `ask`, once it was read at the replica: on a busy machine that may be behind for a moment."""

    async def answer():
        before = reads(server)[0]
        return await ask(), reads(server)[0] > before

    return (await eventually_async("the replica is read", answer, lambda found: found[1]))[0]


async def test_everything_that_is_read_can_be_read_at_the_replica(server):
    async with EngineClient(server.url) as api, httpx2.AsyncClient(base_url=f"{server.url}/api/v1") as http:
        note = await added(api, "Ledgers were kept by patient clerks.", source_path="/a/ledger", tags=["old"])
        await api.update_note(note, "Ledgers were kept by impatient clerks.")
        await added(api, "Clerks kept the ledgers.", source_path="/a/clerks")
        gone = await added(api, "It is thrown away.")
        await api.delete_document(gone)
        upload = await api.add_file("pages.pdf", BytesIO(pdf("A page of a book.")))
        file = (await finished(api, upload))["document_id"]
        asked = {
            "search": lambda: api.search(query="ledgers", explain=True),
            "words": lambda: api.search(query='"impatient clerks"', fts_only=True),
            "misspelled": lambda: api.search(query="legders", tags=["old"], after="2001-01-01T00:00:00Z"),
            "exact": lambda: api.search(query="ledgers", vec_only=True, exact=True, group_by="document"),
            "similar": lambda: api.similar(note, top=5),
            "list": lambda: api.documents(source_prefix="/a/", sort="recent", total=True),
            "document": lambda: api.document(note),
            "former document": lambda: api.document(note, version=1),
            "text": lambda: api.text(note, unit="lines", start=1, end=1),
            "file": lambda: api.file(file),
            "pages": lambda: api.pages(file),
            "picture": lambda: api.page_picture(file, 1),
            "history": lambda: api.history(note),
            "version": lambda: api.version(note, 1),
            "diff": lambda: api.diff(note, 1),
            "bin": api.bin,
            "map": api.map,
            "tags": lambda: http.get("/tags"),
        }
        found = {name: await read_at_the_replica(server, ask) for name, ask in asked.items()}
    assert {each["document_id"] for each in found["search"]["results"]} >= {note}
    for name in ("words", "misspelled", "exact", "similar"):
        assert found[name]["results"], name
    assert found["list"]["total"] == 2
    assert found["text"]["text"] == "Ledgers were kept by impatient clerks."
    assert found["pages"]["pages"] == 1
    assert found["version"]["text"] == "Ledgers were kept by patient clerks."
    assert [each["id"] for each in found["bin"]["documents"]] == [gone]
    assert found["map"]["total"] == 3
    assert found["tags"].json()["tags"] == [{"tag": "old", "documents": 1, "branch": 1}]


async def test_a_note_is_found_by_the_next_search_at_another_engine(start_server, tmp_path, pair):
    with (
        start_server(tmp_path / "one", KB_APPS="api,metrics", **pair.settings()) as one,
        start_server(tmp_path / "other", KB_APPS="api,metrics", **pair.settings()) as other,
    ):
        async with EngineClient(one.url) as writer, EngineClient(other.url) as reader:
            for number in range(ROUNDS // 10):
                note = await added(writer, f"Box {number} is in the attic.")
                found = await reader.search(query=f"box {number} attic", top=1)
                assert [each["document_id"] for each in found["results"]] == [note]
        assert reads(other)[0]


class Searches:
    """Searches that go on until they are stopped, and how each was answered."""

    def __init__(self, server):
        self.server = server
        self.statuses = []
        self.is_stopped = False

    async def run(self):
        async with httpx2.AsyncClient(base_url=f"{self.server.url}/api/v1") as http:
            while not self.is_stopped:
                answer = await http.post("/search", json={"query": "patient clerks"})
                self.statuses.append(answer.status_code)
                if answer.status_code == 200:
                    assert answer.json()["results"], "the answer is empty"

    async def more(self):
        """Wait for some more answers."""
        so_far = len(self.statuses)
        await eventually_async("searches go on", lambda: len(self.statuses) >= so_far + 10)


@pytest.fixture
async def searches(server):
    """Four at a time."""
    async with EngineClient(server.url) as api:
        await added(api, "Ledgers were kept by patient clerks.")
    under_way = Searches(server)
    tasks = [asyncio.create_task(under_way.run()) for _ in range(4)]
    await under_way.more()
    yield under_way
    under_way.is_stopped = True
    await asyncio.gather(*tasks)
    assert set(under_way.statuses) == {200}


async def is_read_at_the_replica(server):
    before = reads(server)[0]
    await eventually_async("the replica is asked", lambda: reads(server)[0] > before)


async def test_no_search_is_refused_while_the_replica_is_killed_and_comes_back(server, pair, searches):
    try:
        for _ in range(2):
            await is_read_at_the_replica(server)
            await asyncio.to_thread(pair.replica.kill)
            await searches.more()
            await asyncio.to_thread(pair.replica.start)
        await is_read_at_the_replica(server)
    finally:
        if not pair.replica.process.is_running():
            pair.replica.start()


async def test_while_the_primary_is_gone_a_read_is_refused_without_more_waiting_and_sees_everything_afterwards(
    server, pair
):
    async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1") as http, EngineClient(server.url) as api:
        note = await added(api, "The lighthouse keeper counts ships.")
        await read_at_the_replica(server, lambda: api.search(query="lighthouse"))
        await asyncio.to_thread(pair.primary.kill)
        try:
            asked = {"/search": {"query": "lighthouse"}, "/documents": None}
            began = monotonic()
            first = await http.post("/search", json=asked["/search"])
            assert (first.status_code, first.headers["Retry-After"]) == (503, "5")
            assert monotonic() - began < 2 * OUTAGE_SECONDS  # it is not repeated
            for path, body in asked.items():
                began = monotonic()
                refused = await (http.post(path, json=body) if body else http.get(path))
                assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
                assert monotonic() - began < OUTAGE_SECONDS  # nor do later ones wait again
        finally:
            await asyncio.to_thread(pair.primary.start)
        answer = await eventually_async(
            "it answers again",
            lambda: http.post("/search", json=asked["/search"]),
            lambda found: found.status_code == 200,
        )
        assert [each["document_id"] for each in answer.json()["results"]] == [note]


async def test_no_search_is_refused_while_the_replica_is_frozen(server, pair, frozen, searches):
    for _ in range(2):
        await is_read_at_the_replica(server)
        frozen()
        async with EngineClient(server.url) as api:
            await eventually_async("it is told", api.status, lambda status: not status["replica"]["answers"])
        await searches.more()
        pair.replica.thaw()
    await is_read_at_the_replica(server)


async def test_no_search_is_refused_while_the_replica_ends_statements_and_connections(server, pair, searches):
    for act in ("pg_cancel_backend", "pg_terminate_backend"):
        for _ in range(10):
            await is_read_at_the_replica(server)
            with suppress(psycopg.Error):
                await asyncio.to_thread(pair.ask_replica, f"SELECT {act}(pid) {BUSY}")
            await searches.more()


async def test_no_search_is_refused_while_the_replica_stands_still(server, pair, paused, searches):
    await is_read_at_the_replica(server)
    paused()
    async with EngineClient(server.url) as api:
        note = await added(api, "It was written while the replica stood still.")
        assert (await api.search(query="stood still", top=1))["results"][0]["document_id"] == note
        await eventually_async("it is told", api.status, lambda status: not status["replica"]["answers"])
    await searches.more()
    pair.ask_replica("SELECT pg_wal_replay_resume()")
    await is_read_at_the_replica(server)
