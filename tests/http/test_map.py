"""Where documents lie in a plane."""

from __future__ import annotations

import asyncio
import math
import threading

import httpx2
import pytest
from fastapi import FastAPI

import kb.search.document_map
from kb.api.errors import KbError
from kb.api.rights import Limit
from kb.asgi.error_replies import on_kb_error
from kb.routes import document_map
from kb.routes.admission import Admission
from kb.routes.dependencies import Services
from kb.search.document_map import DocumentMapper
from kb.settings import Settings
from tests.conftest import KEY
from tests.support.eventually import eventually

SEA = ["The ship lies in the harbour.", "Sails and ropes of the boat were mended.", "The tide carries the vessel out."]
BREAD = ["Knead the dough for the bread.", "The oven bakes loaves of rye.", "Flour, yeast and salt make a dough."]


@pytest.fixture(scope="module")
def engine(start_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mapped")
    headers = {"Authorization": f"Bearer {KEY}"}
    with (
        start_server(folder, KB_API_KEY=KEY) as server,
        httpx2.Client(base_url=f"{server.url}/api/v1/", headers=headers) as client,
    ):
        yield client


def add(engine, text, **fields):
    return engine.post("jobs", params={"wait": 30}, json={"text": text, **fields}).json()["document_id"]


def mapped(engine, **options):
    """The map, once it is of this moment."""
    found = {}

    def is_current():
        found.update(engine.get("map", **options).json())
        return found["is_current"]

    eventually("the map is current", is_current)
    return {each["id"]: each for each in found["documents"]}, found


def test_documents_about_the_same_lie_close_together_and_say_what_they_are(engine):
    ids = {text: add(engine, text, tags=["sea"] if text in SEA else ["bread", "food"]) for text in SEA + BREAD}
    places, found = mapped(engine)
    assert places.keys() == set(ids.values())
    assert found["total"] == len(ids)

    def distance(one, other):
        (x, y), (a, b) = ((places[ids[each]]["x"], places[ids[each]]["y"]) for each in (one, other))
        return math.hypot(x - a, y - b)

    within = [distance(SEA[0], other) for other in SEA[1:]] + [distance(BREAD[0], other) for other in BREAD[1:]]
    across = [distance(one, other) for one in SEA for other in BREAD]
    assert sum(within) / len(within) < sum(across) / len(across)
    names = [each["tag"] for each in found["tags"]]
    assert {names[tag] for tag in places[ids[BREAD[0]]]["tags"]} == {"bread", "food"}
    assert all(-1 <= each[axis] <= 1 for each in places.values() for axis in "xy")


@pytest.mark.rare
def test_what_is_deleted_or_renamed_is_so_at_once_and_what_is_new_comes_with_the_next_map(engine):
    kept, gone = add(engine, "The keeper stays.", title="Before"), add(engine, "The keeper goes.")
    eventually("both are on it", lambda: {kept, gone} <= mapped(engine)[0].keys())
    engine.delete(f"documents/{gone}")
    engine.patch(f"notes/{kept}", json={"title": "After"})
    found = {each["id"]: each for each in engine.get("map").json()["documents"]}
    assert gone not in found
    assert found[kept]["title"] == "After"


def test_a_key_sees_its_own_documents_alone_laid_out_by_themselves(engine):
    own = add(engine, "Only the diary says that.", tags=["diary"])
    token = engine.post("keys", json={"name": "diary", "tags": ["diary"]}).json()["key"]
    limited = {"headers": {"Authorization": f"Bearer {token}"}}
    places, found = mapped(engine, **limited)
    assert places.keys() == {own}
    assert (found["total"], found["tags"]) == (1, [{"tag": "diary", "documents": 1}])
    assert engine.get("activity", **limited).json() == {"searches": None, "ingestions": None}


@pytest.mark.rare
def test_what_comes_within_a_limit_by_its_tags_comes_with_the_next_map(engine):
    before, later = add(engine, "It is of May.", tags=["may"]), add(engine, "It will be of May.")
    token = engine.post("keys", json={"name": "may", "tags": ["may"]}).json()["key"]
    limited = {"headers": {"Authorization": f"Bearer {token}"}}
    assert mapped(engine, **limited)[0].keys() == {before}
    assert engine.patch(f"documents/{later}/tags", json={"add": ["may"]}).status_code == 200
    assert not engine.get("map", **limited).json()["is_current"]
    assert mapped(engine, **limited)[0].keys() == {before, later}
    engine.patch(f"documents/{later}/tags", json={"remove": ["may"]})
    assert mapped(engine, **limited)[0].keys() == {before}


async def test_maps_are_answered_in_turn_and_one_too_many_is_refused(make_store):
    go = threading.Event()

    class SlowMap:
        def positions(self, _):
            go.wait(60)
            return None, False

    with make_store(dimensions=8) as store:
        parts = {"settings": Settings(), "store": store, "map": SlowMap(), "map_queue": Admission(2, 1)}
        app = FastAPI(exception_handlers={KbError: on_kb_error})
        app.state.services = Services(**dict.fromkeys(Services.__slots__) | parts)
        app.include_router(document_map.router)
        async with httpx2.AsyncClient(base_url="http://engine", transport=httpx2.ASGITransport(app)) as client:
            waiting = [asyncio.create_task(client.get("/map")) for _ in range(3)]
            refused, others = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            go.set()
            assert [each.result().status_code for each in refused] == [503]
            assert [(await each).status_code for each in others] == [200, 200]


def test_the_maps_that_were_asked_for_last_are_kept(make_store, monkeypatch):
    monkeypatch.setattr(kb.search.document_map, "MAPS", 2)
    first, second, third = (Limit((name,)) for name in ("first", "second", "third"))
    with make_store(dimensions=8) as store, DocumentMapper(store) as maps:
        for limit in (first, second, first, third):
            eventually("the map is there", lambda limit=limit: maps.positions(limit)[1])
        assert list(maps._kept) == [first, third]


def test_an_empty_base_has_an_empty_map(make_store):
    with make_store(dimensions=8) as store, DocumentMapper(store) as maps:
        positions, is_current = maps.positions(None)
        assert (positions.places, is_current) == ({}, True)
