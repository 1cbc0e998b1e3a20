"""The folders of paths."""

from __future__ import annotations

import httpx2
import pytest

from tests.conftest import KEY

PATHS = ("walk/a.md", "walk/in/b.md", "walk/in/deep/c.md", "walk/Ö #1/d.md", "walks/e.md")


@pytest.fixture
def walked(server):
    with httpx2.Client(base_url=f"{server.url}/api/v1", headers={"Authorization": f"Bearer {KEY}"}) as engine:
        yield add(engine)


def add(engine):
    for path in PATHS:
        form = {"files": {"file": ("x.md", path.encode())}, "data": {"source_path": path}}
        engine.post("jobs", params={"wait": 30}, **form).raise_for_status()
    return engine


def folders(engine, prefix):
    rows = engine.get("paths", params={"prefix": prefix}).json()["folders"]
    return {row["name"]: row["documents"] for row in rows}


def test_each_folder_right_below_a_path_has_its_number_of_documents(walked):
    assert folders(walked, "walk/") == {"in": 2, "Ö #1": 1}
    assert folders(walked, "walk/in/") == {"deep": 1}
    assert folders(walked, "walk/in/deep/") == {}
    assert {"walk": 4, "walks": 1}.items() <= folders(walked, "").items()
    assert folders(walked, "nowhere/%_/") == {}


def test_a_limited_key_sees_only_the_folders_of_its_documents(walked):
    made = walked.post("keys", json={"name": "walker", "right": "read", "path": "walk/in/"}).json()
    with httpx2.Client(base_url=walked.base_url, headers={"Authorization": f"Bearer {made['key']}"}) as limited:
        assert folders(limited, "") == {"walk": 2}
        assert folders(limited, "walk/") == {"in": 2}
    walked.delete("keys/walker")
