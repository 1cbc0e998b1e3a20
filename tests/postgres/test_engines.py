"""Several engines share a database."""

from __future__ import annotations

import random
import string
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import chain

import psycopg
import pytest

from kb.api.errors import Invalid, LeaseLost, SettingError, StoreError, StoreUnavailable
from kb.app import create_app
from kb.asgi.subapps import AppContext
from kb.parser.extracting_sandbox import ExtractingSandbox
from kb.parser.extractors import Extractors
from kb.parser.sandbox import Limits
from kb.settings import Settings
from kb.store.backfill import Backfill
from kb.store.migrations import FIRST, migrations
from kb.store.postgres import migrate
from kb.store.postgres.connection import conninfo, process_name
from kb.store.postgres.jobs import ENGINES
from kb.store.postgres.opening import space_in_use
from kb.store.postgres.statements import statements
from kb.store.postgres.store import PostgresStore
from kb.store.rows import Filter, NewJob, VectorSpace
from tests.support.documents import content
from tests.support.eventually import SECONDS, eventually
from tests.support.postgres import database_url
from tests.support.spaces import space
from tests.support.workers import job_of, new_worker, queued, working

pytestmark = pytest.mark.postgres
DIMENSIONS = 8
CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND datname = current_database()"
)
"""Ends every other connection."""


@pytest.fixture
def url(tmp_path):
    return database_url(tmp_path)


def engine(url):
    return closing(PostgresStore(url, space(DIMENSIONS)))


def until_gone(url):
    """Wait until the server also knows that all engines but one have ended."""
    with psycopg.connect(url, autocommit=True) as connection:
        count = statements("jobs")["count_engines"]
        eventually("one is there", lambda: connection.execute(count, {"class": ENGINES}).fetchone() == (1,))


def test_engines_that_start_together_make_the_schema_once(url):
    with ThreadPoolExecutor(4) as pool, ExitStack() as stack:
        for store in pool.map(lambda _: PostgresStore(url, space(DIMENSIONS)), range(4)):
            stack.enter_context(closing(store)).check()


def test_a_dead_engines_jobs_are_taken_up_and_a_living_ones_are_not(url):
    with engine(url) as living:
        with engine(url) as dead:
            for number, store in enumerate((living, dead)):
                with store.write() as tx:
                    tx.jobs.add(NewJob("note", text=f"text {number}"))
                    [claimed] = tx.jobs.claim(1)
        until_gone(url)
        with engine(url) as other, other.write() as tx:
            tx.jobs.take_up(9, "")
            assert tx.jobs.release_stalled(0) == 0
            assert [job.id for job in tx.jobs.claim(10)] == [claimed.id]


def test_what_runs_elsewhere_comes_before_what_is_of_the_same_path(url):
    with engine(url) as one, engine(url) as other:
        with one.write() as tx:
            first, second = (tx.jobs.add(NewJob("note", text="text", source_path="/p")) for _ in range(2))
            assert [job.id for job in tx.jobs.claim(1)] == [first]
        with other.write() as tx:
            assert tx.jobs.claim(1) == []
        with one.write() as tx:
            tx.jobs.finish(first, 1)
        with other.write() as tx:
            assert [job.id for job in tx.jobs.claim(1)] == [second]


def test_engines_claim_each_job_once(url):
    with ExitStack() as stack, ThreadPoolExecutor(4) as pool:
        engines = [stack.enter_context(engine(url)) for _ in range(4)]
        with engines[0].write() as tx:
            added = [tx.jobs.add(NewJob("note", text="text")) for _ in range(100)]

        def claim(store):
            claimed = []
            while True:
                with store.write() as tx:
                    jobs = tx.jobs.claim(3)
                if not jobs:
                    return claimed
                claimed += [job.id for job in jobs]

        assert sorted(chain.from_iterable(pool.map(claim, engines))) == added


