from __future__ import annotations

from dataclasses import replace

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.search.fusion import Candidates, best, fuse, scale_of
from kb.search.query import MAX_TERMS, Query, keywords
from kb.store.rows import Filter
from kb.store.sqlite.index import match_expression
from kb.vectors.scores import ScoredChunks

NAN = float("nan")


def candidates(fts, vec):
    return Candidates(np.arange(1, len(fts) + 1), np.array(fts, float), np.array(vec, float))


def ranked(fts, vec):
    found = candidates(fts, vec)
    return found.ids[best(found, fuse(found).scores, 10)].tolist()


def test_stop_words_count_only_when_there_is_nothing_else():
    assert keywords("What is the capital of France?") == ["capital", "france"]
    assert keywords("to be or not to be") == ["to", "be", "or", "not"]


def test_a_query_without_a_word_asks_nothing_of_the_full_text():
    assert keywords("?! … \x00 *") == []


def test_a_query_asks_for_a_bounded_number_of_words():
    query = Query.parse(" ".join(f"word{number}" for number in range(20_000)), Filter())
    assert len(query.terms) == MAX_TERMS


def test_a_leg_that_shall_not_run_has_nothing_to_look_for():
    words_only, vectors_only = (Query.parse("lamp", Filter(), **{leg: False}) for leg in ("vectors", "full_text"))
    assert (words_only.text, words_only.words) == (None, ("lamp",))
    assert (vectors_only.text, vectors_only.words) == ("lamp", ())


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_no_word_is_a_syntax_error(words):
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5 (text)")
    assert connection.execute("SELECT * FROM t WHERE t MATCH ?", (match_expression(words),)).fetchall() == []


def test_what_both_legs_like_comes_first():
    assert ranked([9, 5, NAN, NAN], [0.9, 0.2, 0.8, 0.1])[0] == 1


def test_a_strong_match_in_one_leg_beats_a_weak_one_in_both():
    assert ranked([30, 1, 1, NAN], [0.3, 0.35, 0.32, 0.1])[0] == 1


@pytest.mark.parametrize("leg", [[3, 1, 2], [NAN, NAN, NAN]])
def test_one_leg_alone_ranks_by_its_own_scores(leg):
    other = [NAN] * 3 if leg[0] == 3 else [3, 1, 2]
    assert ranked(leg, other) == [1, 3, 2]


def test_equal_scores_are_ranked_by_age():
    assert ranked([1, 1, 1], [0.5, 0.5, 0.5]) == [1, 2, 3]


def test_a_leg_whose_scores_are_equal_adds_nothing():
    fused = fuse(candidates([0.1] * 3, [0.5, 0.2, 0.1]))
    assert fused.words.tolist() == [0, 0, 0]
    assert fuse(candidates([3, 2, 1], [0.1] * 3)).meaning.tolist() == [0, 0, 0]


def test_equal_matches_score_no_less_than_what_no_word_matches():
    match, near = candidates([1e-6] * 3, [0.1] * 3), candidates([NAN] * 3, [0.9] * 3)
    assert fuse(match).scores.tolist() == pytest.approx([1.1] * 3)
    assert fuse(match).scores.min() > fuse(near).scores.max()


def test_scores_can_be_measured_by_the_scale_of_others():
    few, many = candidates([9, 5, 1], [0.9, 0.2, 0.8]), candidates([9, 5, 1, 0.5], [0.9, 0.2, 0.8, 0.1])
    scaled = fuse(replace(many, scale=scale_of(few))).scores
    assert scaled[:3].tolist() == fuse(few).scores.tolist()
    assert scaled[3] < scaled[:3].min()


def test_nothing_found_is_an_empty_list():
    assert ranked([], []) == []


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(-1, 1)), min_size=1, max_size=30))
def test_scores_are_always_numbers(pairs):
    fts, vec = zip(*pairs, strict=True)
    assert np.isfinite(fuse(candidates(fts, vec)).scores).all()


def test_accents_are_written_in_more_than_one_way():
    assert keywords("cafe\u0301 Ünal") == keywords("caf\u00e9 \u00fcnal") == ["café", "ünal"]


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=40), st.integers(1, 20))
def test_the_best_of_many_are_those_that_sorting_would_give(scores, limit):
    scored = ScoredChunks(np.arange(len(scores)), np.array(scores, float))
    expected = sorted(sorted(range(len(scores)), key=lambda row: (-scores[row], row))[:limit])
    assert scored.best(limit).ids.tolist() == expected
