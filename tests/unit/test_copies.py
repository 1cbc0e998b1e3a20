"""Which passages are copies of each other, and that many of them cost little."""

from __future__ import annotations

import numpy as np
import pytest

from kb.search.copies import COUNTED, fold
from kb.search.fusion import Candidates, Ranking, fuse

LONG = (
    "This message is meant for its reader alone. Whoever gets it by mistake deletes it, tells the sender and keeps no"
    " copy of it. The firm is not liable for what its staff write without a signature on paper and a stamp of the day."
)


class Passages:
    """Passages in the order of their scores, each of a document of its own, whose vectors are alike."""

    def __init__(self, texts):
        self.texts, self.read = texts, 0
        ones, order = np.ones(len(texts)), np.arange(len(texts), dtype=np.int64)
        candidates = Candidates(order, ones, ones)
        self.ranking = Ranking(candidates, fuse(candidates), order, len(texts), {})

    def folded(self, top=10):
        return fold(self.ranking, range(len(self.texts)), top, self.vectors, range(len(self.texts)), self.texts_of)

    def vectors(self, ids):
        return np.ones((ids.size, 1), np.float32)

    def texts_of(self, ids):
        self.read += len(ids)
        return [self.texts[each] for each in ids]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It is C++.", "It is C#."),
        ("It costs 5 €.", "It costs 5 $."),
        ("दिन", "दीन"),
        ("At -5 degrees", "At 5 degrees"),
        ("🚢", "🚲"),
        ("", "."),
        ("a < b", "a > b"),
        ("Ask: yes?", "Ask: yes!"),
        ("10 %", "10 ‰"),
        ("שָׁלוֹם", "שְׁלוֹם"),
    ],
)
def test_short_passages_that_differ_in_a_sign_are_two(one, other):
    assert Passages([one, other]).folded().kept == [0, 1]


def test_white_space_tells_no_passages_apart_and_long_ones_may_differ_a_little():
    assert Passages(["a  b\nc", "a b c"]).folded() == ([0], {0: [1]})
    assert Passages([LONG, LONG.replace("firm", "bank") + "!"]).folded() == ([0], {0: [1]})
    assert Passages([LONG, LONG + " " + LONG[::-1]]).folded().kept == [0, 1]


def test_what_follows_enough_results_only_counts_as_copies():
    texts = [LONG, "one", LONG, "two", "three", LONG]
    assert Passages(texts).folded(top=2) == ([0, 1], {0: [2, 5]})


def test_thousands_of_copies_are_compared_with_what_is_kept_alone():
    passages = Passages([f"{LONG} {number}" for number in range(3000)] + ["answer"])
    assert passages.folded(top=10).kept == [0, 3000]
    assert passages.read == 3001
    enough = Passages([LONG, "answer", *[LONG] * 20_000])
    assert len(enough.folded(top=2).copies[0]) == COUNTED - 2
    assert enough.read <= COUNTED
