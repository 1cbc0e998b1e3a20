from __future__ import annotations

import sys

import pytest

REPLACE = "import os, sys; open(sys.argv[1], 'w').write({text!r})"


def editor(tmp_path, text, then=""):
    """A program that writes `text` into the file it is given, as an editor would in the end, and runs `then`."""
    script = tmp_path / "editor.py"
    script.write_text(f"{REPLACE.format(text=text)}\n{then}")
    return f"{sys.executable} {script}"


def text_of(kb, note):
    return kb("get", note, "--text").stdout


@pytest.mark.requirement("L-2")
def test_a_note_goes_in_with_all_that_is_said_of_it(kb, tag):
    note = kb.note("Remember the milk", "--title", "Shopping", "--tags", tag, "--source-path", f"talk/{tag}")
    document = kb.json("get", note)
    assert document["title"] == "Shopping"
    assert document["tags"] == [tag]
    assert document["source_path"] == f"talk/{tag}"


def test_a_note_can_come_on_standard_input(kb, tag):
    job = kb.json("addnote", "-", "--wait", text=f"Über {tag}\nline two\n")
    assert text_of(kb, job["document_id"]) == f"Über {tag}\nline two\n"


def test_without_wait_the_receipt_is_printed(kb, tag):
    receipt = kb.json("addnote", tag)
    assert min(receipt["job_id"], receipt["document_id"]) > 0
    assert kb("addnote", tag).stdout == f"note {receipt['document_id']} already has this text\n"


def test_a_note_that_says_nearly_the_same_is_named_and_with_if_new_nothing_is_stored(kb, tag):
    text = f"The {tag} ferry leaves the southern pier at {{}}."
    first = kb.note(text.format("six"))
    similar = f"similar: note {first}: {text.format('six')}\n"
    same = text.format("six").upper()
    stored, *notes = kb("addnote", same, "--if-new").stdout.splitlines(keepends=True)
    assert stored == "nothing stored: kb already has a similar note\n"
    assert similar in notes
    assert kb.json("addnote", same, "--if-new", "--wait")["stored"] is False
    later = kb("addnote", text.format("seven"), "--wait").stdout.splitlines(keepends=True)
    assert similar in later[1:]
    again = kb("addnote", f"---\ndate: 2026-04-01\n---\n{text.format('six')}", "--if-new").stdout
    assert again.startswith(f"note {first} already has this text\n")


def test_an_empty_note_is_refused(kb):
    ended = kb("addnote", " ")
    assert ended.returncode == 6
    assert ended.stderr.startswith("kb: The note is empty")


def test_standard_input_that_is_no_text_is_refused(kb):
    process = kb.start("addnote", "-", stdin=-1, stderr=-1)
    _, error = process.communicate(b"\xff\xfe\x00")
    assert process.returncode == 2
    assert error == b"kb: Standard input is not UTF-8 text. 'kb add -' accepts other content.\n"


@pytest.mark.requirement("L-1")
@pytest.mark.requirement("S-7")
def test_updatenote_takes_the_text_from_its_argument(kb, tag):
    note = kb.note(f"before {tag}")
    ended = kb("updatenote", note, "after")
    assert (ended.returncode, ended.stdout) == (0, f"note {note} is updated\n")
    assert text_of(kb, note) == "after"


@pytest.mark.requirement("L-1")
def test_updatenote_takes_the_text_from_standard_input(kb, tag):
    note = kb.note(f"before {tag}")
    assert kb.json("updatenote", note, "-", text="from a pipe")["id"] == note
    assert text_of(kb, note) == "from a pipe"


@pytest.mark.requirement("L-1")
def test_updatenote_opens_the_editor_with_the_note(kb, tag, tmp_path):
    note = kb.note(f"before {tag}")
    append = tmp_path / "append.py"
    append.write_text("import sys; open(sys.argv[1], 'a').write(' and after')")
    ended = kb("updatenote", note, env={"EDITOR": f"{sys.executable} {append}"})
    assert ended.returncode == 0, ended.stderr
    assert text_of(kb, note) == f"before {tag} and after"


@pytest.mark.requirement("L-1")
def test_what_the_editor_leaves_unchanged_is_not_sent(kb, tag, tmp_path):
    note = kb.note(f"same {tag}")
    ended = kb("updatenote", note, env={"VISUAL": editor(tmp_path, f"same {tag}\n"), "EDITOR": "false"})
    assert ended.stdout == f"note {note} is unchanged; kb sent nothing\n"
    assert kb.json("get", note)["updated_at"] is None


