from __future__ import annotations

import json
import re

import pytest

from kb_cli.runtime.shell_query import as_typed

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
    assert kb.json("search", "feline naps", "--tags", tag, "--vec-only", "--exact")["results"] == meaning


@pytest.mark.requirement("L-3")
def test_finding_nothing_is_exit_code_1(kb, notes, tag):
    ended = kb("search", "zeppelin", "--fts-only", "--tags", tag)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert kb("search", "zeppelin", "--fts-only", "--tags", tag, "--json").returncode == 1


def test_a_person_reads_rank_title_place_tags_and_text(kb, notes, tag):
    lines = kb("search", "cats", "--tags", tag, "-n", "1").stdout.splitlines()
    assert lines[0] == " 1  On [cats]"
    assert lines[1].startswith("    id ")
    assert "line 1 · " in lines[1]
    assert "score" not in lines[1]
    assert lines[1].endswith(f"animals, {tag}")
    assert lines[2] == f"    Cats sleep for most of the day. {tag}"


def test_what_a_score_is_made_of_is_shown_on_request(kb, tag):
    kb.note("Order zx81 is late.", "--tags", tag)  # a word without stems in any language that other documents are in
    plain, explained = (kb("search", "zx81", "--tags", tag, "-n", "1", *more).stdout for more in ((), ("--explain",)))
    assert explained.startswith(plain)
    *score, words = explained.removeprefix(plain).splitlines()
    said = " ".join(" ".join(score).split())
    assert "= words" in said
    assert "+ meaning" in said
    assert "+ as typed" in said
    assert "no. 1" in said
    assert words.strip().startswith("words ")
    assert re.search(r"zx81 \d+\.\d\d \(idf \d+\.\d\d, ×\d+\)", words)


def test_a_word_that_no_document_has_is_told_with_what_was_searched_for(kb, tag):
    kb.note("The quartermaster counts blankets.", "--tags", tag)
    ended = kb("search", "quatermaster", "--tags", tag)
    assert "no document contains 'quatermaster'; kb searched for 'quartermaster'" in ended.stderr
    assert "as typed: kb search '\"quatermaster\"'" in ended.stderr
    assert "quartermaster counts" in ended.stdout


def test_operators_narrow_a_search_and_are_told(kb, notes, tag):
    ended = kb("search", f"sleep tag:{tag}/x OR", f"#{tag}", "-draft", "--ids")
    assert ended.returncode == 1
    assert f"kb: nothing found: no document has the tag '{tag}/x'" in ended.stderr
    ended = kb("search", "sleep", f"#{tag}", "type:note", "-borrow")
    assert f"filters: tag:{tag} type:note -borrow" in ended.stderr
    assert "On [cats]" in ended.stdout
    assert "On Rust" not in ended.stdout
    newest = kb("search", f"tag:{tag}")
    assert re.findall(r"On \S+", newest.stdout) == ["On Rust", "On [cats]"]
    assert newest.stderr == f"kb: filters: tag:{tag}\n"


def test_a_word_after_a_dash_is_excluded_and_a_misspelled_option_is_not(kb, notes, tag):
    assert [each["title"] for each in kb.json("search", "sleep", f"tag:{tag}", "-references")["results"]] == [
        "On [cats]"
    ]
    assert "No such option: --lmit" in kb("search", "sleep", "--lmit", "3").stderr
    assert "Write --top for the option" in kb("search", "sleep", "-top", "3").stderr


def test_a_line_follows_the_results_with_all_words(kb, notes, tag):
    shown = kb("search", "cats", "--tags", tag).stdout
    assert shown.index("On [cats]") < shown.index("── only close in meaning from here ──") < shown.index("On Rust")
    assert "from here" not in kb("search", "cats", "--tags", tag, "-n", "1").stdout


def test_a_subject_that_is_probably_not_in_kb_gets_few_results(kb, notes, tag):
    for number in range(6):
        kb.note(f"Lamp {number} is on quay {number}. {tag}", "--tags", tag)
    question = "salary of the president of Ruritania on a quay", "--tags", tag
    short = kb("search", *question)
    assert "this is probably not in kb; the closest:" in short.stderr
    assert short.stdout.endswith("    5 more: -n 8\n")
    assert len(re.findall(r"(?m)^    id ", short.stdout)) == 3
    assert len(re.findall(r"(?m)^    id ", kb("search", *question, "-n", "8").stdout)) == 8


OPTIONS = {"--top": True, "-n": True, "--tags": True, "--json": False, "-h": False}


