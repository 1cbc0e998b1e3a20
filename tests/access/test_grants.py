"""Grants of access to programs, in each store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import datetime, timedelta
from hashlib import sha256

import apsw
import pytest

from kb import clock
from kb.access.grants import Grants
from kb.access.keyring import KeyFile, Keyring, token_digest
from kb.api.errors import NotFound
from kb.api.grant_models import Exchange, GrantRequest, GrantToken
from kb.api.rights import Limit
from kb.store.rows import NOBODY
from kb.store.sqlite.backup import Snapshot
from kb.store.sqlite.store import SqliteStore
from tests.support.spaces import space


@pytest.fixture
def keyring(tmp_path):
    return Keyring(KeyFile(tmp_path / "keys.json"))


@pytest.fixture
def store(make_store):
    with make_store(dimensions=8) as store:
        yield store


@pytest.fixture
def new_grants(store, keyring):
    """`new_grants()` is what an engine knows; it writes the last uses before the store closes."""
    with ExitStack() as stack:

        def make():
            grants = Grants(store, keyring)
            stack.callback(grants.flush)
            return grants

        yield make


@pytest.fixture
def key(keyring):
    return keyring.make("laptop", "write", Limit())[1]


def request(key, **fields):
    about = {
        "key_name": "laptop",
        "key_digest": token_digest(key),
        "client_id": "https://claude.ai/client",
        "client_name": "Claude",
        "scopes": ["read", "write"],
        "resource": "https://kb.example.org/mcp",
        "redirect_uri": "https://claude.ai/callback",
        "challenge": "c" * 43,
    }
    return GrantRequest(**about | fields)


def test_of_two_engines_that_exchange_a_token_at_once_at_most_one_gives_out_tokens(new_grants, store, keyring, key):
    engines = [new_grants() for _ in range(4)]
    code = engines[0].make(request(key), NOBODY)

    def exchange(engine):
        try:
            return engine.exchange(Exchange(kind="code", token=code))
        except NotFound:
            return None

    with ThreadPoolExecutor(4) as pool:
        given = [tokens for tokens in pool.map(exchange, engines) if tokens]
    assert len(given) <= 1
    assert engines[0].every() == []  # the second use has ended it
    with pytest.raises(NotFound):
        engines[1].find(GrantToken(kind="refresh", token=given[0].refresh_token))


def test_an_access_token_is_valid_for_an_hour_and_a_refresh_token_until_it_is_unused_for_long(
    new_grants, store, keyring, key, monkeypatch
):
    grants = new_grants()
    tokens = grants.exchange(Exchange(kind="code", token=grants.make(request(key), NOBODY)))
    digest, begin = token_digest(tokens.access_token), clock.own.expiry()
    for minutes, is_valid in ((59, True), (61, False)):
        monkeypatch.setattr(clock.own, "expiry", lambda minutes=minutes: begin + timedelta(minutes=minutes))
        assert bool(grants.identify(digest)) == is_valid
    refresh = GrantToken(kind="refresh", token=tokens.refresh_token)
    monkeypatch.setattr(clock.own, "expiry", lambda: begin + timedelta(days=89))
    assert grants.find(refresh)
    monkeypatch.setattr(clock.own, "expiry", lambda: begin + timedelta(days=91))
    with pytest.raises(NotFound):
        grants.find(refresh)
    assert grants.every() == []


def test_a_code_is_valid_for_a_minute_and_no_trace_of_it_stays(new_grants, store, keyring, key, monkeypatch):
    grants = new_grants()
    code, begin = grants.make(request(key), NOBODY), clock.own.expiry()
    monkeypatch.setattr(clock.own, "expiry", lambda: begin + timedelta(seconds=61))
    with pytest.raises(NotFound):
        grants.exchange(Exchange(kind="code", token=code))
    grants.make(request(key), NOBODY)
    with store.read() as tx:
        assert len(tx.grants.all()) == 1


@pytest.mark.parametrize("token", ["", ".", "a.b", "x" * 200, "\u202e.\u202e"])
def test_a_token_that_never_was_one_ends_nothing(new_grants, store, keyring, key, token):
    grants = new_grants()
    tokens = grants.exchange(Exchange(kind="code", token=grants.make(request(key), NOBODY)))
    with pytest.raises(NotFound):
        grants.find(GrantToken.model_construct(kind="refresh", token=token))
    assert grants.identify(sha256(tokens.access_token.encode()).hexdigest())


def test_a_key_that_is_not_valid_gives_nothing(new_grants, store, keyring, key):
    keyring.revoke("laptop")
    with pytest.raises(NotFound):
        new_grants().make(request(key), NOBODY)


def test_the_last_use_is_written_and_the_audit_log_names_the_key(new_grants, store, keyring, key):
    grants = new_grants()
    tokens = grants.exchange(Exchange(kind="code", token=grants.make(request(key), NOBODY)))
    grants.identify(token_digest(tokens.access_token))
    grants.flush()
    with store.read() as tx:
        [grant] = tx.grants.all()
        for moment in (grant.created_at, grant.used_at, grant.until):
            assert datetime.fromisoformat(moment).tzinfo
        assert [(line.action, line.key) for line in tx.audit.page(limit=5, before=None, document_id=None, by=None)] == [
            ("grant-make", "laptop")
        ]
    grants.end(grant.id, NOBODY)
    with store.read() as tx:
        assert tx.audit.page(limit=5, before=None, document_id=None, by=None)[0].action == "grant-end"


@pytest.mark.sqlite
def test_a_backup_lets_no_program_in_again(tmp_path, keyring, key):
    with closing(SqliteStore(tmp_path / "kb.db", space(dimensions=8))) as store:
        grants = Grants(store, keyring)
        grants.exchange(Exchange(kind="code", token=grants.make(request(key), NOBODY)))
        digest = grants.every()[0].family
        with closing(Snapshot(tmp_path / "kb.db")) as database, database.taken():
            database.copy(tmp_path / "copy.db", lambda: None)
    assert apsw.Connection(str(tmp_path / "copy.db")).execute("SELECT count(*) FROM grants").get == 0
    assert digest.encode() not in (tmp_path / "copy.db").read_bytes()
