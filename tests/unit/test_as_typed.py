"""What a query means by signs: numbers, apostrophes, names."""

from __future__ import annotations

import pytest

from kb.formats.readers.front_matter import front_matter, inline_tags
from kb.lexical.names import ending_of, folders_of, stem_of
from kb.search.apostrophes import apart, is_contraction
from kb.search.numbers import meant
from kb.search.query import Query
from kb.store.rows import Filter


@pytest.mark.parametrize("written", ["1,872.00", "1872.00", "1.872,00", "1872", "1'872", "1\u202f872,00", "$1,872.00"])
def test_a_number_is_one_however_it_is_written(written):
    assert meant(written) == meant("1872")


@pytest.mark.parametrize(
    "written", ["3.0.1", "2026-03-01", "01.03.2026", "192.168.1.17", "978-3-16-148410-0", "0.871", "a1"]
)
def test_dates_versions_and_codes_are_no_numbers(written):
    assert meant(written) is None


def test_the_parts_of_a_number_are_not_looked_for():
    assert Query.parse("1,872.00", Filter()).words == ("1,872.00", "1872", "1 872")
    assert meant("2.1") != meant("2.10") or "2 10" not in Query.parse("2.1", Filter()).words


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("don't", ("don't",)),
        ("don’t return", ("return",)),
        ("it's", ("it's",)),
        ("Anna's", ("anna",)),
        ("l'œuf", ("œuf", "oeuf", "l'œuf")),
        ("what doesn't work", ("work",)),
        ("dont", ("dont", "don't")),
        ("C#", ("csharp",)),
        ("getUserById", ("getuserbyid", "get user by id")),
    ],
)
def test_no_letter_that_says_nothing_is_looked_for(query, words):
    assert Query.parse(query, Filter()).words == words


def test_contractions_say_nothing_and_names_do():
    assert is_contraction("They're")
    assert not is_contraction("O'Brien")
    assert apart("O'Brien's rock'n'roll").split() == ["Brien", "rock", "roll"]


def test_what_was_typed_is_known_with_all_that_may_stand_for_it():
    units = {unit.text: unit for unit in Query.parse("worst-case Søren of 1,872.00", Filter()).units}
    assert units["worst-case"].is_literal
    assert units["Søren"].forms == ("søren", "soren", "soeren")
    assert units["1,872.00"].forms == ("1,872.00", "1872", "1 872")
    assert "of" not in units


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("Use #ff8800, #c0ffee and #fff, #include <stdio.h>, #region Setup, see #L10-L20 and #42", []),
        ("https://x.org/#intro [to](#intro) \\#not C# #C#", []),
        ("#harbour #home/garden #b2b #decade #2026-plan #änderung #feature, (#no)", None),
    ],
)
def test_only_what_is_meant_as_a_tag_is_one(text, tags):
    expected = ["harbour", "home/garden", "b2b", "decade", "2026-plan", "änderung", "feature"] if tags is None else tags
    assert inline_tags(text) == expected


def test_a_document_is_known_by_who_wrote_it():
    assert front_matter("---\naliases: [Memex]\nauthor: Vannevar Bush\n---\n").aliases == ("Memex", "Vannevar Bush")


def test_names_are_those_of_files_without_folders_and_endings():
    assert stem_of("a/b/Vannevar Bush.md") == "Vannevar Bush"
    assert stem_of("mail.eml#lease.txt", is_part=True) == "lease"
    assert ending_of("a/memo.pdf") == "pdf"
    assert folders_of("https://x.org/a/b") == ["x.org", "a"]
