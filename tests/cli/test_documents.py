from __future__ import annotations

from datetime import UTC, datetime

import pytest


@pytest.fixture
def notes(kb, tag):
    return [kb.note(f"{word} {tag}", "--tags", tag) for word in ("one", "two", "three")]


@pytest.mark.requirement("L-2")
def test_get_prints_the_text_exactly_when_asked(kb, tag):
    text = f"tabs\tand spaces \r\n\n\n日本語 \x1b[31m [bold] {tag}\n\n"
    note = kb.json("addnote", "-", "--wait", text=text)["document_id"]
    process = kb.start("get", note, "--text", stdout=-1)
    assert process.communicate()[0] == text.encode()


@pytest.mark.requirement("L-2")
def test_get_finds_a_document_by_where_it_came_from(kb, folder, tag):
    [each] = kb.json("add", "papers/rust.md", "--wait")
    note = kb.note(tag, "--source-path", f"talk/{tag}")
    assert kb.json("get", "--path", f"talk/{tag}")["id"] == note
    for path in (each["path"], "papers/rust.md"):
        assert kb.json("get", "--path", path)["id"] == each["job"]["document_id"]
    assert kb("get", "--path", "papers/none.md").returncode == 5


def test_get_shows_a_person_the_document(kb, tag):
    note = kb.note(f"Text of {tag}", "--title", "A title", "--tags", tag)
    shown = kb("get", note).stdout
    assert "title    A title\n" in shown
    assert shown.endswith(f"\n\nText of {tag}\n")


def test_get_wants_one_document_said_one_way(kb):
    assert kb("get").returncode == 2
    assert kb("get", 1, "--path", "x").returncode == 2
    assert kb("get", 1, "--text", "--json").returncode == 2
    assert kb("get", "one").returncode == 2


@pytest.mark.requirement("L-2")
def test_list_filters_orders_and_limits(kb, notes, tag):
    ids = [document["id"] for document in kb.json("list", "--tags", tag)["documents"]]
    assert ids == notes[::-1]
    assert [each["id"] for each in kb.json("list", "--tags", tag, "--oldest")["documents"]] == notes
    kb("tag", notes[0], "--add", "touched")
    assert kb.json("list", "--tags", tag, "--recent", "-n", "1")["documents"][0]["id"] == notes[0]
    assert kb.json("list", "--tags", f"{tag},touched")["documents"][0]["id"] == notes[0]
    assert kb.json("list", "--tags", tag, "--type", "pdf")["documents"] == []
    for name in ("Note", "NOTES"):
        assert {each["id"] for each in kb.json("list", "--tags", tag, "--type", name)["documents"]} == {*ids}


@pytest.mark.requirement("L-2")
def test_list_follows_the_pages(kb, notes, tag):
    first = kb.json("list", "--tags", tag, "-n", "2")
    assert len(first["documents"]) == 2
    assert first["next_cursor"]
    everything = kb.json("list", "--tags", tag, "-n", "2", "--all")
    assert len(everything["documents"]) == 3
    assert everything["next_cursor"] is None


def test_list_gives_scripts_one_line_with_tabs_for_each_document(kb, notes, tag):
    rows = [line.split("\t") for line in kb("list", "--tags", tag, "--oldest").stdout.splitlines()]
    assert [int(row[0]) for row in rows] == notes
    assert rows[0][3] == f"one {tag}"


def test_list_gives_a_terminal_columns_with_a_header(kb, notes, tag):
    _, shown = kb.in_terminal("list", "--oldest", "--tags", tag, env={"TERM": "dumb"})
    header, first, *_ = shown.splitlines()
    assert header.index("TITLE") == first.index("one")


@pytest.mark.requirement("L-2")
def test_delete_in_a_script_needs_yes(kb, notes):
    refused = kb("delete", notes[0])
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert kb("get", notes[0]).returncode == 0
    receipts = kb.json("delete", *notes[:2], "--yes")
    assert [receipt["document_id"] for receipt in receipts] == notes[:2]
    assert {receipt["status"] for receipt in receipts} == {"deleted"}
    assert kb("get", notes[0]).returncode == 5


def test_delete_names_what_does_not_exist_and_deletes_the_rest(kb, notes):
    ended = kb("delete", 10**12, notes[0], "--yes")
    assert ended.returncode == 5
    assert ended.stderr == f"kb: Document {10**12} does not exist.\n"
    assert ended.stdout.startswith(f"document {notes[0]} is deleted")


