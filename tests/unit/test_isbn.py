"""ISBNs in their spellings."""

from __future__ import annotations

import pytest

from kb.search.numbers import other_spellings


@pytest.mark.parametrize(
    "isbn",
    [
        "978-3-16-148410-0",
        "3-16-148410-x",
        "978-0-306-40615-7",
        "0-8044-2957-x",
        "99921-58-10-7",
        "979-8-6024-0545-3",
        "978-617-7171-80-4",
    ],
)
def test_an_isbn_without_hyphens_is_also_looked_for_with_those_that_it_has(isbn):
    digits = isbn.replace("-", "")
    assert other_spellings(isbn) == [digits]
    assert isbn in other_spellings(digits)
    assert len(other_spellings(digits)) <= 6


@pytest.mark.parametrize(
    "word", ["9783161484101", "1234567890", "0306406153", "978-3", "v3.0.1", "", "x" * 10, "97831614841x0"]
)
def test_what_is_no_isbn_has_no_other_spelling(word):
    assert other_spellings(word) == []
