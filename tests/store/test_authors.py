"""A filter by author finds what a key, a program or a source said last, however it is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kb.documents.write_document import write_document
from kb.search.operators import narrowed
from kb.store.rows import Author, Filter
from tests.support.documents import DIMENSIONS, content

AUTHORS = {
    "tides": (Author(by="Ada Weil"), None),
    "moons": (Author(by="ada weil", client="kb/1.0 codex (mcp)"), None),
    "winds": (Author(client="kb/1.0 claude-code 2.1 (mcp)"), None),
    "rocks": (Author(), "Ada Weil"),
    "ferns": (Author(by="100% Éva", client="curl/8.1"), None),
}


@pytest.fixture
def written(make_store):
    with make_store(dimensions=DIMENSIONS) as store:
        with store.write() as tx:
            for text, (author, source) in AUTHORS.items():
                tx.documents.add(replace(content(text), source=source), text, [], author=author)
        yield store


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('by:"ADA weil"', {"tides", "moons", "rocks"}),
        ("by:codex", {"moons"}),
        ("by:Claude-Code", {"winds"}),
        ('by:"100% Éva"', {"ferns"}),
        ("by:Ada", set()),
        ("by:%", set()),
        ("by:kb/1.0", set()),
        ('-by:"Ada Weil" -by:codex', {"winds", "ferns"}),
        ("by:codex by:claude-code", set()),
    ],
)
def test_authors_are_found(written, query, found):
    where = narrowed(query, (), tuple).within(Filter())
    with written.read() as tx:
        assert {document.source_path for document in tx.documents.page(where, sort="id", limit=9, cursor=None)} == found
        assert tx.documents.count(where) == len(found)
        ids = tx.index.select(where).full_text(["tides", "moons", "winds", "rocks", "ferns"], 9).ids
        assert {hit.source_path for hit in tx.index.hits(ids.tolist())} == found


def test_who_changed_a_document_last_is_its_author(written):
    with written.write() as tx:
        write_document(tx, content("high tides"), "tides", [], author=Author(by="Bo"))
        assert [tx.documents.count(Filter(by=name)) for name in ("bo", "Ada Weil")] == [1, 2]