def test_delete_says_that_a_file_is_still_there(kb, tmp_path, tag):
    file = tmp_path / "kept.md"
    file.write_text(f"# Kept {tag}\n")
    assert kb("add", file, "--wait").returncode == 0
    ids = kb.json("list", "--under", tmp_path)["documents"]
    ended = kb("delete", ids[0]["id"], "--yes")
    assert (ended.returncode, ended.stderr) == (
        0, f"kb: the file {file} still exists, so the next 'kb sync' of its folder adds it again\n",
    )  # fmt: skip
    assert kb("add", file, "--wait").stdout == "1 file: 1 added\n"
    file.unlink()
    ids = kb.json("list", "--under", tmp_path)["documents"]
    assert kb("delete", ids[0]["id"], "--yes").stderr == ""


def test_delete_succeeds_where_the_file_cannot_be_looked_for(kb, tag):
    document_id = kb.note(f"a note {tag}", "--source-path", f"/{'long' * 100}/{tag}.md")
    ended = kb("delete", document_id, "--yes")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_delete_on_a_terminal_says_what_and_asks(kb, notes, tag):
    code, shown = kb.in_terminal("delete", notes[0], typed="n\n")
    assert code == 0
    assert f"one {tag}" in shown
    assert kb("get", notes[0]).returncode == 0
    code, shown = kb.in_terminal("delete", notes[0], typed="y\n")
    assert code == 0
    assert "is deleted" in shown
    assert kb("get", notes[0]).returncode == 5


@pytest.mark.requirement("L-2")
def test_tag_adds_and_removes(kb, notes, tag):
    [first, second] = kb.json("tag", *notes[:2], "--add", "red,blue", "--remove", tag)
    assert first["tags"] == second["tags"] == ["blue", "red"]
    assert kb("tag", notes[0], "--remove", "red,blue").stdout == f"document {notes[0]}: no tags\n"
    assert kb("tag", notes[0]).returncode == 2


def test_tags_counts_documents(kb, notes, tag):
    assert {"tag": tag, "documents": 3, "branch": 3} in kb.json("tags")["tags"]
    assert f"{tag}\t3\n" in kb("tags").stdout


def test_a_tag_in_a_filter_includes_the_tags_below_it_unless_told_otherwise(kb, notes, tag):
    kb("tag", notes[0], "--add", f"{tag}/below", "--remove", tag)
    assert len(kb.json("list", "--tags", tag)["documents"]) == 3
    assert len(kb.json("search", tag, "--tags", tag, "--documents")["results"]) == 3
    assert len(kb.json("list", "--tags", tag, "--exact-tag")["documents"]) == 2
    assert len(kb.json("search", tag, "--tags", tag, "--exact-tag", "--documents")["results"]) == 2
    assert kb.json("list", "--tags", tag, "--not", f"{tag}/")["documents"] == []
    assert f"{tag}\t3\n{tag}/below\t1\n" in kb("tags").stdout


def test_a_tag_is_renamed_in_all_documents_and_undo_takes_it_back(kb, notes, tag):
    kb("tag", notes[0], "--add", f"{tag}/below", "--remove", tag)
    ended = kb("tag", "--rename", tag, f"{tag}-new")
    assert (ended.returncode, ended.stdout) == (0, f"renamed '{tag}' to '{tag}-new' in 3 documents\n")
    assert kb.json("get", notes[0])["tags"] == [f"{tag}-new/below"]
    assert kb("undo", "--yes").returncode == 0
    assert [kb.json("get", each)["tags"] for each in notes] == [[f"{tag}/below"], [tag], [tag]]
    assert kb.json("tag", "--rename", tag, f"{tag}-new") == {"documents": 3, "from_text": 0}


def test_a_rename_that_makes_no_sense_is_refused(kb, notes, tag):
    gone = kb("tag", "--rename", f"{tag}-none", "x")
    assert (gone.returncode, gone.stderr) == (5, f"kb: No document has the tag {tag}-none or a tag below it.\n")
    same = kb("tag", "--rename", tag, f"{tag}/")
    assert (same.returncode, same.stderr) == (6, "kb: --rename: the tag already has this name.\n")
    for arguments in ((notes[0], "--rename", tag, "x"), ("--rename", tag), (), ("--add", "x")):
        assert kb("tag", *arguments).returncode == 2, arguments
    assert kb.json("get", notes[0])["tags"] == [tag]


