"""A letter has as many marks as a language gives it, and more cost nothing."""

from __future__ import annotations

import unicodedata

import pytest

from kb.api.models import NoteRequest
from kb.api.stream_safe import composed, stream_safe
from kb.search.query import Query
from kb.store.rows import Filter

MARKS = "\u0301\u0327" * 10_000
"""In an order that is not theirs: putting so many into it takes seconds."""


@pytest.mark.parametrize("before", ["", "a", '"a', "word a", "日"])
def test_a_query_of_marks_is_read_at_once_and_keeps_as_many_as_a_letter_may_have(before):
    query = Query.parse(f"{before}{MARKS} harbour", Filter())
    assert len(query.text) <= len(before) + 30 + len(" harbour")
    assert "harbour" in query.words


def test_a_tag_of_marks_is_read_at_once():
    assert len(NoteRequest(text="x", tags=[f"a{MARKS}"]).tags[0]) <= 31


@pytest.mark.parametrize(
    "text",
    [
        "Straße, Zoë, naïve",
        "ă̧ " * 100,
        "🏳️‍🌈" * 100,
        ("a" + "\u0301" * 30) * 5,
        "क्षत्रिय " * 20,
        "จำนวน" * 50,
        "-" * 100,
        "…" * 100,
        "שָׁלוֹם",
    ],
)
def test_what_languages_write_stays_as_it_is(text):
    assert stream_safe(text) == text
    assert composed(text) == unicodedata.normalize("NFC", text)
