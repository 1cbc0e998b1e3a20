"""What readers spend on a file grows with its size, and with no power of it."""

import time
from contextlib import suppress

import pytest

from kb.api.errors import Unreadable
from kb.formats.extract import extract
from tests.support.office import opendocument, workbook
from tests.support.rare_cases import mostly_rare

CASES = {
    "links of rich text that do not end": (b"{\\rtf1 ", b'{\\field{\\*\\fldinst{HYPERLINK "', b"}", "a.rtf", 400),
    "links of rich text within one": (b"{\\rtf1 {\\field{\\*\\fldinst{", b'HYPERLINK "', b"}", "a.rtf", 1000),
    "fonts of rich text that do not end": (b"{\\rtf1 {\\fonttbl", b"\\f1\\fcharset1", b"}", "a.rtf", 200),
    "fonts of rich text without a character set": (b"{\\rtf1 {\\fonttbl", b"\\f1", b"}", "a.rtf", 10_000),
    "links that do not end": (b"# a\n", b"](", b"", "note", 100_000),
    "links without an address": (b"# a\n", b"](a ", b"", "note", 100_000),
    "a dotted key": (b"+++\n", b"a.", b"a = 1\n+++\n", "a.md", 4000),
    "a dotted table": (b"+++\n[", b"a.", b"a]\nb = 1\n+++\n", "a.md", 4000),
    "dotted keys": (b"+++\n", b"a" + b".a" * 60 + b" = 1\n", b"+++\n", "a.md", 250),
    "backticks": (b"#a ", b"`", b" a", "a.md", 30_000),
    "runs of backticks": (b"#a ", b"` `` ``` ", b" a", "a.md", 10_000),
    "attributes": (b"<html><p", b" %d", b">x", "a.html", 20_000),
    "attributes without space between them": (b"<html><p ", b'a%d="x"', b">x", "a.html", 20_000),
    "attributes behind slashes": (b"<html><p ", b"a%d/", b">x", "a.html", 20_000),
    "attributes of a script": (b"<html><script", b" a%d", b"></script>x", "a.html", 20_000),
    "quotes that do not end": (b"<html>", b"<a b='c", b">x", "a.html", 20_000),
    "elements that do not end": (b"<html>", b"<a b<c ", b">x", "a.html", 20_000),
    "attributes of XML": (b"<?xml version='1.0'?><p", b" a%d='x'", b">x</p>", "a.xml", 20_000),
    "lines between messages": (b"From a Mon Jan 1 10:00:00 2024\nFrom: a\n\n", b"From 1:11 2024 ", b"", "a", 40_000),
    "messages": (b"", b"From a Mon Jan 1 10:00:00 2024\nFrom: a\n\nx\n", b"", "a.mbox", 2000),
    "escapes": (b'["', b"\\u00e9\\n", b'"]', "a.json", 30_000),
    "headings of reStructuredText": (b"", b"a\n=\n\nb\n-\n", b"", "a.rst", 5000),
    "spaces in a title": (b"---\ntitle: a", b" ", b"b\nx: [\n---\n", "a.md", 100_000),
    "quotes in a title": (b"---\ntitle: ", b"'", b"b\nx: [\n---\n", "a.md", 100_000),
    "lines of broken front matter": (b"---\nx: [\n", b"tags: a b\n", b"---\n", "a.md", 10_000),
    "cues": (b"", b"1\n00:00:01,000 --> 00:00:02,000\na\n\n", b"", "a.srt", 5000),
    "cues without an end": (b"WEBVTT\n\n", b"00:01.000 --> ", b"", "a.vtt", 20_000),
    "speakers without an end": (b"WEBVTT\n\n00:01.000 --> 00:02.000\n", b"<v a ", b"", "a.vtt", 20_000),
    "fields of a line of dialogue": (b"Dialogue: ", b"0:00:01,", b"", "a.ass", 20_000),
    "braces of TeX": (b"", b"{a", b"", "a.tex", 30_000),
    "groups of TeX": (b"x", b"{a}", b"y", "a.bib", 20_000),
    "accents of TeX": (b"", b'\\"{ ', b"", "a.tex", 30_000),
    "comments of Obsidian": (b"", b"%% a\n\n", b"", "a.md", 4_001),
    "signs of a terminal without an end": (b"", b"\x1b]a\x1b[0", b"", "a.log", 20_000),
    "blocks of AsciiDoc": (b"", b"== a\n----\n:b: c\n", b"", "a.adoc", 10_000),
    "points of a map": (b'{"type": "Point", "coordinates": ', b"[1, 2], ", b"[]]}", "a.geojson", 30_000),
    "headings of Org": (b"", b"** a\n#+begin_src\n", b"", "a.org", 10_000),
}


def sheet(written):
    return workbook(f"<row r='1'><c r='A1'><f>B1</f>{written}<v>1</v></c></row>")


def table(written):
    return opendocument("spreadsheet", f"<table:table>{written}</table:table>")


def styled(count):
    """A workbook with so many styles that have a unit, and as many cells with another one."""
    styles = "<xf numFmtId='0'/>" + "<xf numFmtId='9'/>" * count + "<xf numFmtId='0'/>"
    cells = f"<c s='{count + 1}'><v>1</v></c>" * count
    return workbook(f"<row r='1'>{cells}</row>", styles=f"<cellXfs>{styles}</cellXfs>")


PACKED = {
    "cells of many styles": (styled, "a.xlsx", 4000),
    "spaces before a value": (lambda count: sheet(" " * count), "a.xlsx", 50_000),
    "cells that do not end": (
        lambda count: table("<table:table-row><table:table-cell table:formula='a'/></table:table-row>" * count),
        "a.ods",
        1000,
    ),
}


@pytest.mark.parametrize("name", PACKED)
def test_a_packed_file_of_four_times_the_size_takes_about_four_times_as_long(name):
    made, filename, count = PACKED[name]
    cases = [(made(times * count), b"", b"", filename, 0) for times in (1, 1, 4)]
    seconds(cases[0], 0)
    assert any(seconds(cases[2], 0) < 9 * seconds(cases[1], 0) + 0.2 for _ in range(10))


def seconds(case, count):
    before, unit, after, name, _ = case
    numbered = b"".join(unit % number for number in range(count)) if b"%d" in unit else unit * count
    data = before + numbered + after
    start = time.thread_time()
    with suppress(Unreadable):
        extract(data, name)
    return time.thread_time() - start


@pytest.mark.parametrize("name", mostly_rare(CASES, 8))
def test_four_times_as_much_takes_about_four_times_as_long(name):
    case = CASES[name]
    seconds(case, 1)  # imports what is needed
    assert any(seconds(case, 4 * case[-1]) < 9 * seconds(case, case[-1]) + 0.2 for _ in range(10))
