from __future__ import annotations

import pytest

ESCAPE = "\x1b"


@pytest.fixture
def notes(kb, tag):
    kb.note(f"Cats sleep for most of the day. {tag}", "--title", "On [cats]", "--tags", f"{tag},animals")
    kb.note(f"Rust's borrow checker verifies references. {tag}", "--title", "On Rust", "--tags", tag)


@pytest.mark.requirement("L-2")
@pytest.mark.requirement("L-3")
def test_json_is_what_the_engine_answered(kb, notes, tag):
    results = kb.json("search", "sleeping", "cats", "--tags", tag)["results"]
    assert [result["title"] for result in results] == ["On [cats]", "On Rust"]
    assert {"chunk_id", "fts_score", "vec_score", "place"} <= results[0].keys()


@pytest.mark.requirement("L-2")
def test_filters_and_modes_are_passed_on(kb, notes, tag):
    assert len(kb.json("search", "sleep", "--tags", f"{tag},animals")["results"]) == 1
    assert len(kb.json("search", "sleep", "--tags", tag, "-n", "1")["results"]) == 1
    assert kb.json("search", "sleep", "--tags", tag, "--type", "pdf")["results"] == []
    [words] = kb.json("search", "sleep", "--tags", tag, "--fts-only")["results"]
    assert words["vec_score"] is None
    meaning = kb.json("search", "feline naps", "--tags", tag, "--vec-only")["results"]
    assert meaning[0]["title"] == "On [cats]"
    assert meaning[0]["fts_score"] is None


@pytest.mark.requirement("L-3")
def test_finding_nothing_is_exit_code_1(kb, notes, tag):
    ended = kb("search", "zeppelin", "--fts-only", "--tags", tag)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert kb("search", "zeppelin", "--fts-only", "--tags", tag, "--json").returncode == 1


def test_two_modes_at_once_are_refused(kb):
    ended = kb("search", "x", "--fts-only", "--vec-only")
    assert ended.returncode == 6
    assert ended.stderr.count("\n") == 1


def test_a_person_reads_rank_title_place_score_tags_and_text(kb, notes, tag):
    lines = kb("search", "cats", "--tags", tag, "-n", "1").stdout.splitlines()
    assert lines[0] == " 1  On [cats]"
    assert lines[1].startswith("    id ")
    assert "line 1 · score " in lines[1]
    assert lines[1].endswith(f"animals, {tag}")
    assert lines[2] == f"    Cats sleep for most of the day. {tag}"


def test_the_place_tells_the_heading(kb, folder, tag):
    (folder / "rust.md").write_text(f"# Rust\n\n{'About Rust. ' * 40}\n\n## Borrowing\n\n{'It borrows. ' * 40}{tag}\n")
    kb("add", "papers/rust.md", "--tags", tag, "--wait")
    assert "Rust / Borrowing / line" in kb("search", "borrows", "--fts-only", "--tags", tag).stdout


def test_the_excerpt_begins_near_the_words_and_is_short(kb, tag):
    kb.note("Something else entirely. " * 20 + "Then a zeppelin landed. " + "And so on. " * 20, "--tags", tag)
    excerpt = kb("search", "zeppelin", "--tags", tag, "-n", "1").stdout.splitlines()[2:]
    assert len(excerpt) <= 3
    assert "zeppelin" in excerpt[0] + excerpt[1]
    assert excerpt[0].startswith("    … ")


def test_a_terminal_shows_the_words_of_the_query_in_colour(kb, notes, tag):
    _, shown = kb.in_terminal("search", "cats", "--tags", tag)
    assert f"{ESCAPE}[1;33mCats{ESCAPE}[0m sleep" in shown


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_no_colour_gets_none(kb, notes, tag, env):
    _, shown = kb.in_terminal("search", "cats", "--tags", tag, env=env)
    assert "[3" not in shown


def test_no_colour_goes_into_a_pipe(kb, notes, tag):
    assert ESCAPE not in kb("search", "cats", "--tags", tag).stdout


HOSTILE = "evil \x1b]0;owned\x07 \x1b[31m red \x9b31m [bold]loud[/bold] \r over"


@pytest.mark.parametrize("command", ["search", "get", "list", "jobs"])
def test_what_a_document_says_does_not_command_the_terminal(kb, tag, command):
    note = kb.note(HOSTILE + tag, "--title", HOSTILE, "--tags", tag)
    words = {"search": ["evil", "--tags", tag], "get": [note], "list": ["--tags", tag], "jobs": ["-n", "1"]}
    for _, shown in (
        kb.in_terminal(command, *words[command], env={"NO_COLOR": "1", "COLUMNS": "400"}),
        kb.in_terminal(command, *words[command], "--json"),
        (0, kb(command, *words[command]).stdout),
    ):
        assert "evil" in shown
        assert "[bold]loud[/bold]" in shown
        assert not any(f"{code}" in shown for code in ("\x1b]", "\x1b[31m", "\x07", "\x9b", "\r"))


def test_wide_characters_stay_within_the_terminal(kb, tag):
    kb.note("猫が好きです。" * 60, "--title", "猫" * 60, "--tags", tag)
    _, shown = kb.in_terminal("list", "--tags", tag, env={"NO_COLOR": "1"})
    assert len(shown.splitlines()) == 2
    _, shown = kb.in_terminal("search", "猫", "--tags", tag, env={"NO_COLOR": "1"})
    assert all(2 * sum(map(str.__gt__, line, "\u2fff" * len(line))) <= 80 for line in shown.splitlines()[2:])
