"""Which document a file belongs to after names were changed between two rounds."""

from __future__ import annotations

from hashlib import sha256

import pytest

from kb_cli.sync.digests import DigestCache
from kb_cli.sync.file_item import FileItem
from kb_cli.sync.moves import find_moves
from kb_cli.sync.remote_files import RemoteFile


@pytest.fixture
def moves(tmp_path):
    """`moves(before, now)` says from where each file has moved, in order: folders as texts by name."""

    def find(before, now):
        for name, text in now.items():
            (tmp_path / name).write_text(text)
        remote = {
            name: RemoteFile(sha256(text.encode()).hexdigest(), name, frozenset(), document_id=number)
            for number, (name, text) in enumerate(before.items())
        }
        items = [FileItem(str(tmp_path / name), name) for name in now]
        gone = {name: remote[name].document_id for name in before if name not in now}
        return [(old, item.source_path) for item, old in find_moves(items, gone, remote, DigestCache())]

    return find


def test_a_file_that_took_the_name_of_one_that_moved_on_stays_the_same_document(moves):
    assert moves({"a": "A", "b": "B"}, {"b": "A", "c": "B"}) == [("b", "c"), ("a", "b")]
    assert moves({"a": "A", "b": "B", "c": "C"}, {"b": "A", "c": "B", "d": "C"}) == [("c", "d"), ("b", "c"), ("a", "b")]


def test_the_names_are_free_in_the_order_of_the_moves(moves):
    before = {"log": "3", "log.1": "2", "log.2": "1"}
    taken = set(before)
    for old, new in moves(before, {"log.1": "3", "log.2": "2", "log.3": "1"}):
        assert new not in taken
        taken = taken - {old} | {new}
    assert taken == {"log.1", "log.2", "log.3"}


def test_a_file_that_was_written_over_another_one_takes_its_place(moves):
    assert moves({"a": "A", "b": "B"}, {"b": "A"}) == []


def test_names_that_were_swapped_and_copies_that_were_edited_stay_where_they_are(moves):
    assert moves({"a": "A", "b": "B"}, {"a": "B", "b": "A"}) == []
    assert moves({"a": "A"}, {"a": "A2", "copy": "A"}) == []
    assert moves({"a": "A", "x": "X"}, {"a": "A2", "copy": "A"}) == []


def test_a_chain_takes_no_file_that_moved_otherwise(moves):
    assert moves({"a": "A", "b": "B", "z": "B"}, {"b": "A", "c": "B"}) == [("z", "c")]


def test_a_file_that_cannot_be_read_has_taken_no_place(moves, tmp_path):
    (tmp_path / "b").mkdir()
    remote = {name: RemoteFile(None, name, frozenset(), document_id=1) for name in "ab"}
    items = [FileItem(str(tmp_path / "b"), "b")]
    assert find_moves(items, {"a": 1}, remote, DigestCache()) == []
