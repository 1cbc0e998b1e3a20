"""What of a file was not read is counted by kind, and the last line of its text says so."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kb.api.omitted import KINDS, phrase, together
from kb.formats.text.builder import TextBuilder, paged
from kb.formats.text.extracted import Extracted, Section
from kb.ingest.draft import with_line
from kb.parser.protocol import Malformed, check, pack, unpack


def test_what_was_not_read_is_listed_with_its_numbers_as_people_say_it():
    assert phrase({"files": 1, "formulas": 14}) == "1 file inside, 14 cells without a computed value"
    assert phrase({"files": 1_200}) == "1,200 files inside"


def test_a_kind_that_a_newer_kb_exported_is_named_by_its_name():
    assert phrase({"smells": 2}) == "2 smells"


def test_counts_of_several_places_add_up_and_nothing_is_no_kind():
    assert together({"files": 1}, {"formulas": 0}, {"files": 2}) == {"files": 3}


def test_the_last_line_stands_in_the_last_section_whose_heading_and_page_stay():
    extracted = Extracted("t", "one\ntwo\n", (Section(0, 4), Section(4, 8, ("Two",), 2)), omitted={"files": 2})
    said = with_line(extracted)
    assert said.text == "one\ntwo\n\nNot read: 2 files inside\n"
    assert said.sections == (Section(0, 4), Section(4, len(said.text), ("Two",), 2))
    assert with_line(replace(extracted, omitted={})) == replace(extracted, omitted={})


def test_a_reader_counts_while_it_puts_a_text_together():
    text = TextBuilder()
    text.line("words")
    text.omit("charts")
    text.omit("charts", 2)
    assert text.build().omitted == {"charts": 3}
    assert paged(None, [text, text]).omitted == {"charts": 6}


def test_counts_come_out_of_the_parser_and_only_of_kinds_that_there_are():
    extracted = replace(Extracted.of_text("words"), omitted=dict.fromkeys(KINDS, 2))
    document = check(json.loads(json.dumps(pack("text", extracted))))
    assert unpack(document, (), 1000, 10, 100).omitted == dict.fromkeys(KINDS, 2)


@pytest.mark.parametrize("wrong", [{"smells": 1}, {"files": 0}, {"files": "2"}, ["files"]])
def test_a_parser_that_counts_what_there_is_not_is_not_believed(wrong):
    with pytest.raises(Malformed, match="omitted"):
        check(json.loads(json.dumps(pack("text", Extracted.of_text("words")) | {"omitted": wrong})))
