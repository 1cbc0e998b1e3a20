"""Which words are spelled nearly alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kb.lexical.spelling import alphabet, distance, edits, may_be_near, plain

words = st.text("abcdeü", min_size=1, max_size=7)


@given(words)
def test_what_is_one_change_away_is_at_distance_one(word):
    letters = plain(word)
    assert all(distance(letters, other) == distance(other, letters) == 1 for other in edits(letters))
    assert all(may_be_near(letters, other, 1) for other in edits(letters))


@given(words, words)
def test_what_can_be_near_is_never_left_out(first, second):
    assert may_be_near(first, second, distance(first, second))
    assert (distance(first, second) == 0) == (first == second)


def test_letters_are_those_of_the_words_own_alphabet():
    assert "привет" in edits("првет")
    assert "munchen" in edits(plain("müncehn"))
    assert not set(alphabet(0)) & set("üß7_")


def test_a_word_of_many_alphabets_becomes_no_other():
    assert edits("straße")
    assert not edits("straße\u03b3\u0431\u10d3")
