"""Every answer of a parser is checked like other input from outside."""

from __future__ import annotations

import io
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.formats.text.extracted import Extracted, Section
from kb.parser.protocol import Malformed, OverLimit, check, pack, receive, unpack

TEXT = "A text of two parts."


def reply(**changes):
    """A sound reply but for the changes."""
    sections = [[0, 10, ["One"], 1], [10, len(TEXT), ["One", "Two"], 2]]
    sound = {"doc_type": "text", "title": "Title", "text": TEXT, "sections": sections, "attachments": []}
    empty = {"tags": [], "date": None, "aliases": [], "scans": [], "pictures": [], "omitted": {}, "message_ids": []}
    return sound | empty | changes


def unpacked(max_chars=10_000, max_tags=100, max_tag_chars=200, **changes):
    document = check(reply(**changes))
    return unpack(document, [b""] * len(document.attachments), max_chars, max_tags, max_tag_chars)


def test_a_document_comes_out_as_it_went_in():
    document = Extracted(
        "Title", TEXT, (Section(0, 10, ("One",), 1), Section(10, len(TEXT))), (), ("a", "b"), "2024", ("Other",)
    )
    assert unpack(check(json.loads(json.dumps(pack("text", document)))), [], 1000, 100, 200) == document


@pytest.mark.parametrize(
    "wrong",
    [
        {"doc_type": "note"},
        {"doc_type": 1},
        {"title": {"a": 1}},
        {"title": ["a"]},
        {"text": None},
        {"text": 1},
        {"text": "\ud800"},
        {"tags": [1, None]},
        {"tags": "abc"},
        {"aliases": [["a"]]},
        *({"message_ids": ids} for ids in (["<a@x>"], ["a b"], ["a\n"], ["a\0"], ["é"], ["x" * 251], ["x"] * 101, [1])),
        {"date": 2024},
        {"attachments": [1]},
        {"attachments": ["a"] * 10_001},
        {"sections": None},
        {"sections": [[0, len(TEXT), ["a"]]]},
        {"sections": [["0", len(TEXT), [], None]]},
        {"sections": [[0, float(len(TEXT)), [], None]]},
        {"sections": [[0, len(TEXT), ["a", 1], None]]},
        {"sections": [[0, len(TEXT), "abc", None]]},
        {"sections": [[0, len(TEXT), [], "1"]]},
        {"sections": [[0, len(TEXT), [], 0]]},
        {"more": 1},
    ],
    ids=str,
)
def test_a_reply_of_other_types_is_malformed(wrong):
    with pytest.raises(Malformed):
        unpacked(**wrong)


@pytest.mark.parametrize(
    "sections",
    [
        [],
        [[0, 10**12, [], None]],
        [[0, 5, [], None]],
        [[1, len(TEXT), [], None]],
        [[0, 5, [], None], [6, len(TEXT), [], None]],
        [[0, 6, [], None], [5, len(TEXT), [], None]],
        [[0, 9, [], None], [9, 3, [], None], [3, len(TEXT), [], None]],
        [[10, len(TEXT), [], None], [0, 10, [], None]],
        [[-5, 0, [], None], [0, len(TEXT), [], None]],
    ],
    ids=str,
)
def test_sections_that_are_no_partition_of_the_text_are_malformed(sections):
    with pytest.raises(Malformed, match="sections"):
        unpacked(sections=sections)


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"null", b"\xff", b"[" * 100_000], ids=lambda data: data[:5])
def test_what_is_no_message_is_malformed(data):
    with pytest.raises(Malformed):
        receive(io.BytesIO(struct.pack(">Q", len(data)) + data))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(changes=st.dictionaries(st.sampled_from(list(reply())), JSON, max_size=3))
def test_whatever_a_parser_answers_is_a_sound_document_or_malformed(changes):
    try:
        document = unpacked(**changes)
    except (Malformed, OverLimit):
        return
    assert "".join(document.text[section.start : section.end] for section in document.sections) == document.text
    assert all(isinstance(each, str) for each in (*document.tags, *document.aliases))


def test_a_title_is_one_line_and_no_longer_than_the_api_takes():
    assert unpacked(title="A\x1b[31m title\u2028of \x07 lines\n").title == "A [31m title of lines"
    assert unpacked(title="t" * 300_000).title == "t" * 500
    assert unpacked(title=" \n ").title is None


def test_a_heading_path_keeps_its_innermost_headings():
    def path(*headings):
        return unpacked(1 << 20, sections=[[0, len(TEXT), list(headings), None]]).sections[0].heading

    assert path("One", "two\nlines", "") == ("One", "two lines")
    assert path(*(f"level {level}" for level in range(400))) == tuple(f"level {level}" for level in range(391, 400))
    assert path("a" * 5000, "b") == ("a" * 300, "b")
    assert path(*(letter * 300 for letter in "abc")) == ("b" * 300, "c" * 300)


def test_headings_count_into_the_text():
    section = [[start, start + 1, ["h" * 300], None] for start in range(len(TEXT))]
    assert unpacked(300 * len(TEXT) + len(TEXT), sections=section)
    with pytest.raises(OverLimit):
        unpacked(300 * len(TEXT), sections=section)


def test_a_files_own_tags_follow_the_rules_of_tags():
    tags = ["\u001b[31mtag", "x\u0007y", "a,b", " ", "", "x" * 201, "\u2028", "collection:memory", " collection:x"]
    assert unpacked(tags=[*tags, " fine ", "fine", "x" * 200]).tags == ("fine", "x" * 200)
    assert unpacked(tags=[f"t{number}" for number in range(500)]).tags == tuple(f"t{number}" for number in range(100))
    assert unpacked(tags=["one", "two"], max_tags=0).tags == ()
    assert unpacked(tags=["long", "x"], max_tag_chars=3).tags == ("x",)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("2024-03-01", "2024-03-01"),
        ("1 March\n2024", "1 March 2024"),
        ("yesterday", None),
        ("2" * 41, None),
        ("", None),
        ("\x1b2024", "2024"),
    ],
)
def test_a_date_is_a_date(written, kept):
    assert unpacked(date=written).date == kept


def test_other_names_are_bounded_together():
    assert unpacked(aliases=["Owl", "n" * 900, "Night owl " * 10]).aliases == ("Owl", "n" * 500)
