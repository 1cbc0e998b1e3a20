"""The operators that people type in a query, and what only looks like one."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest

from kb.api.errors import Invalid
from kb.api.file_types import KINDS, OWN_TYPES, type_called
from kb.api.search_wording import NOT_EACH_WORD, ONLY_MEANING, end_of_exact, written
from kb.search.operators import MAX_OPERATORS, as_typed, excluded_words, narrowed
from kb.search.query import Query
from kb.store.rows import Filter

TAGS = ("work", "Home/Recipes", "thread:oslo", "año")


def read(query):
    found = narrowed(query, OWN_TYPES, lambda: TAGS)
    return found.text, written(each._asdict() for each in found.operators)


@pytest.mark.parametrize(
    ("query", "text", "operators"),
    [
        ("rust tag:work", "rust", "tag:work"),
        ("tag:work, rust", "rust", "tag:work"),
        ("TAG:Work Rust", "Rust", "tag:work"),
        ("tag:#work", "", "tag:work"),
        ("tag:work,año", "", "tag:work tag:año"),
        ("tag:home soup", "soup", "tag:Home"),
        ("#home/recipes soup", "soup", "tag:Home/Recipes"),
        ("tag:thread:oslo", "", "tag:thread:oslo"),
        ("tag:nowhere", "", "tag:nowhere"),
        ("rust -tag:work -tokio", "rust -tokio", "-tag:work"),
        ("-#work rust", "rust", "-tag:work"),
        ('tides path:"my notes" moon', "tides moon", 'path:"my notes"'),
        ("path:“my notes”", "", 'path:"my notes"'),
        ("path:« my notes »", "", 'path:"my notes"'),
        ("tag:\u200bwork ru\u200bst", "rust", "tag:work"),
        ("path:'my notes'", "", 'path:"my notes"'),
        ("path:資料「最終」.pdf tag:読書「済」", "", "path:資料「最終」.pdf tag:読書「済」"),
        ("path:/home/ada/ -path:old", "", "path:/home/ada/ -path:old"),
        ("path:*.md path:notes/*", "", "path:.md path:notes/"),
        ("is it in path:2024? or tag:work.", "is it in or", "path:2024 tag:work"),
        ("type:PDF", "", "type:pdf"),
        ("type:.md,word", "", "type:markdown type:docx"),
        ("after:2026-03 before:2027", "", "after:2026-03-01 before:2027-01-01"),
        ("-after:2026", "", "before:2026-01-01"),
        ('after:"17 Nov 2026"', "", "after:2026-11-17"),
        ("by:Ada rust -by:codex", "rust", "by:Ada -by:codex"),
        ('by:"Ada Weil" rust', "rust", 'by:"Ada Weil"'),
        ('"blue lamp" tag:work', '"blue lamp"', "tag:work"),
    ],
)
def test_an_operator_is_understood(query, text, operators):
    assert read(query) == (text, operators)


@pytest.mark.parametrize(
    "query",
    [
        *(
            "foo:bar",
            "C:\\x",
            "http://example.org/tag:work",
            "12:30",
            "tag:",
            "tag: work",
            "tag:,",
            "path:",
            "path:*",
            "a tag:#",
        ),
        *("type:string", "type:pdf,string", "after:tomorrowish", "before:12:30", "after:2026-13", "-after:noon"),
        *("C# code", "F#", "#123", "issue #42", "#include <stdio.h>", "#c0ffee", "#don't", "note#work", "#unused lamp"),
        *('"tag:work"', '"see #work there"', "(tag:work)", "retag:work", "rust -tokio", 'lamp -"blue lamp"', "begin*"),
        *("#", "##work", "# work", 'path:my"notes"', 'tag:work"x'),
    ],
)
def test_everything_else_is_words(query):
    assert read(query) == (query, "")


def test_tags_are_looked_up_only_if_the_query_names_one():
    assert narrowed("path:x after:2026 C# lamp", OWN_TYPES, lambda: pytest.fail("looked up")).operators


def test_typed_and_given_filters_must_both_match():
    where = Filter(
        tags=("a",), doc_type="pdf", after=datetime(2026, 5, 1, tzinfo=UTC), before=datetime(2027, 1, 1, tzinfo=UTC)
    )
    both = narrowed("tag:work type:md path:x after:2026-03 before:2026-12", OWN_TYPES, lambda: TAGS).within(where)
    assert (both.tags, both.doc_type, both.doc_types, both.source_parts) == (
        ("a", "work"),
        "pdf",
        ("markdown",),
        ("x",),
    )
    assert (both.after, both.before) == (where.after, datetime(2026, 12, 1, tzinfo=UTC))


def test_more_operators_than_can_be_are_refused():
    query = " ".join(f"path:{number}" for number in range(MAX_OPERATORS))
    assert len(narrowed(query, OWN_TYPES, list).operators) == MAX_OPERATORS
    with pytest.raises(Invalid, match="at most 32 operators"):
        narrowed(f"{query} type:pdf", OWN_TYPES, list)


@pytest.mark.parametrize(
    "query",
    [
        "path:" + "." * 19_000 + '"',
        'tag:"a ' * 3_000 + "x",
        "#" * 20_000,
        "tag:'a " * 3_000,
        "tag:«a " * 3_000,
        "» a" * 6_000,
    ],
)
def test_a_hostile_query_ends(query):
    with suppress(Invalid):
        narrowed(query, OWN_TYPES, list)


def test_with_operators_nothing_else_is_needed():
    assert Query.parse("", Filter(), has_operators=True).only_filters
    only = Query.parse("-draft", Filter(), has_operators=True)
    assert (only.only_filters, only.where.lacking) == (True, ("draft",))
    assert not Query.parse("-draft", Filter()).only_filters
    assert not Query.parse("🎉", Filter(), has_operators=True).only_filters


def test_excluded_words_are_told_as_they_were_typed():
    told = excluded_words('rust -"blue lamp" -tokio', ["blue lamp", "tokio"])
    assert [each.typed for each in told] == ['-"blue lamp"', "-tokio"]
    assert written(each._asdict() for each in told) == '-"blue lamp" -tokio'


def test_a_query_as_typed_has_its_corrected_words_in_quotes():
    typed = as_typed('Extended notice path:extended "was extended today" well-extended, extended!', ["extended"])
    assert typed == '"Extended" notice path:extended "was extended today" well-extended, "extended"!'


@pytest.mark.parametrize(
    ("name", "doc_type"), [("PDF", "pdf"), (".md", "markdown"), ("Word", "docx"), ("py", "code"), ("zeppelin", None)]
)
def test_a_type_has_the_names_that_people_call_it(name, doc_type):
    assert type_called(name, OWN_TYPES) == doc_type


def test_the_name_of_a_kind_stands_for_its_types():
    found = narrowed("roof type:Spreadsheets -type:mails", OWN_TYPES, list)
    assert set(found.values("type")) == {"csv", "ods", "xls", "xlsx"}
    assert set(found.values("type", excluded=True)) == {"eml", "mbox", "msg", "tnef"}
    assert found.text == "roof"


def test_every_type_belongs_to_at_most_one_kind_and_no_kind_is_called_like_a_type():
    of_kinds = [each for types in KINDS.values() for each in types]
    assert len(of_kinds) == len(set(of_kinds))
    assert set(of_kinds) <= set(OWN_TYPES)
    assert not {*KINDS} & {*OWN_TYPES}


def result(*, exact=False, fts=None):
    return {"exact": exact, "fts_score": fts}


@pytest.mark.parametrize(
    ("results", "end"),
    [
        ([], (0, "")),
        ([result(fts=1.0), result()], (0, "")),
        ([result(exact=True, fts=1.0)], (1, "")),
        ([result(exact=True, fts=1.0), result(), result()], (1, ONLY_MEANING)),
        ([result(exact=True), result(fts=1.0), result(exact=True), result(), result(fts=0.5)], (3, NOT_EACH_WORD)),
    ],
)
def test_exactness_ends_after_the_last_result_with_all_words(results, end):
    assert end_of_exact(results) == end
