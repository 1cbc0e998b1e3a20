"""Tags as a tree, on each backend."""

from __future__ import annotations

from itertools import product

import pytest

from kb.api.rights import Limit
from kb.api.tag_tree import is_in_branch, renamed, tags_above
from kb.store.rows import Filter
from tests.store.test_store import DIMENSIONS, add

TAGS = [
    "projects", "projects/kiln", "projects/kiln/bricks", "projects-old", "projects0", "projects.x", "project", "Projects",
    "projects/", "projects//odd", "Zürich", "Zürich/Süd", "zürich", "100%", "100%/x", "100x", "a_b", "a_b/c", "axb/c",
    "日本", "日本/東京", "日本酒", "x\U0010ffff", "x\U0010ffff/y", "/", "//", "/root", "emoji/🐘", "emoji",
]  # fmt: skip
"""One of each kind, with look-alikes."""


@pytest.fixture
def store(make_store):
    with make_store(dimensions=DIMENSIONS) as opened:
        yield opened


@pytest.fixture
def tagged(store):
    """The ids of documents by their only tag."""
    return {tag: add(store, f"text {number}", tags=[tag]) for number, tag in enumerate(TAGS)}


def ids(store, **where):
    with store.read() as tx:
        page = [document.id for document in tx.documents.page(Filter(**where), sort="id", limit=500, cursor=None)]
        recent = tx.documents.page(Filter(**where), sort="recent", limit=500, cursor=None)
        assert sorted(document.id for document in recent) == page
        assert tx.documents.count(Filter(**where)) == len(page)
        assert len(tx.index.select(Filter(**where)).chunk_ids()) == len(page)
    return set(page)


def test_a_tag_in_a_filter_includes_the_tags_below_it_and_no_look_alike(store, tagged):
    for branch in TAGS:
        expected = {tagged[tag] for tag in TAGS if is_in_branch(tag, branch)}
        assert tagged[branch] in expected
        assert ids(store, tags=(branch,)) == ids(store, tag_any=(branch,)) == expected, branch
        assert ids(store, limit=Limit((branch,))) == expected, branch
        assert ids(store, tag_not=(branch,)) == set(tagged.values()) - expected, branch
        assert ids(store, tags=(branch,), tag_exact=True) == {tagged[branch]}
        assert ids(store, tag_not=(branch,), tag_exact=True) == set(tagged.values()) - {tagged[branch]}


def test_the_limit_of_a_key_is_a_tree_even_if_a_filter_is_not(store, tagged):
    limit = Limit(("projects/kiln",))
    assert ids(store, limit=limit) == {tagged["projects/kiln"], tagged["projects/kiln/bricks"]}
    assert ids(store, limit=limit, tags=("projects/kiln/bricks",), tag_exact=True) == {tagged["projects/kiln/bricks"]}
    assert ids(store, limit=limit, tags=("projects",), tag_exact=True) == set()


def test_many_tags_of_a_filter_each_include_the_tags_below_them(store):
    whole = add(store, "all of them", tags=[f"t{number}/below" for number in range(40)])
    add(store, "one is missing", tags=[f"t{number}/below" for number in range(39)])
    assert ids(store, tags=tuple(f"t{number}" for number in range(40))) == {whole}


@pytest.mark.parametrize(
    ("branch", "tag", "expected"),
    [
        ("projects", "projects", True), ("projects", "projects/kiln", True), ("projects", "projects-old", False),
        ("projects", "projects0", False), ("projects", "Projects", False), ("projects/", "projects", True),
        ("projects/", "projects/kiln", True), ("projects/kiln", "projects", False), ("projects", "project", False),
        ("projects/kiln", "projects/kilns", False), ("/", "/", True), ("/", "a", False), ("a", "a//b", True),
    ],
)  # fmt: skip
def test_a_tag_is_in_a_branch(branch, tag, expected):
    assert is_in_branch(tag, branch) is expected


def test_the_tags_above_a_tag_are_those_whose_branch_it_is_in():
    for tag, branch in product(TAGS, TAGS):
        if branch in set(tags_above(tag)):
            assert is_in_branch(tag, branch)
    assert list(tags_above("a/b/c")) == ["a", "a/b"]
    assert [*tags_above("a"), *tags_above("/root")] == []


@pytest.mark.parametrize(
    ("tag", "old", "new", "expected"),
    [
        ("projects", "projects", "work", "work"), ("projects/kiln", "projects", "work", "work/kiln"),
        ("projects/kiln/x", "projects/kiln", "kiln", "kiln/x"), ("projects/", "projects", "work", "work"),
        ("projects/projects", "projects", "work", "work/projects"), ("a/b", "a", "a/b", "a/b/b"),
    ],
)  # fmt: skip
def test_a_tag_below_a_renamed_one_keeps_its_end(tag, old, new, expected):
    assert renamed(tag, old, new) == expected


def test_branches_count_each_document_once(store):
    add(store, "one", tags=["p/kiln", "p/house"])
    add(store, "two", tags=["p"])
    add(store, "three", tags=["p/kiln/bricks", "other"])
    add(store, "four", tags=["p-old"])
    with store.read() as tx:
        assert tx.documents.branches() == {"p": 3, "p/kiln": 2}
        assert tx.documents.branches(Limit(("other",))) == {"p": 1, "p/kiln": 1}
        assert tx.documents.branches(Limit(("p-old",))) == {}