@pytest.mark.parametrize(
    ("arguments", "passed_on"),
    [
        (["rust", "-tokio"], ["rust", "--", '-"tokio"']),
        (["-tokio", "rust", "-n", "3"], ["rust", "-n", "3", "--", '-"tokio"']),
        (["rust", "-Go", "--json"], ["rust", "--json", "--", '-"Go"']),
        (["lamp", "-blue lamp"], ["lamp", "--", '-"blue lamp"']),
        (["rust", "-tag:x", "-#y", "-path:my notes"], ["rust", "--", "-tag:x", "-#y", '-path:"my notes"']),
        (["tides", "path:my notes"], ["tides", 'path:"my notes"']),
        *(
            (whole, whole)
            for whole in (
                ["rust -tokio"], ["path:my notes"], ["--", "-tokio"], ["rust", "-n5"], ["rust", "-x"], ["-5"],
                ["rust", "--lmit"], ["rust", "--tags", "-odd"], ["rust", "--tags=-odd"], ["path:x y", "--tags", "a"],
            )
        ),
    ],
)  # fmt: skip
def test_a_shell_passes_on_a_query(arguments, passed_on):
    assert as_typed(arguments, OPTIONS) == passed_on


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
    assert f"{ESCAPE}[1;31mCats{ESCAPE}[0m sleep" in shown


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


@pytest.mark.parametrize("command", ["search", "get", "list", "delete"])
def test_characters_that_nobody_sees_are_shown_by_their_number(kb, tag, command):
    note = kb.note(
        f"evil \u202etxt.exe\u2066 \u200b{tag}", "--title", "safe \u202egpj.exe\u2028 \U000e0041", "--tags", tag
    )
    words = {"search": ["evil", "--tags", tag], "get": [note], "list": ["--tags", tag], "delete": [note]}
    _, shown = kb.in_terminal(command, *words[command], typed="n\n", env={"NO_COLOR": "1", "COLUMNS": "400"})
    assert "<U+202E>" in shown
    assert not any(character in shown for character in "\u202e\u2066\u200b\u2028\U000e0041")
    if command != "delete":
        _, document = kb.in_terminal(command, *words[command], "--json")
        assert not any(character in document for character in "\u202e\u2066\u200b\u2028\U000e0041")
        assert "safe \u202egpj.exe\u2028 \U000e0041" in json.dumps(json.loads(document), ensure_ascii=False)


def test_joiners_within_words_and_emoji_stay(kb, tag):
    text = f"क्\u200dष می\u200cبینم 🏳️\u200d🌈 👩\u200d👩\u200d👧 {tag}"
    kb.note(text, "--title", text, "--tags", tag)
    _, shown = kb.in_terminal("search", tag, "--tags", tag, env={"NO_COLOR": "1", "COLUMNS": "400"})
    assert shown.count(text.rpartition(" ")[0]) == 2
    kb.note("between\u200dplain\u200cletters é\u200d\u200cé", "--tags", f"{tag}-2")
    _, shown = kb.in_terminal("search", "plain", "--tags", f"{tag}-2", env={"NO_COLOR": "1", "COLUMNS": "400"})
    assert "between<U+200D>plain<U+200C>letters é<U+200D><U+200C>é" in shown


def test_words_of_the_query_are_in_colour_beside_what_is_shown_by_its_number(kb, tag):
    kb.note("A \u202ecat and another cat.", "--tags", tag)
    _, shown = kb.in_terminal("search", "cat", "--tags", tag)
    assert f"A <U+202E>{ESCAPE}[1;31mcat{ESCAPE}[0m and another {ESCAPE}[1;31mcat{ESCAPE}[0m." in shown


def test_a_result_shows_the_file_it_is_from(kb, folder, tag):
    kb("add", "papers", "--tags", tag, "--wait")
    assert f"\n    {folder / 'rust.md'}\n" in kb("search", "borrow", "--tags", tag).stdout
    _, shown = kb.in_terminal("search", "borrow", "--tags", tag, env={"COLUMNS": "30"})
    [path] = [
        line
        for line in re.sub(r"\x1b\[[\d;]*m|\x1b\]8;[^\x1b]*\x1b\\", "", shown).splitlines()
        if line.endswith("papers/rust.md")
    ]
    assert path == "    ~/papers/rust.md"
    assert len(path) <= 30


def test_wide_characters_stay_within_the_terminal(kb, tag):
    kb.note("猫が好きです。" * 60, "--title", "猫" * 60, "--tags", tag)
    _, shown = kb.in_terminal("list", "--tags", tag, env={"NO_COLOR": "1"})
    assert len(shown.splitlines()) == 2
    _, shown = kb.in_terminal("search", "猫", "--tags", tag, env={"NO_COLOR": "1"})
    assert all(2 * sum(map(str.__gt__, line, "\u2fff" * len(line))) <= 80 for line in shown.splitlines()[2:])


def test_what_is_too_long_for_a_line_goes_on_under_it(kb, tag):
    kb.note("Lamps and buoys of the outer harbour. " * 30, "--title", tag, "--tags", f"{tag},{'x' * 30},{'y' * 30}")
    _, shown = kb.in_terminal("search", "buoys", "-n", 1, "--tags", tag, env={"COLUMNS": "50"})
    lines = re.sub(r"\x1b\[[\d;]*m|\x1b\]8;[^\x1b]*\x1b\\", "", shown).splitlines()
    assert all(len(line) <= 50 for line in lines)
    assert all(line.startswith("    ") for line in lines[1:])
    assert lines[-1].endswith(" …")


