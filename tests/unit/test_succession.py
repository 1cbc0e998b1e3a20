"""The order of what was replaced and of what replaced it."""

from __future__ import annotations

import random

import pytest

from kb.search.passages import in_succession


@pytest.mark.parametrize(
    ("documents", "successors", "order"),
    [
        ([1, 2, 3], {}, [1, 2, 3]),
        ([1, 9, 2], {1: [2]}, [2, 1, 9]),
        ([2, 9, 1], {1: [2]}, [2, 9, 1]),
        ([1, 9, 2, 3], {1: [2, 3], 2: [3]}, [3, 2, 1, 9]),
        ([1, 9], {1: [2]}, [1, 9]),
        ([1, 1, 2, 2], {1: [2]}, [2, 1, 1, 2]),
        ([2, 1, 9, 3], {1: [2, 3], 2: [3]}, [3, 2, 1, 9]),
    ],
)
def test_what_replaced_a_document_takes_its_place(documents, successors, order):
    assert in_succession(documents, documents, successors) == order


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_and_nothing_stands_before_what_replaced_it(seed):
    chance = random.Random(seed)
    replaced = {later: chance.randrange(later) for later in range(1, 30) if chance.random() < 0.6}
    direct = {}
    for later, earlier in replaced.items():
        direct.setdefault(earlier, []).append(later)

    def reached(document_id):
        near = direct.get(document_id, [])
        return [*near, *(far for each in near for far in reached(each))]

    successors = {each: found for each in range(30) if (found := reached(each))}
    documents = [chance.randrange(30) for _ in range(60)]
    items = list(range(60))
    order = in_succession(items, documents, successors)
    assert sorted(order) == items
    first = {}
    for place, item in enumerate(order):
        first.setdefault(documents[item], place)
    for earlier, later in successors.items():
        assert all(first[each] < first[earlier] for each in later if earlier in first and each in first)
