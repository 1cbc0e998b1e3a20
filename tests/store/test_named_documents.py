"""Documents by their names: which a filter admits, and how much is read to find them."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from unicodedata import normalize

import apsw
import pytest

from kb.api.rights import Limit
from kb.index.words.document_names import folded_name, folded_names
from kb.search.name_match import KEPT_LETTERS
from kb.store.analyzer import FtsTokenizer
from kb.store.rows import Filter
from kb.store.sqlite.store import SqliteStore
from tests.support.documents import DIMENSIONS, content
from tests.support.spaces import space

PATHS = (
    "a/ÜBERSICHT.md",
    normalize("NFD", "b/Übersicht 2.md"),
    "c/Straße.txt",
    "d/ΛΌΓΟΣ.md",
    "Issue #42 login.md",
    "e/100%_done.md",
)


@pytest.fixture
def filled(make_store):
    with make_store(dimensions=DIMENSIONS) as store:
        with store.write() as tx:
            ids = {path: tx.documents.add(content(path), path, ()) for path in PATHS}
            mail = tx.documents.add(content("A mail"), "f/mail.eml", ())
            lease = replace(content("A lease"), filename="Lease.txt")
            ids["lease"] = tx.documents.add(lease, "f/mail.eml#Lease.txt", (), part_of=mail)
            ids["note"] = tx.documents.add(content("Ahoi"), None, ())
            for name in ("Straßenplan.PDF", "Straßenplan.odt"):
                sent = replace(content("Houses."), filename=name, title="Plan of the streets")
                ids[name] = tx.documents.add(sent, None, ())
        yield store, {number: path for path, number in ids.items()}


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("übersicht*", {PATHS[0], PATHS[1]}),
        (normalize("NFD", "Übersicht.md"), {PATHS[0]}),
        ("STRASSE.*", {PATHS[2]}),
        ("λόγος.md", {PATHS[3]}),
        ("lease*", {"lease"}),
        ("issue #42*", {PATHS[4]}),
        ("login*", set()),
        ("100%_d*", {PATHS[5]}),
        ("100%?d*", {PATHS[5]}),
        ("1000*", set()),
        ("strassenplan.pdf", {"Straßenplan.PDF"}),
        ("*.odt", {"Straßenplan.odt"}),
        ("plan of the streets", {"Straßenplan.PDF", "Straßenplan.odt"}),
        ("plan of the streets.*", set()),
    ],
)
def test_a_filter_by_name_folds_letters_and_knows_attachments(filled, pattern, found):
    store, paths = filled
    with store.read() as tx:
        page = tx.documents.page(Filter(name=pattern), sort="id", limit=20, cursor=None)
    assert {paths[each.id] for each in page if each.id in paths} == found


def test_names_are_counted_once_for_each_word_and_never_by_reading_all_documents(tmp_path):
    with closing(SqliteStore(tmp_path / "kb.db", space(dimensions=DIMENSIONS))) as store, store.write() as tx:
        plans = []

        def explained(cursor, sql, parameters):
            if sql.startswith("WITH"):
                plans.append(
                    [row[3] for row in cursor.connection.cursor().execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
                )
            return True

        for limit in (None, Limit(folder="a/"), Limit(tags=("x",))):
            tx.documents.add(content("One"), "a/one.md", ("x",))
            tx.connection.set_exec_trace(explained)
            tx.documents.named(["one", "two", "three"], 500, 50, limit)
            tx.connection.set_exec_trace(None)
        for plan in plans:
            assert any("names" in step for step in plan)
            assert not [step for step in plan if re.match(r"SCAN (documents|names)", step)]


def test_documents_with_the_rarest_words_come_first_in_each_store(make_store):
    with make_store(dimensions=DIMENSIONS) as store:
        with store.write() as tx:
            for number in range(7):
                tx.documents.add(content(f"Text {number}"), f"plan {number}.md", ())
            for number in range(3):
                tx.documents.add(content(f"More {number}"), f"harbour plan x{number}.md", ())
            tx.documents.add(content("Last"), "harbour.md", ())
        with store.read() as tx:
            found = [each.source_path for each in tx.documents.named(["plan", "harbour"], 500, 5)]
            words = sum(("plan" in path) + 10 * ("harbour" in path) for path in found)
            assert found[0].startswith("harbour plan")
            assert found[3] == "harbour.md"
            assert words > 40
            assert [each.source_path for each in tx.documents.named(["plan"], 5, 50)] == []
            admitted = tx.documents.named(["harbour"], 500, 50, Limit(folder="harbour."))
            assert [each.source_path for each in admitted] == ["harbour.md"]


def test_a_name_is_folded_whatever_it_is_of():
    assert folded_name("a/B.MD", "Title", is_part=False) == "b.md"
    assert folded_name("mail.eml#Größe.txt", "Title", is_part=True) == "grösse.txt"
    assert folded_name(None, "TITLE", is_part=False) == "title"


def test_a_file_without_a_path_has_the_name_under_which_it_was_sent_and_its_title():
    assert folded_names(None, "C:\\scans\\Memo.PDF", "Memo", is_part=False) == ["memo.pdf", "memo"]
    assert folded_names("a/b.md", "Memo.PDF", "Memo", is_part=False) == ["b.md"]
    assert folded_names(None, None, "Memo", is_part=False) == ["memo"]


def test_a_stem_begins_as_its_word_does():
    tokens = FtsTokenizer(apsw.Connection(":memory:")).tokens
    ends = ("", "s", "y", "ies", "ing", "ying", "ed", "eed", "ational", "izer", "ability")
    words = {f"{first}{second}{end}" for first in "abceioyt" for second in "aeiorstyl" for end in ends}
    for word in words:
        for stem in tokens(word):
            assert word.startswith(stem[:KEPT_LETTERS] if len(stem) > KEPT_LETTERS else stem[:1])
