"""Pages as pictures, over HTTP."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from tests.conftest import KEY
from tests.support.pdf import pdf, slow_pdf


@pytest.fixture
def engine(server):
    with httpx2.Client(base_url=f"{server.url}/api/v1", headers={"Authorization": f"Bearer {KEY}"}) as client:
        yield client


def add(engine, **content):
    return engine.post("jobs", params={"wait": 30}, **content).json()["document_id"]


def test_a_page_of_a_pdf_is_a_picture_with_a_passage_marked_where_it_stands(engine):
    document = add(engine, files={"file": ("two.pdf", pdf("The berth is number 14.", "The rent is due in May."))})
    plain, marked, elsewhere = (
        engine.get(f"documents/{document}/pages/2.png", params=params) for params in ({}, {"chunk": 1}, {"chunk": 0})
    )
    assert {each.headers["content-type"] for each in (plain, marked, elsewhere)} == {"image/png"}
    assert plain.content != marked.content
    assert plain.content == elsewhere.content


def test_what_has_no_pages_or_not_that_one_has_no_picture(engine):
    document = add(engine, files={"file": ("one.pdf", pdf("A page alone."))})
    assert engine.get(f"documents/{document}/pages/2.png").status_code == 404
    assert engine.get(f"documents/{document}/pages/1.png", params={"chunk": 9}).status_code == 404
    note = add(engine, json={"text": "A note without pages."})
    assert engine.get(f"documents/{note}/pages/1.png").status_code == 409
    assert engine.get("documents/999999/pages/1.png").status_code == 404


@pytest.mark.slow
async def test_a_page_that_is_slow_to_draw_keeps_nobody_from_the_engine_and_is_not_tried_again(start_server, tmp_path):
    with start_server(tmp_path / "data", KB_APPS="api", KB_PARSE_SECONDS="5") as server:
        async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1") as engine:
            file = {"file": ("slow.pdf", slow_pdf("A slow page."))}
            document = (await engine.post("jobs", params={"wait": 30}, files=file)).json()["document_id"]
            place = f"documents/{document}/pages/1.png"
            waiting = [asyncio.create_task(engine.get(place)) for _ in range(60)]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            assert (await engine.get("status")).status_code == 200
            assert not all(each.done() for each in waiting)
            replies = await asyncio.gather(*waiting)
    counts = Counter(each.status_code for each in replies)
    assert counts.keys() == {404, 503}
    assert counts[404] >= 8  # more on a slow machine, where some come when the page is known to be slow
    drawn = {each.json()["detail"] for each in replies if each.status_code == 404}
    assert drawn == {"Page 1 cannot be drawn: that takes more than 5 seconds."}
    refused = {(each.headers["retry-after"], each.json()["detail"]) for each in replies if each.status_code == 503}
    assert refused == {("1", "8 pictures of pages are drawn or wait already; try again in a second.")}


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_many_pictures_leave_no_threads_behind(engine, server):
    document = add(engine, files={"file": ("many.pdf", pdf("A page that is looked at often."))})

    def threads_after(pictures):
        for _ in range(pictures):
            assert engine.get(f"documents/{document}/pages/1.png").status_code == 200
        return len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))

    before = threads_after(2)
    assert threads_after(20) < before + 10


def test_the_pages_of_a_pdf_are_counted_with_and_without_text(engine):
    document = add(engine, files={"file": ("three.pdf", pdf("Only here stands text.", "", ""))})
    assert engine.get(f"documents/{document}/pages").json() == {"document_id": document, "pages": 3}
    note = add(engine, json={"text": "A note that has no pages."})
    assert engine.get(f"documents/{note}/pages").status_code == 409
    assert engine.get("documents/999999/pages").status_code == 404
