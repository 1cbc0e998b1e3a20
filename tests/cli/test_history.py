from __future__ import annotations

from datetime import UTC, datetime

import pytest


@pytest.fixture
def note(kb, tag):
    return kb.note(f"The {tag} is lit at six.", "--tags", tag)


def test_versions_are_listed_shown_compared_and_reverted_to(kb, note, tag):
    kb("updatenote", note, f"The {tag} is lit at seven.")
    rows = [line.split("\t") for line in kb("history", note).stdout.splitlines()]
    assert [row[0] for row in rows] == ["2", "1"]
    assert rows[0][3].endswith("(cli)")
    assert kb("history", note, 1).stdout == f"The {tag} is lit at six."
    assert kb("history", note, 1, "--diff").stdout == f"The {tag} is lit at [-six-]{{+seven+}}.\n"
    assert kb("history", note, "--diff").returncode == 2
    assert kb("get", note, "--text", "--version", 1).stdout == f"The {tag} is lit at six."
    assert kb("get", note, "--version", 3).returncode == 5
    assert "leave --version out" in kb("get", note, "--version", 1, "--file", "-").stderr
    reverted = kb("revert", note, 1, "--why", "it was six")
    assert reverted.stdout.startswith(f"document {note} is as it was at version 1")
    assert kb.json("history", note)["versions"][0]["why"] == "it was six"
    assert kb("revert", note, 99).returncode == 5


def test_every_change_may_say_why(kb, note):
    for change in (("updatenote", note, "Other words."), ("tag", note, "--add", "more"), ("revert", note, 1)):
        kb(*change, "--why", f"for {change[0]}")
        assert kb.json("history", note)["versions"][0]["why"] == f"for {change[0]}"


def test_what_was_deleted_is_in_the_bin_until_it_is_restored_or_purged(kb, note, tag):
    kb("delete", note, "--yes", "--why", "by mistake")
    rows = [line.split("\t") for line in kb("bin").stdout.splitlines()]
    [row] = [row for row in rows if row[0] == str(note)]
    assert row[3] == "by mistake"
    assert "in the bin" in kb("history", note).stderr
    assert kb("restore", note).stdout == f"document {note} is restored: The {tag} is lit at six.\n"
    assert kb("restore", note).returncode == 6
    assert kb("restore", "nothing").returncode == 2
    kb("delete", note, "--yes")
    assert kb("delete", note, "--purge", "--yes").returncode == 0
    assert kb("restore", note).returncode == 5


def test_an_undo_is_shown_and_needs_a_yes(kb, note):
    since = datetime.now(UTC).isoformat()
    kb("tag", note, "--add", "more")
    shown = kb("undo", "--since", since, "--dry-run")
    assert f"document {note} gets the tags of version 1" in shown.stdout
    assert kb("undo", "--since", since).returncode == 2
    assert kb("undo", "--since", "soon", "--yes").returncode == 2
    assert "more" in kb.json("get", note)["tags"]


def test_a_person_sees_what_an_undo_does_and_answers(kb, note):
    code, shown = kb.in_terminal("undo", "--since", "0s", typed="n\n")
    assert (code, "there is nothing to take back" in shown) == (0, True)
    assert kb("undo", "--since", "0s", "--yes").stderr == "kb: there is nothing to take back\n"
