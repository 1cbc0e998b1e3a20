"""Refusals by the database are distinguished from a lost connection, and calls are repeated if that is safe."""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager, suppress

import psycopg
import pytest
from psycopg import errors

from kb.api.errors import DiskFull, Overloaded, StoreUnavailable, Unconfirmed
from kb.store.postgres import error_translation
from kb.store.postgres.connection import conninfo
from kb.store.postgres.store import PostgresStore, commit
from kb.store.rows import NewJob
from tests.support.eventually import eventually
from tests.support.postgres import database_url
from tests.support.spaces import space

pytestmark = pytest.mark.postgres
CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
CANCEL = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%%pg_sleep(1000)%%' AND pid <> pg_backend_pid()"


@pytest.fixture
def url(tmp_path):
    return database_url(tmp_path)


@pytest.fixture
def store(url):
    with closing(PostgresStore(url, space(8))) as opened:
        yield opened


@pytest.fixture
def admin(url):
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        yield connection


def add(store):
    with store.write() as tx:
        return tx.jobs.add(NewJob("note", text="text"))


def test_what_has_not_begun_waits_for_a_new_connection_and_nobody_hears_of_it(store, admin):
    for _ in range(3):
        admin.execute(CUT)
        added = add(store)
        admin.execute(CUT)
        with store.read() as tx:
            assert tx.jobs.get(added)


def test_a_statement_that_was_cancelled_is_no_lost_connection(store, admin):
    def sleep():
        with store.read() as tx, pytest.raises(errors.QueryCanceled) as cancelled:
            tx.connection.execute("SELECT pg_sleep(1000)")
        return cancelled.value

    done = threading.Event()

    def cancel():
        while not done.is_set():
            admin.execute(CANCEL.replace("%%", "%"))

    cancelling = threading.Thread(target=cancel)
    cancelling.start()
    try:
        error = sleep()
    finally:
        done.set()
        cancelling.join()
    fault = error_translation.translate_error(error, "")
    assert isinstance(fault, Overloaded)
    assert "canceling statement" in fault.detail


def test_a_read_ends_that_takes_too_long(store, monkeypatch):
    monkeypatch.setattr("kb.store.postgres.store.READ", "BEGIN READ ONLY; SET LOCAL statement_timeout = '50ms'")

    def read():
        with store.read() as tx:
            tx.connection.execute("SELECT pg_sleep(1000)")

    for _ in range(9):  # the driver would prepare a single statement after some times
        with pytest.raises(Overloaded, match="statement timeout"):
            read()


def test_a_change_waits_for_another_one_only_so_long(url, admin, monkeypatch):
    monkeypatch.setattr("kb.store.postgres.store.LOCK_SECONDS", 1)
    with closing(PostgresStore(url, space(8))) as one, closing(PostgresStore(url, space(8))) as other:
        with one.write() as tx:
            tx.jobs.add(NewJob("note", text="text"))
            with pytest.raises(StoreUnavailable, match="busy for too long"):
                add(other)
            with pytest.raises(StoreUnavailable, match="busy for too long"):
                add(one)  # of its own engine
        assert add(other)


def test_an_engine_that_stands_still_amid_a_change_holds_the_others_up_only_so_long(url, monkeypatch):
    def stand_still(store, other):
        with store.write() as tx:
            tx.jobs.add(NewJob("note", text="lost"))
            added.append(add(other))
            tx.jobs.pending()

    added = []
    with closing(PostgresStore(url, space(8))) as other:
        monkeypatch.setattr("kb.store.postgres.store.IDLE_SECONDS", 1)
        with (
            closing(PostgresStore(url, space(8))) as one,
            pytest.raises(StoreUnavailable, match="does not answer"),
        ):
            stand_still(one, other)
        with other.read() as tx:
            assert [job.id for job in tx.jobs.page(status=None, limit=9, before=None)] == added


@contextmanager
def read_only(admin):
    """A server that takes no changes, as a replica, or a primary that was demoted; connections stay."""
    name = admin.info.dbname
    admin.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    yield
    admin.execute("SET default_transaction_read_only = off")
    admin.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')


