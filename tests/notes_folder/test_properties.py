"""Fields of kb in the front matter of files of any form: the rest stays to the byte."""

from __future__ import annotations

import pytest

from kb.markdown.front_matter import front_matter
from kb.notes_folder.file_text import FileContent, parsed, rendered, with_title
from kb.notes_folder.properties import has_other_form, properties_of
from kb.store.rows import Document

TEXTS = {
    "plain": "Bricks.\n",
    "heading": "# Kiln\n\nBricks.",
    "yaml": "---\nstatus: open  # for now\n\n# a comment\nsizes:\n- 1\n- 2\n---\nBricks.\n",
    "own tags": "---\ntags:\n  - kiln\n---\nBricks.\n",
    "crlf": "---\r\nstatus: 'open'\r\n---\r\nBricks.\r\n",
    "empty": "---\n---\nBricks.\n",
    "comment": "---\n# only a comment\n---\nBricks.\n",
    "comment in a list": "---\nsizes:\n# large ones\n  - 3\n---\nBricks.\n",
    "dots": "---\nstatus: open\n...\nBricks.\n",
    "own kb": "---\nkb: [1, 2]\n---\nBricks.\n",
    "toml": '+++\ntitle = "Kiln"\n# dates\ndate = 2026-03-14\nsizes = [\n  1, # small\n  2,\n]\n\n[menu]\nmain = 1\n+++\nBricks.\n',
    "toml tags": '+++\ntags = ["kiln"]\n+++\nBricks.\n',
    "json": '{\n  "title": "Kiln",\n  "draft": false\n}\nBricks.\n',
    "json line": '{"title": "Kiln"}\n\nBricks.\n',
    "json empty": "{ }\nBricks.\n",
    "json tags": '{"a": {"tags": 1}, "tags": ["kiln"]}\nBricks.\n',
    "rule": "---\n\nBricks under a rule.\n",
    "two blocks": "---\na: 1\n---\n---\nb: 2\n---\nBricks.\n",
}
OTHERS = {
    "list": "---\n- a\n- b\n---\nBricks.\n",
    "prose": "---\nSome words.\n\n---\nBricks.\n",
    "broken toml": "+++\na = [\n+++\nBricks.\n",
}


def note(text, **fields):
    own = tuple(properties_of(text).read({"tags": "tags"}).tags) if properties_of(text) else ()
    values = {"id": 7, "title": "Bricks.", "source_path": "x.md", "doc_type": "note", "content_hash": ""}
    values |= {"created_at": "2026-01-01T00:00:00.000Z", "updated_at": None, "own_tags": own}
    return Document(**{**values, "tags": (*own, *fields.pop("tags", ())), **fields})


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_fields_of_kb_come_and_go_and_the_rest_stays_to_the_byte(text):
    assert rendered(note(text), text) == (text, FileContent(text))
    changed = note(text, tags=("new one", "b"), title="A: title", title_given=True)
    written, shown = rendered(changed, text, with_id=True)
    assert written != text
    assert parsed(written, shown.own) == shown
    assert (shown.text, set(shown.tags)) == (text, {"new one", "b"})
    for line in filter(str.strip, text.splitlines()):
        assert line in written or line.startswith("{")
    again, _ = rendered(changed, text, file=shown, written=written, with_id=True)
    assert again == written
    more, more_shown = rendered(note(text, tags=("c",)), text, file=shown, written=written)
    assert set(more_shown.tags) == {"c"}
    assert rendered(note(text), text, file=more_shown, written=more)[0].count("kb") <= text.count("kb") + 1


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_change_of_the_text_leaves_the_front_matter_as_it_is(text):
    written, shown = rendered(note(text, tags=("new",)), text)
    edited = text.replace("Bricks", "Stones")
    after, shown = rendered(note(edited, tags=("new",)), edited, file=shown, written=written)
    assert after == written.replace("Bricks", "Stones")
    assert shown.text == edited


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_a_block_that_can_have_no_fields_stays_the_first_one(text):
    assert has_other_form(text)
    assert rendered(note(text, tags=("new",)), text, with_id=True) == (text, FileContent(text))