def test_a_job_that_another_engine_took_up_is_not_ended_and_what_came_with_it_is_not_written(url):
    with engine(url) as slow, engine(url) as other:
        with slow.write() as tx:
            tx.jobs.add(NewJob("note", text="text"))
            [job] = tx.jobs.claim(1)
        with other.write() as tx:
            tx.connection.execute("UPDATE jobs SET heartbeat_at = heartbeat_at - interval '1 hour'")
            assert tx.jobs.release_stalled(60) == 1
            assert [each.id for each in tx.jobs.claim(1)] == [job.id]

        def finish():
            with slow.write() as tx:
                tx.documents.add(content("text"), None, ())
                tx.jobs.finish(job.id, 1)

        def fail():
            with slow.write() as tx:
                tx.jobs.fail(job.id, "no")

        for end in (finish, fail):
            with pytest.raises(LeaseLost, match="Another engine"):
                end()
        with slow.queue() as tx:
            tx.jobs.release([job.id], failed=True)
        with other.write() as tx:
            assert (tx.jobs.get(job.id).status, tx.counts().documents) == ("running", {})
            tx.jobs.finish(job.id, 1)
        with pytest.raises(LeaseLost):
            fail()
        with slow.read() as tx:
            assert tx.jobs.get(job.id).status == "done"


def test_a_killed_engines_jobs_are_taken_up_by_those_that_run(url):
    with engine(url) as other:
        with engine(url) as dead, dead.write() as tx:
            added = tx.jobs.add(NewJob("note", text="text"))
            tx.jobs.claim(1)
        until_gone(url)
        with other.queue() as tx:
            tx.jobs.release_stalled(60)
            assert tx.jobs.claim(1) == []  # it may have lost but its connection
            tx.connection.execute("UPDATE jobs SET heartbeat_at = heartbeat_at - interval '20 seconds'")
            tx.jobs.release_stalled(60)
            assert [(job.id, job.attempts) for job in tx.jobs.claim(1)] == [(added, 2)]


def test_a_file_that_is_read_for_long_gives_signs_of_life_meanwhile(url, embedder, tmp_path, monkeypatch):
    monkeypatch.setattr("kb.worker.lease.BEAT_SECONDS", 0.05)
    going_on = tmp_path / "going-on"
    program = tmp_path / "listen.sh"
    program.write_text(f"while [ ! -e {going_on} ]; do sleep 0.1; done; echo read at last")
    sandbox = ExtractingSandbox(Limits(), Extractors.parse(f".slow=sh {program}"), 300, tmp_path)
    staging = tmp_path / "staging"
    staging.mkdir()
    with closing(PostgresStore(url, VectorSpace.of(embedder.spec))) as store:
        worker = new_worker(store, embedder, tmp_path, sandbox=sandbox)

        def signs():
            with store.read() as tx:
                return tx.connection.execute("SELECT heartbeat_at FROM jobs WHERE status = 'running'").fetchall()

        worker.start()
        try:
            (staging / "a").write_text("words")
            [job_id] = queued(store, NewJob("file", staged="a", filename="a.slow"))
            worker.wake()
            first = eventually("it is read", signs)
            second = eventually("a sign of life", signs, lambda now: now != first)
            eventually("another one", signs, lambda now: now != second)
            going_on.touch()
            eventually("it is done", lambda: job_of(store, job_id).status, lambda status: status == "done")
        finally:
            going_on.touch()
            worker.stop()


def test_a_job_under_an_id_that_was_given_before_is_not_ended_with_the_content_of_the_former(url, embedder, tmp_path):
    from tests.worker.test_worker import Failing

    (tmp_path / "staging").mkdir()
    model = Failing(embedder)
    with closing(PostgresStore(url, VectorSpace.of(embedder.spec))) as store:

        def give_anew(_):  # as after a failover to a replica that had not heard of the former
            model.before_cut = lambda _: None
            with store.write() as tx:
                tx.jobs.delete(former)
                tx.connection.execute(f"ALTER TABLE jobs ALTER COLUMN id RESTART WITH {former}")
                assert tx.jobs.add(NewJob("note", text="a lighthouse")) == former

        model.before_cut = give_anew
        [former] = queued(store, NewJob("note", text="a former one"))
        with working(store, model, tmp_path):
            document = eventually("the job is done", lambda: job_of(store, former).document_id)
        with store.read() as tx:
            assert [chunk.text for chunk in tx.documents.chunks(document)] == ["a lighthouse"]
            assert sum(tx.counts().documents.values()) == 1


def test_a_file_that_a_data_directory_has_waits_for_it_and_so_does_what_comes_after_it_for_its_path(url):
    with engine(url) as store:
        with store.write() as tx:
            file = tx.jobs.add(NewJob("file", staged="a", filename="a.txt", source_path="/a"))
            note = tx.jobs.add(NewJob("note", text="text", source_path="/a"))
            other = tx.jobs.add(NewJob("note", text="text"))
            tx.connection.execute("UPDATE jobs SET staged_at = 'there' WHERE id = %s", (file,))
        with store.queue() as tx:
            assert tx.jobs.claim_short(9, 99, lambda _: True)[0].id == other
            assert tx.jobs.claim(9) == []
            assert tx.jobs.left_at("here") == []
            assert tx.jobs.left_at("there") == ["a"]
            tx.jobs.set_brought("a")
            assert [job.id for job in tx.jobs.claim(9)] == [file, note]


