"""Which tokens may stand in some chunk."""

from __future__ import annotations

import pytest

from kb.lexical.index import MOST_ADDED, TermSet


def words(count, start=0):
    return [f"word{number}" for number in range(start, start + count)]


def test_until_the_database_was_read_every_token_may_be_there():
    terms = TermSet()
    terms.add(["one"])
    assert terms.possible(["one", "two"], 9) == ["one", "two"]


def test_a_snapshot_before_that_reading_may_have_had_other_tokens():
    terms = TermSet()
    terms.fill([["one"]], 5)
    assert terms.possible(["one", "two"], 4) == ["one", "two"]
    assert terms.possible(["one", "two"], 5) == ["one"]


@pytest.mark.parametrize("count", [10, MOST_ADDED * 2 + 10])
def test_tokens_of_new_chunks_are_there_whenever_they_were_added(count):
    terms = TermSet()
    terms.add(words(count))
    terms.fill([words(5, 10**6), words(5, 2 * 10**6)], 1)
    for start in range(count, 2 * count, 1000):
        terms.add(words(min(1000, 2 * count - start), start))
    there = words(2 * count) + words(5, 10**6) + words(5, 2 * 10**6)
    assert terms.possible([*there, "nowhere"], 1) == there


def test_a_set_that_must_be_read_again_lacks_nothing_meanwhile_and_afterwards():
    terms = TermSet()
    terms.fill([["one"]], 1)
    terms.since = None
    assert terms.possible(["two"], 7) == ["two"]
    terms.fill([["two"]], 7)
    assert terms.possible(["one", "two", "three"], 7) == ["one", "two"]
