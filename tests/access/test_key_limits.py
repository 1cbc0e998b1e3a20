"""A key can expire, and can be limited to a number of requests per minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from kb import clock
from kb.access.keyring import KeyFile, Keyring, token_digest
from kb.api.errors import TooManyCalls
from kb.api.rights import Limit
from kb.clock import shown

SOON = timedelta(hours=1)


@pytest.fixture
def keyring(tmp_path):
    return Keyring(KeyFile(tmp_path / "keys.json"))


def test_an_expired_key_opens_nothing_also_after_a_rotation(keyring, monkeypatch):
    now = datetime.now(UTC)
    key, token = keyring.make("a", "read", Limit(), expires_at=shown((now + SOON).timestamp()))
    assert keyring.identify(token_digest(token)).name == "a"
    _, rotated = keyring.rotate(keyring.existing("a"), timedelta(minutes=5))
    monkeypatch.setattr(clock.own, "expiry", lambda: now + SOON)
    for each in (token, rotated):
        assert keyring.identify(token_digest(each)) is None
    assert keyring.named("a") is None
    assert keyring.existing("a").expires_at == key.expires_at


def test_a_key_has_its_requests_of_a_minute_and_another_one_keeps_its_own(keyring):
    _, few = keyring.make("few", "read", Limit(), per_minute=3)
    _, free = keyring.make("free", "read", Limit())
    for _ in range(3):
        assert keyring.identify(token_digest(few))
    with pytest.raises(TooManyCalls) as refused:
        keyring.identify(token_digest(few))
    assert 1 <= refused.value.retry_after <= 20
    assert keyring.identify(token_digest(free))


def test_keys_of_before_have_neither(tmp_path, keyring):
    keyring.make("a", "read", Limit())
    path = tmp_path / "keys.json"
    lines = [line for line in path.read_text().splitlines() if "expires_at" not in line and "per_minute" not in line]
    path.write_text("\n".join(lines).replace("null,\n  }", "null\n  }"))
    [key] = KeyFile(path).all()
    assert (key.expires_at, key.per_minute) == (None, None)


def test_the_limits_apply_over_http_and_a_past_time_is_refused(guarded, admin):
    past = {"name": "past", "expires_at": "2020-01-01T00:00:00Z"}
    answer = httpx2.post(f"{guarded.url}/api/v1/keys", json=past, headers={"Authorization": f"Bearer {admin.token}"})
    assert (answer.status_code, "past" in answer.json()["detail"]) == (422, True)
    made = admin.ok("POST", "keys", json={"name": "few", "per_minute": 2, "expires_at": "2090-01-01T00:00:00Z"})
    assert (made["per_minute"], made["expires_at"][:10]) == (2, "2090-01-01")
    headers = {"Authorization": f"Bearer {made['key']}"}
    answers = [httpx2.get(f"{guarded.url}/api/v1/key", headers=headers) for _ in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert answers[-1].json()["type"].endswith("too-many-calls")
    assert int(answers[-1].headers["retry-after"]) >= 1
