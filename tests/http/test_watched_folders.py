"""Watched folders over HTTP."""

from __future__ import annotations

from uuid import uuid4

import httpx2
import pytest

from tests.access.conftest import Api
from tests.conftest import KEY


@pytest.fixture
def engine(server):
    return Api(server.url, KEY)


@pytest.fixture
def claimed(engine):
    """A folder of this test's own, and an id for its watch."""
    name = uuid4().hex
    place = {"prefix": f"/watched/{name}/", "machine": "m1", "host": "lamp", "path": f"/home/ada/{name}"}
    engine.ok("PUT", "folders", json=place)
    return place, uuid4().hex


def watch_of(engine, prefix):
    [folder] = [each for each in engine.ok("GET", "folders")["folders"] if each["prefix"] == prefix]
    return folder["watch"]


def test_a_folder_is_watched_asked_for_reported_and_ended(engine, claimed):
    place, id_ = claimed
    assert watch_of(engine, place["prefix"]) is None
    asked = {"prefix": place["prefix"], "machine": "m1", "tags": ["a"], "delete": True}
    assert engine.ok("PUT", f"folders/watches/{id_}", json=asked)["watch"]["state"] == "new"
    answer = engine.ok("POST", f"folders/watches/{id_}/sync")["watch"]
    running = {"machine": "m1", "watches": [{"id": id_}, {"id": uuid4().hex}]}
    assert engine.ok("POST", "folders/seen", json=running | {"machine": "m2"}) == {"watches": []}, (
        "a copy of the record"
    )
    seen = engine.ok("POST", "folders/seen", json=running)
    assert seen == {"watches": [{"id": id_, "asked_at": answer["asked_at"]}]}
    report = {"result": {"files": 2, "added": 2}, "answers": answer["asked_at"]}
    done = engine.ok("POST", f"folders/watches/{id_}/report", json=report)["watch"]
    assert (done["state"], done["asked_at"], done["result"]["added"]) == ("watching", None, 2)
    assert watch_of(engine, place["prefix"]) == done
    assert engine.ok("DELETE", f"folders/watches/{id_}")["watch"] is None
    assert engine("DELETE", f"folders/watches/{id_}").status_code == 404
    assert engine.ok("POST", "folders/seen", json=running) == {"watches": []}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "folders/watches/short", {"prefix": "a/", "machine": "m"}),
        ("PUT", f"folders/watches/{'A' * 32}", {"prefix": "a/", "machine": "m"}),
        ("PUT", f"folders/watches/{'a' * 32}", {"prefix": "a/"}),
        ("PUT", f"folders/watches/{'a' * 32}", {"prefix": "a/", "machine": "m", "delete": "yes"}),
        ("POST", f"folders/watches/{'a' * 32}/report", {"result": {"files": -1}}),
        ("POST", f"folders/watches/{'a' * 32}/report", {"result": {"files": 1, "unknown": 1}}),
        ("POST", f"folders/watches/{'a' * 32}/report", {"result": {"files": 1, "kept": ["x"] * 21}}),
        ("POST", f"folders/watches/{'a' * 32}/report", {"error": ""}),
        ("POST", "folders/seen", {"machine": "m", "watches": [{"id": "x"}]}),
        ("POST", "folders/seen", {"machine": "m", "watches": [{"id": "a" * 32}] * 1001}),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(engine, method, path, body):
    assert engine(method, path, json=body).status_code == 422


@pytest.mark.parametrize("path", ["", "/sync", "/report"])
def test_an_unknown_watch_is_not_found(engine, path):
    refused = engine("POST" if path else "DELETE", f"folders/watches/{'f' * 32}{path}", json={} if path else None)
    assert (refused.status_code, "No folder is watched" in refused.json()["detail"]) == (404, True)


def test_that_programs_run_is_not_in_the_log(server, engine):
    engine.ok("POST", "folders/seen", json={"machine": "m", "watches": []})
    httpx2.get(f"{server.url}/healthz")
    assert "route=/api/v1/folders/seen status=200" not in server.log.read_text()