@pytest.mark.requirement("L-1")
def test_a_note_that_someone_else_changed_meanwhile_is_not_overwritten_and_no_word_is_lost(kb, tag, tmp_path):
    note = kb.note(f"before {tag}")
    meanwhile = tmp_path / "editor.py"
    meanwhile.write_text(
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-m', 'kb_cli.main', 'updatenote', '{note}', 'theirs'], check=True)\n"
        "open(sys.argv[1], 'w').write('mine')"
    )
    ended = kb("updatenote", note, env={"EDITOR": f"{sys.executable} {meanwhile}", "TMPDIR": str(tmp_path)})
    assert ended.returncode == 6
    assert ended.stderr.endswith(
        f"kb: Note {note} has been changed since the version that you used."
        " kb kept the new version and did not apply your change.\n"
    )
    [draft] = tmp_path.glob("kb-note-*.md")
    assert draft.read_text() == "mine"
    assert str(draft) in ended.stderr
    assert text_of(kb, note) == "theirs"


def test_an_editor_that_fails_changes_nothing_and_leaves_nothing(kb, tag, tmp_path):
    note = kb.note(f"before {tag}")
    ended = kb("updatenote", note, env={"EDITOR": "false", "TMPDIR": str(tmp_path)})
    assert (ended.returncode, ended.stderr) == (8, "kb: The editor false ended with status 1; kb sent nothing.\n")
    missing = kb("updatenote", note, env={"EDITOR": "no-such-editor", "TMPDIR": str(tmp_path)})
    assert missing.returncode == 8
    assert "could not be started" in missing.stderr
    assert list(tmp_path.glob("kb-note-*")) == []


@pytest.mark.requirement("L-1")
def test_what_was_written_is_kept_when_the_editor_crashes(kb, tag, tmp_path):
    note = kb.note(f"before {tag}")
    crash = editor(tmp_path, f"an hour of words {tag}", "os.kill(os.getpid(), 9)")
    for words in (["addnote"], ["updatenote", note]):
        ended = kb(*words, env={"EDITOR": crash, "TMPDIR": str(tmp_path)})
        assert (ended.returncode, ended.stdout) == (8, "")
        [draft] = tmp_path.glob("kb-note-*.md")
        assert draft.read_text() == f"an hour of words {tag}"
        assert f"your text is in {draft}; to send it: kb {' '.join(map(str, words))} - < {draft}" in ended.stderr
        draft.unlink()


@pytest.mark.requirement("L-1")
def test_a_new_note_is_kept_when_the_engine_does_not_take_it(kb, tag, tmp_path):
    away = {"EDITOR": editor(tmp_path, f"new {tag}"), "TMPDIR": str(tmp_path), "KB_ENGINE_URL": "http://127.0.0.1:1"}
    assert kb("addnote", env=away).returncode == 3
    [draft] = tmp_path.glob("kb-note-*.md")
    assert text_of(kb, kb.json("addnote", "-", "--wait", text=draft.read_text())["document_id"]) == f"new {tag}"


def test_an_emptied_note_is_not_sent(kb, tag, tmp_path):
    note = kb.note(f"before {tag}")
    ended = kb("updatenote", note, env={"EDITOR": editor(tmp_path, " \n"), "TMPDIR": str(tmp_path)})
    assert (ended.returncode, ended.stderr) == (2, "kb: The note is empty; kb sent nothing.\n")
    assert list(tmp_path.glob("kb-note-*")) == []
    assert text_of(kb, note) == f"before {tag}"


@pytest.mark.parametrize(("command", "reason"), [("vi '", "No closing quotation"), ("rm", "deleted the file")])
def test_an_editor_that_is_none_is_one_line(kb, tag, command, reason):
    ended = kb("updatenote", kb.note(tag), env={"EDITOR": command})
    assert ended.returncode in (2, 8)
    assert reason in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_without_a_text_and_without_an_editor_it_says_what_to_do(kb, tag):
    ended = kb("updatenote", kb.note(tag))
    assert ended.returncode == 2
    assert "VISUAL or EDITOR" in ended.stderr