def test_the_file_that_a_document_came_from_comes_back_as_it_was(kb, folder, tag):
    (folder / "rust.md").write_bytes(b"# Rust\r\n\r\nWith Windows' line ends and caf\xc3\xa9.\r\n")
    [each] = kb.json("add", "papers/rust.md", "--wait")
    saved = folder / "saved.md"
    assert kb("get", each["document_id"], "--file", saved).returncode == 0
    assert saved.read_bytes() == (folder / "rust.md").read_bytes()
    again = kb("get", each["document_id"], "--file", saved)
    assert (again.returncode, again.stderr) == (8, f"kb: {saved}: File exists.\n")
    printed = kb.start("get", "--path", "papers/rust.md", "--file", "-", stdout=-1)
    assert printed.communicate()[0] == saved.read_bytes()
    assert kb("get", kb.note(tag), "--file", "x").returncode == 5
    assert kb("get", 1, "--file", "x", "--json").returncode == 2


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
    assert kb("history", note, "--diff").stdout == kb("history", note, 1, "--diff").stdout
    assert kb("get", note, "--text", "--version", 1).stdout == f"The {tag} is lit at six."
    assert kb("get", note, "--version", 3).returncode == 5
    assert "Leave out --version" in kb("get", note, "--version", 1, "--file", "-").stderr
    reverted = kb("revert", note, 1, "--why", "it was six")
    assert reverted.stdout.startswith(f"document {note} has the content of version 1 again")
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
    assert kb("restore", note).stdout == f"restored document {note}: The {tag} is lit at six.\n"
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
    assert (code, "nothing to undo" in shown) == (0, True)
    assert kb("undo", "--since", "0s", "--yes").stderr == "kb: nothing to undo\n"


def test_links_lists_where_a_document_leads_and_what_leads_to_it(kb, tag):
    to = kb.note(f"the target {tag}", "--title", f"Target {tag}")
    note = kb.note(f"see [[Target {tag}]] and [[Nothing {tag}]]", "--title", f"Note {tag}")
    assert kb("links", note).stdout == f"to\t{to}\tTarget {tag}\tTarget {tag}\nto\t-\tno document\tNothing {tag}\n"
    assert kb("links", to).stdout == f"from\t{note}\tNote {tag}\tsee [[Target {tag}]] and [[Nothing {tag}]]\n"
    assert kb("links", note, "--broken").stdout == f"to\t-\tno document\tNothing {tag}\n"
    assert kb("links", to, "--broken").stdout == ""
    assert kb.json("links", note)["links"][0] == {
        "target": f"Target {tag}",
        "document_id": to,
        "title": f"Target {tag}",
    }
    assert kb("links", 10**12).returncode == 5


def test_the_path_that_kb_prints_is_accepted_where_an_id_is(kb, tmp_path):
    file = tmp_path / "paths" / "Poznański mill.md"
    file.parent.mkdir()
    file.write_text("# Mill\n\nFounded in 1834.\n")
    kb("sync", file.parent, "--as", "oldvault")
    path = "oldvault/Poznański mill.md"
    document = kb.json("get", path)
    assert document["source_path"] == path
    assert kb.json("get", file)["id"] == document["id"]
    assert kb("tag", path, "--add", "mills").returncode == 0
    assert kb.json("get", path)["tags"] == ["mills"]
    assert "No document comes from" in kb("get", "oldvault/none.md").stderr
    assert "'mill' is not a whole number" in kb("get", "mill").stderr


def test_the_last_change_of_a_document_needs_no_number(kb):
    note = kb.note("The gate is red.")
    assert "only one version" in kb("history", note, "--diff").stderr
    kb("updatenote", note, "The gate is green.")
    assert "{+green+}" in kb("history", note, "--diff").stdout


def test_a_document_that_does_not_exist_is_named_before_a_confirmation_is_asked_for(kb):
    refused = kb("delete", 10**12)
    assert "--yes" not in refused.stderr
    assert str(10**12) in refused.stderr
    assert "--yes" in kb("notes", "delete").stderr
