"""Which files of a folder are meant, also when someone else filled it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from kb.folders.ignore_pattern import LinearPattern
from kb_cli.sync.file_selection import select_files


@pytest.fixture
def repository(tmp_path):
    """A folder with links to itself, and out of it."""
    (tmp_path / "secret").write_text("a key")
    folder = tmp_path / "repository"
    (folder / "deep").mkdir(parents=True)
    (folder / "own.md").write_text("words")
    (folder / "deep" / "within.md").symlink_to("../own.md")
    (folder / "deep" / "outside.md").symlink_to("../../secret")
    (folder / "outside.txt").symlink_to(tmp_path / "secret")
    (folder / "chain.md").symlink_to("outside.txt")
    return folder


def names(selection, folder):
    return [path.relative_to(folder).as_posix() for path in selection.files]


def test_links_out_of_a_folder_are_left_out_and_counted(repository):
    selection = select_files([str(repository)])
    assert names(selection, repository) == ["deep/within.md", "own.md"]
    assert len(selection.outside) == 3


def test_a_folder_that_is_a_link_itself_is_the_folder_it_leads_to(repository, tmp_path):
    (tmp_path / "link").symlink_to(repository)
    assert names(select_files([str(tmp_path / "link")]), tmp_path / "link") == ["deep/within.md", "own.md"]


def test_they_are_followed_when_that_is_asked_for(repository):
    selection = select_files([str(repository)], follow_links=True)
    assert names(selection, repository) == ["chain.md", "deep/outside.md", "deep/within.md", "outside.txt", "own.md"]
    assert selection.outside == []


def test_a_link_that_is_named_goes_in(repository):
    assert names(select_files([str(repository / "outside.txt")]), repository) == ["outside.txt"]


@pytest.mark.parametrize("pattern", ["*a" * 20 + "b", "/".join(["**", "a"] * 20) + "/b", "*a*/" * 20 + "b"])
def test_a_pattern_of_many_stars_takes_no_time(tmp_path, pattern):
    folder = tmp_path / "cloned"
    deepest = folder.joinpath(*["a" * 60] * 30)
    deepest.mkdir(parents=True)
    (deepest / ("a" * 200)).touch()
    (folder / ".kbignore").write_text(pattern)
    assert len(select_files([str(folder)]).files) == 1


WORDS = st.text("ab*?", min_size=1, max_size=5) | st.sampled_from(["**", "*", "[ab]*", "a*b"])
PATTERNS = st.builds(
    lambda before, words, after: before + "/".join(words) + after,
    st.sampled_from(["", "/", "!", "**/"]),
    st.lists(WORDS, min_size=1, max_size=5),
    st.sampled_from(["", "/", "/**"]),
)
PATHS = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=6).map("/".join)


@given(st.lists(PATTERNS, min_size=1, max_size=3), PATHS, st.sampled_from(["", "/"]))
def test_patterns_mean_what_they_mean_to_git(patterns, path, end):
    ours = GitIgnoreSpec.from_lines(patterns, LinearPattern, backend="simple")
    theirs = GitIgnoreSpec.from_lines(patterns)
    assert ours.check_file(path + end).include == theirs.check_file(path + end).include
