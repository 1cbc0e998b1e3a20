"""An export keeps folders and names."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from kb.exchange.export_names import Tree, safe_name
from kb.folders.safe_names import LONGEST


def placed(*paths):
    tree = Tree(paths)
    return [str(tree.place(path, number)) for number, path in enumerate(paths, 1)]


def test_whole_paths_begin_with_the_last_folder_that_all_share():
    assert placed("/home/ada/vault/a.md", "/home/ada/vault/b/c d.md") == ["vault/a.md", "vault/b/c d.md"]
    assert placed("/home/ada/vault/a.md", "/srv/b.pdf") == ["home/ada/vault/a.md", "srv/b.pdf"]
    assert placed("/a.md") == ["a.md"]


def test_other_names_stay_as_they_are_and_addresses_have_a_folder():
    paths = placed("vault/Grüße 猫.md", "https://example.org/a/b?c=1", "mail.eml#tides.txt")
    assert paths == ["vault/Grüße 猫.md", "web/example.org/a/b-c=1", "mail.eml#tides.txt"]


@pytest.mark.parametrize("path", ["../../etc/passwd", "a/../../b.md", "..\\..\\b.md", "\0/..", "/.."])
def test_no_name_leads_out_of_the_export(path):
    [place] = placed(path)
    assert ".." not in PurePosixPath(place).parts
    assert not place.startswith("/")
    assert "\0" not in place


def test_what_would_stand_in_one_place_has_its_id():
    assert placed("a/B.md", "a/b.md", "a/b.md/c.md", "a") == ["a/B.md", "a/b (2).md", "3-c.md", "a (4)"]


def test_long_names_are_cut_before_their_ending():
    name = safe_name("猫" * 200 + ".md")
    assert len(name.encode()) <= LONGEST
    assert name.endswith("猫.md")