def test_jobs_are_claimed_while_a_document_is_written(url):
    with engine(url) as writing, engine(url) as claiming:
        with writing.write() as tx:
            done = tx.jobs.add(NewJob("note", text="text"))
            tx.jobs.claim(1)
        with writing.write() as tx:
            added = tx.jobs.add(NewJob("note", text="more"))
        with writing.write() as tx:
            tx.documents.add(content("text"), None, ())
            tx.jobs.finish(done, 1)
            with claiming.queue() as other:
                assert [job.id for job in other.jobs.claim(9)] == [added]


def test_signs_of_life_do_not_wait_for_a_document_that_is_written(url):
    with engine(url) as store:
        with store.write() as tx:
            ending, other = (tx.jobs.add(NewJob("note", text="text")) for _ in range(2))
            tx.jobs.claim(9)
            tx.connection.execute("UPDATE jobs SET heartbeat_at = heartbeat_at - interval '1 hour'")
        with store.write() as tx:
            tx.jobs.finish(ending, 1)
            with store.queue() as beside:
                beside.jobs.heartbeat([ending, other])
        with store.queue() as tx:
            assert tx.jobs.release_stalled(60) == 0


def test_an_engine_hears_of_what_another_queued(url):
    heard = threading.Event()
    with engine(url) as one, engine(url) as other:
        one.listen(heard.set)
        with other.write() as tx:
            tx.jobs.add(NewJob("note", text="text"))
        assert heard.wait(SECONDS)


def test_an_engine_that_lost_its_connection_comes_back(url):
    heard = threading.Event()
    with engine(url) as store, psycopg.connect(url, autocommit=True) as other:
        other.execute(CUT)
        store.listen(heard.set)
        assert heard.wait(SECONDS)  # it cannot know what it missed
        with engine(url) as second, second.write() as tx:
            tx.jobs.add(NewJob("note", text="text"))
        heard.clear()
        with store.write() as tx:
            tx.jobs.add(NewJob("note", text="text"))
        assert heard.wait(SECONDS)


def test_a_server_that_is_not_there_says_so(url):
    with pytest.raises(StoreError, match="cannot open"):
        PostgresStore("postgresql://127.0.0.1:1/kb", space(DIMENSIONS))


def test_a_connection_that_breaks_says_so_and_the_next_one_works(url):
    with engine(url) as store, psycopg.connect(url, autocommit=True) as other:

        def cut():
            with store.write() as tx:
                tx.jobs.add(NewJob("note", text="text"))
                other.execute(CUT)
                tx.jobs.pending()

        with pytest.raises(StoreUnavailable, match="does not answer"):
            cut()
        with store.read() as tx:
            assert tx.jobs.pending() == 0


def test_an_engine_with_another_model_is_refused_while_one_uses_the_empty_database(url):
    with engine(url), pytest.raises(StoreError, match="Another engine uses the database with"):
        PostgresStore(url, space(DIMENSIONS, model="other", digest="0" * 64))
    with closing(PostgresStore(url, space(DIMENSIONS, model="other", digest="0" * 64))) as alone:
        alone.check()


def test_a_place_in_a_list_that_nobody_was_told_is_no_fault(url):
    with engine(url) as store, store.read() as tx:
        for cursor in ("5.", f"5.{b'no time'.hex()}", f"5.{b'2026-02-31 10:00:00'.hex()}"):
            for sort in ("recent", "oldest", "id", "date"):
                assert tx.documents.page(Filter(), sort=sort, limit=9, cursor=cursor) == []
        assert tx.history.bin(limit=9, before=("2026-99-99T00:00:00.000Z", 5)) == []


def test_a_path_that_no_index_holds_is_refused_as_invalid_not_as_if_the_database_were_gone(url):
    path = "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=4096))

    def add(source_path):
        with store.write() as tx:
            return tx.jobs.add(NewJob("note", text="text", source_path=source_path))

    with engine(url) as store:
        with pytest.raises(Invalid, match="too long"):
            add(path)
        assert add(path[:2000])