def test_filters_by_tag_place_and_time(kb, folder, tag):
    kb("add", "papers", "--tags", f"{tag},one", "--wait")
    kb.note("A note about cats and references", "--tags", f"{tag},two")

    def titles(*options):
        answer = kb.json("search", "cats references", "--tags", tag, *options)
        return sorted(result["title"] for result in answer["results"])

    cat, note, rust = "cat", "A note about cats and references", f"Rust {tag}"
    assert titles() == sorted([cat, note, rust])
    assert titles("--not", "two") == sorted([cat, rust])
    assert titles("--any", "two,three") == [note]
    assert titles("--under", "papers/deep") == titles("--path", "papers/deep/cat.txt") == [cat]
    assert titles("--added-after", "2020-01-31", "--added-before", "2999-01-01") == titles()
    assert titles("--added-after", "last week") == titles()
    assert titles("--added-before", "3 days ago") == []
    assert titles("--added-before", "2020-01-31T12:00") == []
    assert kb("search", "x", "--added-after", "lately").returncode == 2


def test_ids_are_what_another_command_takes(kb, tag):
    notes = [kb.note(f"cats and more cats {number} {tag}", "--tags", tag) for number in range(3)]
    printed = kb("search", "cats", "--tags", tag, "--ids").stdout.split()
    assert sorted(map(int, printed)) == notes
    assert kb("list", "--tags", tag, "--ids").stdout.split() == list(map(str, notes[::-1]))
    assert kb("delete", "--yes", *printed).returncode == 0
    assert kb("search", "cats", "--tags", tag, "--ids").returncode == 1


def test_each_document_is_shown_once_when_that_is_wanted(kb, folder, tag):
    (folder / "rust.md").write_text(
        "".join(f"## Part {number}\n\n{'All about cats. ' * 60}\n\n" for number in range(3))
    )
    kb("add", "papers/rust.md", "--tags", tag, "--wait")
    assert len(kb.json("search", "cats", "--tags", tag)["results"]) > 1
    assert len(kb.json("search", "cats", "--tags", tag, "--documents")["results"]) == 1


@pytest.fixture
def opener(outside):
    """What opens files here: it only notes what it was given."""
    program = outside.folder / "bin" / "xdg-open"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$1" > {outside.folder}/opened\n')
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:/usr/bin:/bin"}


def test_the_best_result_can_be_opened(kb, folder, tag, opener):
    kb("add", "papers", "--tags", tag, "--wait")
    assert kb("search", "borrow checker", "--tags", tag, "--open", env=opener).returncode == 0
    assert (folder.parent / "opened").read_text() == f"{folder}/rust.md\n"
    (folder / "rust.md").chmod(0o755)
    program = kb("search", "borrow checker", "--tags", tag, "--open", env=opener)
    assert (program.returncode, "is a program" in program.stderr) == (8, True)
    (folder / "rust.md").unlink()
    gone = kb("search", "borrow checker", "--tags", tag, "--open", env=opener)
    assert gone.returncode == 8
    assert "is not on this machine. To see its text: kb get " in gone.stderr


def test_what_the_engine_matched_stands_out_and_not_only_the_same_letters(kb, tag):
    kb.note(f"She was running; runs follow. {tag}", "--tags", tag)
    _, shown = kb.in_terminal("search", "run", "--tags", tag)
    assert f"{ESCAPE}[1;31mrunning{ESCAPE}[0m" in shown
    assert f"{ESCAPE}[1;31mruns{ESCAPE}[0m" in shown


def test_a_date_of_a_notes_own_filters_and_orders(kb, tag):
    for day in ("2021-05-03", "2024-02-29", "2019-12-31"):
        kb.note(f"---\ndate: {day}\n---\nThe ferry was late. {day} {tag}", "--title", day, "--tags", tag)

    def titles(*options):
        return [each["title"] for each in kb.json("search", "ferry", "--tags", tag, *options)["results"]]

    assert titles("--newest") == ["2024-02-29", "2021-05-03", "2019-12-31"]
    assert titles("--newest", "--after", "2020") == ["2024-02-29", "2021-05-03"]
    assert titles("--before", "May 2021") == ["2019-12-31"]
    listed = kb.json("list", "--tags", tag, "--after", "2024-02")["documents"]
    for zone in ("Asia/Tokyo", "America/Lima"):
        for env, named in (({"TZ": zone}, ""), ({"TZ": "UTC"}, f" {zone}")):
            on = ("--after", f"2024-02-29{named}", "--before", f"1 March 2024{named}")
            assert [each["date"] for each in kb.json("list", "--tags", tag, *on, env=env)["documents"]] == [
                "2024-02-29"
            ]
            gone = ("--after", f"2024-03-01{named}", "--before", f"2 March 2024{named}")
            assert kb.json("list", "--tags", tag, *gone, env=env)["documents"] == []
    assert [each["title"] for each in listed] == ["2024-02-29"]
