"""Watched folders, with keys that are limited to a folder, or may only read."""

from __future__ import annotations

from uuid import uuid4

import pytest


@pytest.fixture(scope="module")
def planner(make_key):
    return make_key("watcher-of-plan", right="write", path="/plan-of-watches")


def watched(api, prefix):
    """The id of a watch of a new folder."""
    id_ = uuid4().hex
    api.ok("PUT", "folders", json={"prefix": prefix, "machine": "m", "host": "lamp", "path": f"/home/ada{prefix}"})
    api.ok("PUT", f"folders/watches/{id_}", json={"prefix": prefix, "machine": "m"})
    return id_


def test_a_limited_key_watches_within_its_limit_only(admin, planner):
    outside, inside = watched(admin, "/elsewhere/"), watched(planner, "/plan-of-watches/in/")
    listed = {each["watch"]["id"] for each in planner.ok("GET", "folders")["folders"]}
    assert listed == {inside}
    for method, path, body in (
        ("POST", f"{outside}/sync", None),
        ("POST", f"{outside}/report", {"error": "no"}),
        ("DELETE", outside, None),
    ):
        assert planner(method, f"folders/watches/{path}", json=body).status_code == 404
    elsewhere = {"prefix": "/elsewhere/", "machine": "m"}
    assert planner("PUT", f"folders/watches/{uuid4().hex}", json=elsewhere).status_code == 404
    seen = planner.ok("POST", "folders/seen", json={"machine": "m", "watches": [{"id": inside}, {"id": outside}]})
    assert [each["id"] for each in seen["watches"]] == [inside]
    assert {inside, outside} <= {each["watch"]["id"] for each in admin.ok("GET", "folders")["folders"] if each["watch"]}


def test_a_key_that_may_only_read_sees_watches_and_changes_none(admin, reader):
    id_ = watched(admin, "/seen-by-readers/")
    assert any(each["watch"] and each["watch"]["id"] == id_ for each in reader.ok("GET", "folders")["folders"])
    for method, path in (("POST", f"{id_}/sync"), ("DELETE", id_)):
        assert reader(method, f"folders/watches/{path}").status_code == 403