def test_backups_of_postgresql_are_refused_before_anything_begins(tmp_path):
    environment = {"KB_DATABASE_URL": "postgresql://127.0.0.1:1/kb", "KB_BACKUP_DIR": str(tmp_path)}
    with pytest.raises(SettingError, match="KB_BACKUP_DIR: kb can only back up SQLite"):
        create_app(AppContext(environment))


def test_a_pgvector_that_is_too_old_is_refused(url, monkeypatch):
    monkeypatch.setattr(migrate, "OLDEST_PGVECTOR", (99, 0, 0))
    with pytest.raises(StoreError, match=r"too old for kb: before 99\.0\.0, a vacuum may damage its indexes"):
        PostgresStore(url, space(DIMENSIONS))


def test_a_newer_schema_is_refused(url):
    with engine(url), psycopg.connect(url) as other:
        other.execute("INSERT INTO kb.migrations (number) VALUES (99)")
    with pytest.raises(StoreError, match="schema version 99"):
        PostgresStore(url, space(DIMENSIONS))


def test_a_database_of_a_development_build_is_refused_and_left_alone(url):
    with engine(url), psycopg.connect(url) as other:
        other.execute("DELETE FROM kb.migrations WHERE number > %s", (FIRST,))
        other.execute("UPDATE kb.migrations SET number = 10")
    with pytest.raises(
        StoreError,
        match=r"development build of kb made the database \(schema version 10\).*'kb migrate-store'.*'kb import",
    ) as told:
        PostgresStore(url, space(DIMENSIONS))
    assert "\n" not in told.value.detail
    with psycopg.connect(url) as other:
        assert other.execute("SELECT number FROM kb.migrations").fetchall() == [(10,)]


def test_the_numbers_go_from_the_first_to_the_newest():
    numbers = [number for number, _ in migrations("kb.store.postgres", after=0)]
    assert numbers == list(range(FIRST, migrate.SCHEMA_VERSION + 1))


def test_words_of_documents_of_before_get_their_one_form_while_engines_run(url):
    with engine(url) as store:
        with store.write() as tx:
            one = tx.documents.add(content("e-mail", title="مدرسة"), "O'Reilly.md", ())
            tx.documents.add(content("کتاب, ١٢٣٤"), None, ())
        with psycopg.connect(url, options="-c search_path=kb,public") as other:
            other.execute("UPDATE terms SET term = term || '-of-before'")
            other.execute("DELETE FROM names")
            other.execute("INSERT INTO words_backfill VALUES (0)")
            other.execute("INSERT INTO unnamed VALUES (%s)", (one,))
        assert not found(store, "email")
        with Backfill(store):
            eventually("all are indexed again", lambda: is_complete(store))
        assert all(found(store, word) for word in ("email", "كتاب", "مدرسه", "1234"))
        with store.read() as tx:
            assert tx.documents.named(tx.index.analyzer.indexed("oreilly"), 9, 9)
        with psycopg.connect(url) as other:
            assert not other.execute("SELECT FROM kb.terms WHERE term LIKE '%-of-before'").fetchall()


def is_complete(store):
    with store.read() as tx:
        return tx.full_text.backfilled is None


def found(store, word):
    with store.read() as tx:
        return tx.index.select(Filter()).full_text((word,), 9).ids.size


def test_a_model_that_the_vectors_are_not_of_is_refused(url):
    from tests.store.test_store import add

    with engine(url) as store:
        add(store, "text")
    with pytest.raises(StoreError, match=r"has vectors of .*run 'kb reembed'"):
        PostgresStore(url, space(DIMENSIONS, model="other", digest="0" * 64))


@pytest.mark.parametrize("secret", ["100%secret", "two secrets", "a@secret", "a/secret", "a@secret#1/x"])
def test_a_url_that_cannot_be_read_is_refused_and_its_password_is_not_told(secret):
    url = f"postgresql://kb:{secret}@127.0.0.1:1/kb"
    for begin in (lambda: PostgresStore(url, space(DIMENSIONS)), lambda: space_in_use(Settings(database_url=url))):
        with pytest.raises(SettingError, match="KB_DATABASE_URL is not a valid URL") as refused:
            begin()
        told = refused.value
        assert "secret" not in str(told)
        assert (told.__cause__, told.__context__) == (None, None)


def test_a_database_administrator_sees_which_program_has_a_connection(url):
    with psycopg.connect(conninfo(url)) as connection:
        [(name,)] = connection.execute("SELECT current_setting('application_name')")
    assert name == process_name()