def test_a_list_of_tags_keeps_its_form_when_kb_changes_it():
    text = "Bricks."
    _, shown = rendered(note(text, tags=("a",)), text)
    written = "---\n# mine\ntags:\n  - a\nstatus: open\n---\nBricks."
    file = parsed(written, shown.own)
    assert file.text == "---\n# mine\nstatus: open\n---\nBricks."
    after, _ = rendered(note(file.text, tags=("a", "b c")), file.text, file=file, written=written)
    assert after == '---\n# mine\ntags:\n  - a\n  - "b c"\nstatus: open\n---\nBricks.'


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("---\ntitle: Kiln  # mine\nstatus: open\n---\nB\n", '---\ntitle: "New: one"  # mine\nstatus: open\n---\nB\n'),
        ("---\r\n# c\r\nTitle : 'It''s'\r\n---\r\nB", "---\r\n# c\r\nTitle : 'New: one'\r\n---\r\nB"),
        ('---\na: 1\n"title": "Kiln" # it\'s\n---\n', '---\na: 1\n"title": "New: one" # it\'s\n---\n'),
        ("---\ntitle:\na: 1\n---\n", '---\ntitle: "New: one"\na: 1\n---\n'),
        ("---\ntitle:  # none yet\n---\n", '---\ntitle:  "New: one" # none yet\n---\n'),
        ("---\ntitle: >-\n  The\n  # kiln\n\na: 1\n---\n", '---\ntitle: "New: one"\n\na: 1\n---\n'),
        ("---\ntitle:\n  The kiln\n# c\n---\n", '---\ntitle: "New: one"\n# c\n---\n'),
        ("+++\na = 1\ntitle='Kiln' # c\n[menu]\ntitle = 'm'\n+++\nB", "+++\na = 1\ntitle='New: one' # c\n[menu]\ntitle = 'm'\n+++\nB"),
        ('+++\ntitle = """Kiln"""\n+++\nB', '+++\ntitle = "New: one"\n+++\nB'),
        ('{\n  "a": {"title": 1},\n  "title" : "Ki\\"ln",\n  "b": 2\n}\nB\n', '{\n  "a": {"title": 1},\n  "title" : "New: one",\n  "b": 2\n}\nB\n'),
        ('{"title":null}\nB', '{"title":"New: one"}\nB'),
        ("---\ntitle: a\ntitle: b\n---\n", None),
        ("---\ntitle: &x Kiln\naliases: *x\n---\n", None),
        ("# title: Kiln\n", None),
    ],
)  # fmt: skip
def test_a_title_of_the_text_changes_and_no_other_byte(text, after):
    assert with_title(text, "New: one") == (after or text)


@pytest.mark.parametrize("title", ["It's", 'The "kiln"', "yes", "- 7: #1", "a \\ b", "窯🔥", "'", "{x}"])
@pytest.mark.parametrize(
    "text", ["---\ntitle: {}\n---\n", "---\ntitle: '{}'\n---\n", '+++\ntitle = "{}"\n+++\n', "+++\ntitle = '{}'\n+++\n"]
)
def test_any_title_can_be_written_to_a_title_of_the_text_and_read(text, title):
    assert front_matter(with_title(text.format("Kiln"), title)).title == title


def test_a_file_of_an_earlier_version_keeps_its_fields_and_gets_no_new_ones():
    written = "---\nkb: 7\ntitle: Bricks.\ntags: [a]\ncreated: 2026-01-01T00:00:00.000Z\n---\nBricks."
    file = FileContent("Bricks.", "Bricks.", ("a",), None)
    assert rendered(note("Bricks.", tags=("a",)), "Bricks.", file=file, written=written)[0] == written
    after, shown = rendered(note("Stones.", tags=("a",)), "Stones.", file=file, written=written)
    assert after == written.replace("\nBricks.", "\nStones.")
    assert shown.text == "Stones."


@pytest.mark.parametrize(
    "text", ["{" * 5000, '{"a": ' * 5000, "+++\n" + "a." * 5000 + "b = 1\n+++\n", "---\n" + "- [" * 5000 + "\n---\n", "{", "+++", "---"]
)  # fmt: skip
def test_hostile_front_matter_is_text(text):
    assert properties_of(text) is None
    assert parsed(text, frozenset({"tags"})).text == text
