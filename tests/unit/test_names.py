"""By which names a document is found: those of its file, in any script, its aliases and its author."""

from __future__ import annotations

import unicodedata

import apsw
import pytest

from kb.lexical.names import aliases_of, stem_of, telling, tokens_of, with_aliases
from kb.search.named import WHOLE, likeness, sought
from kb.search.query import Query
from kb.store.analyzer import Fts5Analyzer, Tokenizer
from kb.store.rows import Filter, Named


@pytest.fixture(scope="module")
def indexed():
    return Fts5Analyzer(Tokenizer(apsw.Connection(":memory:"))).indexed


def likened(indexed, query, path, *, title="Something else", is_part=False, header=""):
    words, whole = sought(Query.parse(query, Filter()).units, indexed)
    named = Named(1, title, path, "", is_part, header)
    assert whole in tokens_of(indexed, named.names, path) or not words
    return likeness(named, words, indexed)


@pytest.mark.parametrize(
    "name",
    [
        "C++",
        "C#",
        ".NET",
        "दीवार की मरम्मत",
        "ตารางเรือ",
        "שָׁלוֹם",
        "Ἀθῆναι",
        "naïve café",
        "東京の天気",
        "Łódź",
        "Issue #42 login",
        "Größe",
        "한국 여행",
        "getUserById",
        "snake_case_name",
        "Vannevar Bush",
        "μετρό",
    ],
)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_file_is_found_by_its_whole_name_in_any_script(indexed, name, form):
    assert likened(indexed, name, f"notes/{unicodedata.normalize(form, name)}.md") == WHOLE


@pytest.mark.parametrize(
    ("query", "name"), [("C", "C++"), ("C++", "C#"), ("NET", ".NET"), ("दान", "दिन"), ("42", "#421")]
)
def test_a_sign_or_a_mark_makes_another_name(indexed, query, name):
    words = sought(Query.parse(query, Filter()).units, indexed)[0]
    assert likeness(Named(1, "", f"{name}.md", "", is_part=False, header=""), words, indexed) == 0


@pytest.mark.parametrize(
    ("path", "is_part", "stem"),
    [
        ("C#.md", False, "C#"),
        ("Issue #42 login.md", False, "Issue #42 login"),
        ("mail.eml#lease.txt", True, "lease"),
        ("box/Issue #42.eml#C#.md", True, "C#"),
        ("a.zip#b.eml#c/lease.txt", True, "lease"),
        ("a/.gitignore", False, ".gitignore"),
        ("a\\b\\.NET.md", False, ".NET"),
    ],
)
def test_a_name_is_cut_at_a_hash_only_inside_another_file(path, is_part, stem):
    assert stem_of(path, is_part=is_part) == stem


def test_stop_words_are_left_out_of_names_unless_there_are_no_others(indexed):
    assert telling(indexed, "How to sail the boat") == telling(indexed, "sail boat")
    assert telling(indexed, "how_to_sail") == ["sail"]
    assert telling(indexed, "To be or not to be")
    assert telling(indexed, "It") == ["it"]
    assert telling(indexed, "John Doe") == ["john", "doe"]


def test_aliases_and_authors_are_names(indexed):
    title = with_aliases("As We May Think", ["Memex", "Vannevar Bush"])
    header = f"{title} › The desk"
    assert aliases_of("As We May Think", header) == ["Memex", "Vannevar Bush"]
    assert aliases_of("Report (2024)", "Report (2024) › Costs") == []
    assert aliases_of("Report", "Report › Costs (2024)") == []
    assert with_aliases("Report", []) == "Report"
    for query in ("memex", "Vannevar Bush"):
        assert likened(indexed, query, "essay.md", title="As We May Think", header=header) == WHOLE
