"""Which files that could not be read a search names."""

from __future__ import annotations

import pytest

from kb.search.named import unreadable
from kb.search.query import Query
from kb.store.rows import Filter, NewJob
from tests.support.documents import DIMENSIONS

FILES = {
    "lease contract.pdf": ("home/lease contract.pdf", ("home",)),
    "Übersicht.pdf": ("office/Übersicht.pdf", ()),
    "scan.pdf": ("office/scan.pdf", ()),
    "C++.pdf": (None, ()),
}


@pytest.fixture
def asked(make_store):
    with make_store(dimensions=DIMENSIONS) as store:
        with store.write() as tx:
            for number, (name, (path, tags)) in enumerate(FILES.items()):
                given = {"source_path": path, "tags": tags, "content_hash": f"{number:064}"}
                job = tx.jobs.add(NewJob("file", filename=name, staged="x", **given))
                tx.jobs.claim(1)
                tx.jobs.fail(job, "It needs a password.")

        def names(query, **where):
            with store.read() as tx:
                found = unreadable(tx, Query.parse(query, Filter(**where)), tx.index.analyzer)
            return {each.filename for each in found}

        yield names


def test_a_query_that_names_a_file_by_a_word_of_its_name_gets_it(asked):
    assert asked("lease contract") == asked("contract pdf") == asked("contract") == {"lease contract.pdf"}
    assert asked("the lease contract of my flat") == {"lease contract.pdf"}
    assert asked("übersicht") == asked("uebersicht.pdf") == {"Übersicht.pdf"}
    assert asked("C++") == {"C++.pdf"}


@pytest.mark.parametrize("query", ["pdf", "PDF files", "harbour", "C", "the"])
def test_an_ending_alone_names_no_file(asked, query):
    assert asked(query) == set()


def test_a_filter_leaves_out_files_that_it_would_not_admit(asked):
    assert asked("lease contract", source_prefix="home/") == {"lease contract.pdf"}
    assert asked("lease contract", tags=("home",)) == {"lease contract.pdf"}
    assert asked("lease contract", name="lease*") == {"lease contract.pdf"}
    for where in ({"source_prefix": "office/"}, {"tags": ("office",)}, {"document_id": 7}, {"name": "memo*"}):
        assert asked("lease contract", **where) == set()