def test_a_database_that_takes_no_changes_is_waited_for(store, admin, monkeypatch):
    monkeypatch.setattr("kb.store.postgres.store.PATIENCE_SECONDS", 1)
    with read_only(admin):
        admin.execute(CUT)
        eventually("the engine knows why", lambda: "read-only" in (refusal(store) or ""))
    monkeypatch.undo()
    assert add(store)


def test_a_connection_to_a_server_that_was_demoted_is_not_used_again(store):
    def change():
        with store.write() as tx:
            tx.connection.execute("SET TRANSACTION READ ONLY")
            tx.jobs.add(NewJob("note", text="text"))

    for _ in range(12):  # more than there are connections
        with pytest.raises(StoreUnavailable, match="does not accept changes now: cannot execute"):
            change()
    assert add(store)


def test_a_server_without_connections_to_spare_says_so(url, admin, monkeypatch):
    monkeypatch.setattr("kb.store.postgres.store.PATIENCE_SECONDS", 1)
    monkeypatch.setattr("kb.store.postgres.store.ATTEMPT_SECONDS", 0.2)
    role, name = f"kb_{admin.info.backend_pid}", admin.info.dbname
    admin.execute(f"CREATE ROLE {role} LOGIN")
    admin.execute(f'GRANT CREATE ON DATABASE "{name}" TO {role}')
    admin.execute("CREATE EXTENSION vector")
    with closing(PostgresStore(url.replace("postgres:@", f"{role}@"), space(8))) as store:
        add(store)
        admin.execute(f"ALTER ROLE {role} CONNECTION LIMIT 0")
        admin.execute(CUT)
        eventually("the engine knows why", lambda: "too many connections" in (refusal(store) or ""))
        admin.execute(f"ALTER ROLE {role} CONNECTION LIMIT -1")
        eventually("it goes on", lambda: refusal(store) is None)


def refusal(store):
    try:
        add(store)
    except StoreUnavailable as error:
        return error.detail


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.DiskFull(), DiskFull),
        (errors.OutOfMemory("out of memory"), Overloaded),
        (errors.TooManyConnections("sorry, too many clients already"), Overloaded),
        (errors.AdminShutdown("terminating connection"), StoreUnavailable),
        (errors.IdleInTransactionSessionTimeout("terminating connection"), StoreUnavailable),
        (psycopg.OperationalError("server closed the connection unexpectedly"), StoreUnavailable),
        (errors.UniqueViolation("a fault of the engine's"), type(None)),
    ],
)
def test_errors_are_told_apart(error, kind):
    assert type(error_translation.translate_error(error, "")) is kind


def test_what_no_replica_confirmed_is_not_said_to_be_written(url, admin):
    admin.execute("CREATE TABLE said (word text)")
    admin.execute(
        "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE WARNING 'canceling wait for synchronous replication'; RETURN NULL; END $$"
    )
    admin.execute(
        "CREATE CONSTRAINT TRIGGER warned AFTER INSERT ON said DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION warn()"
    )
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute("BEGIN")
        connection.execute("INSERT INTO said VALUES ('so')")
        with pytest.raises(Unconfirmed, match="canceling wait"):
            commit(connection)


def test_a_change_of_which_a_statement_failed_is_not_said_to_be_written(store):
    def change():
        with store.write() as tx:
            tx.jobs.add(NewJob("note", text="text"))
            with suppress(errors.DivisionByZero):
                tx.connection.execute("SELECT 1 / 0")

    with pytest.raises(errors.InFailedSqlTransaction):
        change()


def test_a_url_may_say_otherwise_and_name_several_servers():
    made = conninfo("postgresql://kb@one:5432,two:5433/kb?connect_timeout=30&target_session_attrs=any")
    for part in (
        "host=one,two",
        "port=5432,5433",
        "connect_timeout=30",
        "target_session_attrs=any",
        "keepalives_idle=10",
    ):
        assert part in made
    assert "target_session_attrs=read-write" in conninfo("postgresql://one,two/kb")