def test_what_is_no_note_is_not_opened(kb, folder):
    [each] = kb.json("add", "papers/rust.md", "--wait")
    for words in (["text"], []):
        ended = kb("updatenote", each["job"]["document_id"], *words, env={"EDITOR": "false"})
        assert ended.returncode == 6
        assert "only notes can be updated" in ended.stderr


def test_a_note_that_does_not_exist_is_not_found(kb):
    assert kb("updatenote", 10**12, "text").returncode == 5


@pytest.mark.requirement("L-1")
@pytest.mark.parametrize("text", ["- milk", "-5 degrees", "--- a rule"])
def test_a_note_may_begin_with_a_dash(kb, tag, text):
    note = kb.note(tag)
    assert kb("updatenote", note, f"{text} {tag}").returncode == 0
    assert text_of(kb, note) == f"{text} {tag}"
    job = kb.json("addnote", f"{text} again {tag}", "--wait")
    assert text_of(kb, job["document_id"]) == f"{text} again {tag}"


@pytest.mark.parametrize("word", ["--jsno", "--wiat=yes", "--editor"])
def test_a_misspelt_option_is_no_text(kb, tag, word):
    note = kb.note(f"before {tag}")
    for words in (["updatenote", note, word], ["addnote", word]):
        ended = kb(*words)
        assert ended.returncode == 2
        assert f"No such option: {word}" in ended.stderr
    assert text_of(kb, note) == f"before {tag}"
    assert kb("updatenote", note, "--", word).returncode == 0
    assert text_of(kb, note) == word


def test_a_note_replaces_another_one_and_says_where_it_comes_from(kb, tag):
    old = kb.note(f"{tag} the mill is open", "--source", "the miller")
    new = kb.note(f"{tag} the mill is shut", "--replaces", old)
    assert kb.json("get", new)["replaces"] == old
    shown = kb("get", old).stdout
    assert "from         the miller\n" in shown
    assert f"replaced by  {new}\n" in shown
    assert f"replaced by {new}" in kb("search", f"{tag} the mill is open", "-n", "3").stdout
    second = kb("addnote", f"{tag} the mill is sold", "--replaces", old)
    refusal = f"kb: --replaces: note {new} already replaces note {old}. Replace {new} instead.\n"
    assert (second.returncode, second.stdout, second.stderr) == (6, "", refusal)
    ended = kb("addnote", "x", "--replaces", "999999999")
    assert ended.returncode != 0
    assert ended.stderr.startswith("kb: --replaces: Document ")


def test_updatenote_changes_tags_alone_or_with_the_text(kb, tag):
    note = kb.note(f"The {tag} is red.", "--tags", "draft,colour")
    before = kb.json("get", note)
    tagged = kb.json("updatenote", note, "--tags-add", "seen,checked", "--tags-remove", "draft")
    assert set(tagged["tags"]) == {"colour", "seen", "checked"}
    assert tagged["content_hash"] == before["content_hash"]
    both = kb.json("updatenote", note, f"The {tag} is blue.", "--title", "Blue", "--tags-remove", "seen")
    assert (set(both["tags"]), both["title"]) == ({"colour", "checked"}, "Blue")
    assert text_of(kb, note) == f"The {tag} is blue."


def test_updatenote_with_a_hash_changes_that_version_alone_and_says_what_changed_since(kb, tag):
    note = kb.note(f"The {tag} is red.\nIt stands in the yard.\nIt is tall.")
    read = kb.json("get", note)["content_hash"]
    done = kb("updatenote", note, "--old", "red", "--new", "blue", "--if-match", read[:16])
    assert (done.returncode, done.stderr) == (0, "")
    now = kb.json("get", note)["content_hash"]
    for change in (["mine"], ["--append", "mine"], ["--tags-add", "mine"], ["--title", "mine"]):
        refused = kb("updatenote", note, *change, "--if-match", read)
        assert (refused.returncode, refused.stdout) == (6, "")
        assert now in refused.stderr
        assert f"-The {tag} is red.\n+The {tag} is blue.\n" in refused.stderr
        assert "It is tall" not in refused.stderr
    assert kb.json("get", note)["content_hash"] == now
    assert kb("updatenote", note, "mine", "--if-match", read[:4]).returncode == 6
    assert "needs a change: add TEXT" in kb("updatenote", note, "--if-match", now).stderr
