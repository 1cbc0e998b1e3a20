"""Pages as pictures, over HTTP."""

from __future__ import annotations

import httpx2
import pytest

from tests.conftest import KEY
from tests.support.pdf import pdf


@pytest.fixture
def engine(server):
    with httpx2.Client(
        base_url=f"{server.url}/api/v1", headers={"Authorization": f"Bearer {KEY}"}, timeout=60
    ) as client:
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
