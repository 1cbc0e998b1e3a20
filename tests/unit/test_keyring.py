"""When keys were used last, and what they are limited to."""

from __future__ import annotations

import unicodedata
from datetime import timedelta

import pytest

from kb.access import keyring
from kb.access.keyring import KeyFile, Keyring, digest_of
from kb.api.access import Limit
from kb.api.errors import KeyRotated, NotFound
from kb.store.rows import NamedKey
from tests.support.eventually import eventually


@pytest.fixture
def path(tmp_path):
    return tmp_path / "keys.json"


def test_no_use_of_a_key_is_written_by_who_uses_it_and_all_are_in_the_end(path):
    keys = Keyring(KeyFile(path))
    _, token = keys.make("reader", "read", Limit())
    written = path.stat().st_mtime_ns
    for _ in range(100):
        keys.identify(digest_of(token))
    assert path.stat().st_mtime_ns == written
    assert keys.named("reader").used_at
    assert Keyring(KeyFile(path)).named("reader").used_at is None
    keys.flush()
    assert Keyring(KeyFile(path)).named("reader").used_at == keys.named("reader").used_at


def test_a_use_is_written_after_a_while_by_itself(path, monkeypatch):
    monkeypatch.setattr(keyring, "USED_SECONDS", 0.05)
    keys = Keyring(KeyFile(path))
    _, token = keys.make("reader", "read", Limit())
    for _ in range(2):  # and again after it was written
        keys.identify(digest_of(token))
        used = keys.named("reader").used_at
        eventually("it is written", lambda: Keyring(KeyFile(path)).named("reader").used_at == used)  # noqa: B023 - waited for here


def test_a_key_that_is_revoked_meanwhile_stays_so(path):
    keys = Keyring(KeyFile(path))
    _, token = keys.make("reader", "read", Limit())
    keys.identify(digest_of(token))
    keys.revoke("reader")
    keys.flush()
    assert Keyring(KeyFile(path)).every() == []


def test_of_two_who_rotate_a_key_at_once_one_is_told_that_the_other_one_has(path):
    keys = Keyring(KeyFile(path))
    keys.make("reader", "read", Limit())
    both = keys.existing("reader"), keys.existing("reader")
    _, token = keys.rotate(both[0], timedelta())
    with pytest.raises(KeyRotated):
        keys.rotate(both[1], timedelta(minutes=5))
    assert Keyring(KeyFile(path)).identify(digest_of(token))
    keys.rotate(keys.existing("reader"), timedelta())
    keys.revoke("reader")
    with pytest.raises(NotFound):
        keys.rotate(both[1], timedelta())


def test_the_folder_of_a_limit_is_spelled_as_paths_are_also_of_a_key_that_was_made_before():
    apart = unicodedata.normalize("NFD", "/notés/")
    key = NamedKey("reader", "read", (), apart, "digest", "2026-01-01T00:00:00Z")
    assert key.caller.limit.admits((), "/notés/a.md")
    assert key.caller.limit == Limit(folder="/notés/")
