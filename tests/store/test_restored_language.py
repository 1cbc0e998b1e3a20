"""A document restored from the bin has the language in which its words are indexed."""

from __future__ import annotations

from dataclasses import replace

from kb.store.rows import NOBODY, Filter
from tests.store.test_store import content


def test_a_document_of_an_older_kb_gets_its_language_when_it_comes_back(make_store):
    german = replace(content("Die Häuser stehen am Hafen"), language="de")
    with make_store(dimensions=8) as store:
        with store.write() as tx:
            id_ = tx.documents.add(german, "/houses.md", ())
        with store.write() as tx:
            tx.history.discard(id_, NOBODY)
        make_store.execute("UPDATE versions SET language = NULL")
        with store.write() as tx:
            tx.history.restore(id_, german, NOBODY)
        with store.read() as tx:
            assert tx.documents.get(id_).language == "de"
            assert tx.documents.count(Filter(lang="de")) == 1
