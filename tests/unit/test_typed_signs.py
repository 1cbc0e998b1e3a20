"""Signs, zeros and blanks that somebody typed: none is lost, and none that surrounds a word becomes part of it."""

from __future__ import annotations

import unicodedata

import apsw
import pytest

from kb.lexical.alternatives import alternatives
from kb.search.numbers import meant
from kb.search.passages import Highlighter
from kb.search.query import Query
from kb.store.analyzer import Fts5Analyzer, Tokenizer
from kb.store.rows import Filter


@pytest.fixture(scope="module")
def analyzer():
    return Fts5Analyzer(Tokenizer(apsw.Connection(":memory:")))


def parsed(text):
    return Query.parse(text, Filter())


@pytest.mark.parametrize(
    "typed", ["01067", "007", "9,90", "4.0", "0.50", "1,872.00", "2.10", "00:15", "+49", "A4", "1.000", "12 256"]
)
def test_what_is_looked_for_begins_with_what_was_typed(typed):
    forms = {unit.text: unit.forms for unit in parsed(typed).units}
    assert forms[typed][0] == typed.lower()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("iPhone 12 256 GB", {"iphone", "12", "256", "gb"}),
        ("Industrie 4.0", {"industrie", "4.0"}),
        ("USB 3.0", {"usb", "3.0"}),
        ("Room 7 101", {"room", "7", "101"}),
        ("chapter 1 200 verses", {"chapter", "1", "200", "verses"}),
        ("1 872,00", {"1872"}),
        ("Windows 10.00", {"windows", "10.00", "10"}),
    ],
)
def test_no_word_of_a_query_disappears_into_a_number(query, words):
    assert words <= set(parsed(query).words)


@pytest.mark.parametrize(
    ("one", "other"), [("4.0", "4"), ("9.90", "9.9"), ("01067", "1067"), ("007", "7"), ("0.5", "0.50")]
)
def test_zeros_count_in_versions_and_codes(one, other):
    assert meant(one) is None or meant(one) != meant(other)


@pytest.mark.parametrize(("one", "other"), [("12.50", "12,5"), ("100.00", "100"), ("9.90", "9,90"), ("1 872", "1872")])
def test_zeros_and_signs_say_nothing_in_amounts(one, other):
    assert meant(one) == meant(other)


@pytest.mark.parametrize(
    ("query", "units"),
    [
        ("What is C#?", ["C#"]),
        ("C++, Rust", ["C++", "Rust"]),
        ("`foo_bar`", ["foo_bar"]),
        ("\u2018Ahoy\u2019", ["Ahoy"]),
        ("{harbour}", ["harbour"]),
        ("「夏目」", ["夏目"]),
        ("(.NET)", [".NET"]),
        ("edit .env.", ["edit", ".env"]),
        ("...harbour…", ["harbour"]),
        ("*C#*", ["C#"]),
        ("¿Qué puerto?", ["Qué", "puerto"]),
        ("<F#>", ["F#"]),
        ("“Notepad++”;", ["Notepad++"]),
    ],
)
def test_signs_around_words_are_no_part_of_them(query, units):
    assert [unit.text for unit in parsed(query).units] == units


@pytest.mark.parametrize("word", ["C++", "C#", ".NET", "F#", "g++"])
def test_a_name_that_ends_in_a_sign_is_marked_with_it(analyzer, word):
    for text in (word, f"It is {word}", f"With {word}, or not."):
        [(start, end)] = Highlighter(analyzer, parsed(word).words).ranges(text)
        assert text[start:end] == word


@pytest.mark.parametrize("word", ["index", "Notepad", "libstdc", "größe"])
def test_a_word_is_found_where_signs_of_a_language_follow_it(analyzer, word):
    assert set(analyzer.stems_of(word)) <= set(analyzer.indexed(f"Then {word}++; is called"))
    [unit] = parsed(f"{word}++").units
    assert unit.is_literal


@pytest.mark.parametrize(
    "text", ["l'été à Évian", "कि दीवार", "ガイド が", "Ἀθῆναι", "naïve crème brûlée", "한국 여행"]
)
def test_a_decomposed_query_is_the_composed_one(text):
    decomposed, composed = (parsed(unicodedata.normalize(form, text)) for form in ("NFD", "NFC"))
    assert decomposed == composed


def test_spellings_of_one_word_are_one():
    words = parsed("Müller Søren Łódź Rechnung").words
    assert alternatives(words) == [
        ["müller", "mueller"],
        ["søren", "soren", "soeren"],
        ["łódź", "lódź"],
        ["rechnung"],
    ]
    assert alternatives(["müller", "mueller", "rech*"]) == [["müller"], ["mueller"], ["rech*"]]


def test_words_that_say_nothing_in_any_language_are_not_counted():
    assert [each.forms for each in parsed("wo ist der Schlüssel").telling] == [("schlüssel", "schluessel")]
    assert [each.forms for each in parsed("où est la clé").telling] == [("clé",)]
    assert [each.forms for each in parsed("vann* klokka").telling] == [("vann*",), ("klokka",)]
    [sentence] = parsed("船什么时候开").telling
    assert sentence.forms == ("船什", "什么", "么时", "时候", "候开")
    assert not parsed("the und que").telling
