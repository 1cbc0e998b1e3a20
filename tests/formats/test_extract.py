"""The start of extraction: the type of a file, its encoding, plain text, Markdown and JSON."""

from __future__ import annotations

import gzip
import io
import json
import struct
import subprocess
import sys
import wave
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.api.errors import Unreadable
from kb.api.fields import NOTE
from kb.api.file_types import OWN_TYPES
from kb.formats.containers.ole import OLE_SIGNATURE
from kb.formats.detect import detect
from kb.formats.extract import extract
from kb.formats.installed_types import FORMATS
from kb.formats.readers.json import read as read_json
from kb.formats.text.extracted import Section
from kb.formats.text.titles import meaningful
from tests.support.ole import ole
from tests.support.reading import read, sections
from tests.support.samples import zipped

E10 = pytest.mark.requirement("E-10")
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + bytes(60)
OLE = OLE_SIGNATURE + bytes(600)


def sound(bytes_per_second=8000):
    recording = io.BytesIO()
    with wave.open(recording, "wb") as file:
        file.setparams((1, 1, bytes_per_second, 0, "NONE", "not compressed"))
        file.writeframes(bytes(100))
    return recording.getvalue()


# What a file is


@E10
@pytest.mark.parametrize(
    ("content", "filename", "kind"),
    [
        ("<?xml version='1.0'?><rss><channel/></rss>", "upload", "xml"),
        ("<project><name>kb</name></project>", "pom.xml", "xml"),
        ("# A note\n\nwith text", "note.md", "markdown"),
        ("# A note\n\nwith text", "note.txt", "text"),
        ("# A note\n\n## More\n\n- [a](b)\n", "note", "markdown"),
        ("# A note\n\n## More\n\n- [a](b)\n", "note.pdf", "markdown"),
        ("just words", "note", "text"),
        ("just words", "note.html", "text"),
        ("just words", "note.docx", "text"),
        ("<!DOCTYPE html><title>T</title><p>x", "page.txt", "html"),
        ("<?xml version='1.0'?><!-- c --><!DOCTYPE html><html><body>x</body></html>", "page.xml", "html"),
        ("<p>a fragment</p>", "page.html", "html"),
        ("<p>a fragment</p>", "upload", "html"),
        ('<p align="center">centred</p>\n\n# Title\n', "README.md", "markdown"),
        ("a,b\n1,2\n", "table.csv", "csv"),
        ("a,b\n1,2\n", "table.txt", "text"),
        ("a;b;c\n1;2;3\n4;5;6\n", "upload", "csv"),
        ("One, two, three.\nFour, five, six.\n\nAnd so on.\n", "upload", "text"),
        ('{"a": 1}', "data.json", "json"),
        ('{"a": 1}', "upload", "json"),
        ('{"a": 1}\n{"a": 2}\n', "log.jsonl", "json"),
        ("[not json, just words]", "upload", "text"),
        ("just words", "data.json", "text"),
        ('{"cells": [{"cell_type": "raw", "source": "x"}], "nbformat": 4}', "upload", "notebook"),
        ('{"cells": [{"cell_type": "raw", "source": "x"}], "nbformat": 4}', "a.ipynb", "notebook"),
        ('{"cells": [{', "cut-short.ipynb", "json"),
        ("def f():\n    return '<html>'\n", "code.py", "code"),
        ("<html><script>x</script></html>", "page.ts", "code"),
        ("<!DOCTYPE html><p>saved from a browser", "index.php", "html"),
        ("<?php echo 'hello'; ?>", "index.php", "code"),
        ("FROM python\n", "Dockerfile", "code"),
        ("#!/bin/sh\n# one\n# two\n", "run", "code"),
        ("From: a@example.org\nMIME-Version: 1.0\n\nwords", "upload", "eml"),
        ("Subject: only this\n\nwords", "a.eml", "eml"),
        ("From: me\nTo: you\n\nnotes of a call", "notes.txt", "text"),
        (rb"{\rtf1\ansi words}", "a.doc", "rtf"),
        ("2026-01-01 \x1b[31merror\x1b[0m it broke\n", "app.log", "text"),
    ],
)
def test_the_content_says_what_a_file_is_and_the_name_decides_between_kinds_of_text(content, filename, kind):
    data = content.encode() if isinstance(content, str) else content
    assert detect(data, filename) == kind


@E10
@pytest.mark.parametrize(
    ("data", "filename", "reason"),
    [
        (b"", "a.txt", "the file is empty"),
        (b" \n\t\r\n", "a.txt", "the file contains no text"),
        ("\ufeff\u200b\n".encode(), "a.md", "the file contains no text"),
        (b"<html><body></body></html>", "a.html", "the page contains no text"),
        (b"<html><script>app()</script></html>", "a.html", "the page contains no text"),
        (sound(), "a.wav", r"it is a sound recording \(audio/"),
        (gzip.compress(b"text"), "a.txt.gz", "it is an archive or compressed file"),
        (b"\x7fELF\2\1\1" + bytes(99), "a", "it is a program"),
        (bytes(range(256)) * 9, "a.xyz", "binary data of an unknown type"),
        (bytes(500), "a.bin", "binary data of an unknown type"),
        (bytes(range(256)) * 9, "a.pdf", "the name ends in .pdf, but the content is not a PDF"),
        (b"text with a \0 in it", "a.txt", "binary data"),
        (zipped({"visio/document": "<v/>"}), "a.vsdx", "Visio"),
        (zipped({"[Content_Types].xml": "<t/>", "ppt/presentation.xml": "<p/>"}), "a.pptx", "main part is missing"),
        (zipped({"[Content_Types].xml": "<t/>", "xl/workbook.xml": "<w"}), "a.xlsx", "the spreadsheet is damaged"),
        (zipped({"mimetype": "application/epub+zip"}), "a.epub", "the book is damaged"),
        (zipped({"mimetype": "application/vnd.oasis.opendocument.text"}), "a.odt", "its content is missing"),
        (zipped({"META-INF/manifest.xml": "<m/>"}), "a.odg", "OpenDocument"),
        (zipped({"notes": "x"}), "a.zip", "it is a zip archive: unpack it and add the files in it"),
        (zipped({"notes": "x" * 999})[:-30], "a.docx", "damaged or cut short"),
        (ole({"EncryptedPackage": b"x"}), "a.docx", "needs a password"),
        (ole({"WordDocument": b"x"}), "a.doc", r"save the file as \.docx"),
        (ole({"WordDocument": "The Workbook of".encode("utf-16-le")}), "a.doc", r"save the file as \.docx"),
        (ole({"WordDocument": b"x", "ObjectPool": {"_1": {"Workbook": b"x"}}}), "a.doc", r"save the file as \.docx"),
        (ole({"WordDocument": b"x", "Workbook": {"1": b"x"}}), "a.doc", r"save the file as \.docx"),
        (ole({"PowerPoint Document": b"x", "_1": {"Workbook": b"x"}}), "a.ppt", r"save the file as \.pptx"),
        (ole({"Workbook": b"x", "_VBA_PROJECT_CUR": {"VBA": {"WordDocument": b"x"}}}), "a.xls", "the spreadsheet is"),
        (ole({"Contents": b"x"}), "a.pub", "OLE file of a type that kb does not read"),
        (ole({"WordDocument": bytes(5000)})[:2000], "a.doc", "damaged or cut short: it begins like an Outlook message"),
        (OLE, "a.msg", "damaged or cut short: it begins like an Outlook message"),
        (rb"{\rtf1\ansi}", "a.rtf", "the file contains no text"),
        (bytes(500), "a.pptx", "the content is not a PowerPoint presentation"),
        (b"%PDF-1.7\nnothing more", "a.pdf", "the PDF is damaged"),
    ],
)
def test_a_file_that_gives_no_text_fails_with_a_reason_in_plain_words(data, filename, reason):
    with pytest.raises(Unreadable, match=reason):
        read(data, filename)


@pytest.mark.parametrize("name", ["kiln door.png", "kiln door.txt", "folder/kiln door.png"])
def test_a_picture_has_its_name_as_text(name):
    doc_type, extracted = extract(PNG, name)
    assert (doc_type, extracted.text) == ("image", f"{name.removeprefix('folder/')}\n")


def test_a_parser_that_panics_is_a_reason_like_any_other():
    with pytest.raises(Unreadable, match="the parser failed with an internal error"):
        read(ole({"Workbook": bytes(64)})[:-5], "a.xls")


def test_each_format_has_a_reader_and_a_type_that_clients_know():
    assert all(callable(import_module(each.reader).read) for each in FORMATS.values())
    assert list(OWN_TYPES) == sorted([NOTE, *FORMATS])


def test_no_suffix_belongs_to_two_formats():
    suffixes = [suffix for each in FORMATS.values() for suffix in each.suffixes]
    assert len(suffixes) == len(set(suffixes))


def test_no_reader_is_imported_before_a_file_needs_it():
    libraries = {"lxml", "pypdfium2", "markdown_it", "chardet", "puremagic", "python_calamine", "olefile", "striprtf"}
    code = f"import sys, kb.formats.extract; print(*({libraries} | set({[each.reader for each in FORMATS.values()]})) & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


# How bytes become text

SENTENCES = {
    "cp1252": "L’été dernier, j’ai mangé des crêpes à la crème près de la forêt; où étiez-vous?",
    "cp1250": "Zażółć gęślą jaźń. Proszę przesłać źródła i książki do biblioteki w Łodzi.",
    "cp1251": "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "koi8-r": "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "cp932": "東京都の人口は約1400万人です。髙橋さんの年齢と住所。",
    "euc-jp": "東京都の人口は約1400万人です。これはテストです。",
    "iso2022_jp": "東京都の人口は約1400万人です。これはテストです。",
    "gb18030": "北京是中华人民共和国的首都，人口超过两千万。",  # noqa: RUF001 - as written there
    "big5": "台北市是中華民國的首都，人口超過兩百萬。",  # noqa: RUF001 - as written there
    "cp949": "서울은 대한민국의 수도이며 인구는 약 천만 명이다.",
    "utf-8": "naïve — “quoted” 😀",
    "utf-8-sig": "naïve — “quoted” 😀",
    "utf-16": "naïve — “quoted” 😀",
    "utf-32": "naïve — “quoted” 😀",
    "utf-16-le": "Plain words, without a mark.\nOn two lines.",
    "utf-16-be": "北京是中华人民共和国的首都。一二一 a\n人口超过两千万。",
}


@E10
@pytest.mark.parametrize("encoding", SENTENCES)
def test_text_is_decoded_whatever_its_encoding(encoding):
    assert read(SENTENCES[encoding].encode(encoding), "a.txt").text == SENTENCES[encoding]


@pytest.mark.parametrize(
    "text",
    [
        "café naïve",
        "niño",
        "Noël",
        "très bien",
        "50 °C ± 2",
        "5 £",
        "© 2020",
        "L’été à Nîmes, où l’on dîne.",
        "Smørrebrød på Åen",
    ],
)
def test_a_short_text_of_western_europe_is_none_of_another_script(text):
    assert read(text.encode("cp1252"), "a.txt").text == text


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1250", "łódź"),
        ("cp1250", "Dvořák, Janáček"),
        ("cp1251", "План"),
        ("cp1251", "IT-отдел"),
        ("cp1253", "η τιμή CO2"),
        ("cp1255", "שלום עולם"),
        ("cp932", "A社とB社"),
        ("cp949", "안녕하세요"),
        ("cp874", "ใช้Python"),
    ],
)
def test_a_short_text_of_another_script_stays_of_that(encoding, text):
    assert read(text.encode(encoding), "a.txt").text == text


def test_a_few_damaged_bytes_do_not_make_utf8_anything_else():
    text = read("über Größe, äußere Öfen, süße Äpfel, öde Grüße ".encode() + b"\xff!", "a.txt").text
    assert text == "über Größe, äußere Öfen, süße Äpfel, öde Grüße \ufffd!"


@pytest.mark.parametrize("before", [150, 151])
def test_a_nul_in_a_long_text_makes_it_nothing_else(before):
    text = f"{'words and ' * 15:.{before}}\0é{'more words ' * 9}"
    assert read(text.encode(), "a.log").text == text.replace("\0", "\ufffd")


@pytest.mark.parametrize("data", [b"\0" * 99, b"text with an \0 in it", b"a\0bc d\n" * 20 + b"\0" * 50])
def test_many_nuls_are_in_no_text(data):
    with pytest.raises(Unreadable, match="binary data"):
        read(data, "a.txt")


@pytest.mark.parametrize(
    ("declared", "encoding"), [("iso-8859-1", "cp1252"), ("gb2312", "gb18030"), ("Shift_JIS", "cp932"), ("koi8-r",) * 2]
)
def test_html_is_decoded_as_it_declares(declared, encoding):
    word = {"cp1252": "dépôt – 5 €", "gb18030": "镕", "cp932": "髙", "koi8-r": "щи"}[encoding]
    page = f'<html><meta http-equiv=x content="text/html; charset={declared}"><p>{word}</p></html>'
    assert read(page.encode(encoding)).text == f"{word}\n"


@pytest.mark.parametrize("declared", ["utf-16", "unicode_escape", "cp037", "no-such-thing", "base64", "idna"])
def test_a_declaration_that_cannot_be_true_is_overlooked(declared):
    assert read(f'<html><meta charset="{declared}"><p>caf\\u00e9 é</p></html>').text == "caf\\u00e9 é\n"


def test_newlines_become_line_feeds_and_nothing_else_changes():
    assert read(b"a\r\nb\rc\n\n  d \t\n", "a.txt").text == "a\nb\nc\n\n  d \t\n"


def test_plain_text_is_one_section_without_a_title():
    extracted = read("# not a heading here", "a.txt")
    assert (extracted.title, extracted.sections) == (None, (Section(0, 20),))


# Markdown

MARKDOWN = """\
before

# One `code` *and*
text
```
# not a heading
```
> # quoted

Two
---
### Deep ###
# Last
"""


@E10
def test_markdown_is_cut_at_its_headings_and_nothing_of_it_changes():
    extracted = read(MARKDOWN, "a.md")
    assert extracted.text == MARKDOWN
    assert sections(extracted) == [
        ((), "before\n\n"),
        (("One code and",), "# One `code` *and*\ntext\n```\n# not a heading\n```\n> # quoted\n\n"),
        (("One code and", "Two"), "Two\n---\n"),
        (("One code and", "Two", "Deep"), "### Deep ###\n"),
        (("Last",), "# Last\n"),
    ]
    assert extracted.title == "One code and"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: 'The title'\ntags: [a]\n---\n# Other\n", "The title"),
        ('+++\ntitle = "The title"\n+++\ntext\n', "The title"),
        ("---\ntags: [a]\n---\n# The title\n", "The title"),
        ("---\ntitle:\n---\n## Second\n# The title\n", "The title"),
        ("## Only a second level\n", None),
        ("text\n\ntitle: not front matter\n", None),
    ],
)
def test_the_title_of_markdown_is_its_front_matters_or_its_first_heading(text, title):
    assert read(text, "a.md").title == title


def test_front_matter_is_no_text_and_its_lines_count():
    text = "---\n# comment\ntitle: T\n---\n\n# One\r\nx"
    assert sections(read(text, "a.md")) == [((), "\n\n\n\n\n"), (("One",), "# One\nx")]


# Org and reStructuredText

ORG = """\
#+TITLE: The plan
#+DATE: <2024-03-01 Fri>
#+FILETAGS: :work:boat:

before
* TODO [#A] One /thing/ :tag:x:
text
- * no heading
*bold* is none
#+BEGIN_SRC c
* not a heading
#+end_src
** Deep
 * an item
* Last
"""

RST = """\
=========
The title
=========

before

One ``code`` and :ref:`more`
============================

text::

    Not a heading
    -------------

Deep
----
A transition follows.

--------

=====  =====
a      table
=====  =====

two lines of
a paragraph
-----------

- an item
---

Two
===
end"""


@E10
def test_org_is_cut_at_its_headings_and_nothing_of_it_changes():
    extracted = read(ORG, "a.org")
    assert (extracted.text, extracted.title, extracted.date, extracted.tags) == (
        ORG,
        "The plan",
        "2024-03-01",
        ("work", "boat"),
    )
    assert [heading for heading, _ in sections(extracted)] == [
        (), ("One /thing/",), ("One /thing/", "Deep"), ("Last",)
    ]  # fmt: skip
    assert sections(extracted)[2][1] == "** Deep\n * an item\n"


@E10
@pytest.mark.parametrize("name", ["a.rst", "a.REST"])
def test_restructured_text_is_cut_at_its_headings_and_nothing_of_it_changes(name):
    extracted = read(RST, name)
    assert (extracted.text, extracted.title) == (RST, "The title")
    assert [heading for heading, _ in sections(extracted)] == [
        ("The title",),
        ("The title", "One code and more"),
        ("The title", "One code and more", "Deep"),
        ("The title", "Two"),
    ]
    assert sections(extracted)[0][1].startswith("=========\nThe title\n")


@pytest.mark.parametrize(
    ("text", "name", "title"),
    [
        ("* One\n* Two\n", "a.org", None),
        ("* One\n** Two\n", "a.org", "One"),
        ("** Two\n* One\n", "a.org", None),
        ("One\n===\n\nTwo\n===\n", "a.rst", None),
        ("One\n===\n\nTwo\n---\n", "a.rst", "One"),
        ("just words", "a.rst", None),
        ("* One\nOne\n===\n", "a.txt", None),
    ],
)
def test_the_title_is_the_heading_that_stands_above_all_others(text, name, title):
    assert read(text, name).title == title


@pytest.mark.parametrize(
    "text",
    [
        "a - b\n- c\n",
        "Dear all,\n--\nAnn\n",
        "Name:\n...\n",
        "What a very long line of words\n---\n",
        "1 | 2\n+---+---+\n",
        " indented\n=========\n",
        "========\n",
        "wow\n!!!x\n",
    ],
)
def test_ordinary_text_has_no_headings(text):
    assert [heading for heading, _ in sections(read(text, "a.rst"))] == [()]


@given(
    st.lists(st.sampled_from(["# a\n", "b\n", "## c\r\n", "\n", "---\n", "```\n", "  - # d\n", "e\n===\n", "\t", "\f"]))
)
def test_any_markdown_keeps_its_text(lines):
    text = "".join(lines) + "end"
    extracted = read(text, "a.md")
    assert extracted.text == text.replace("\r\n", "\n")


DEEP = "[" * 900 + ",".join(["1"] * 25_000) + "]" * 900


@pytest.mark.rare
@pytest.mark.parametrize("source", [DEEP, '{"a":' * 900 + "1" + "}" * 900, "[" * 100_000 + "]" * 100_000])
def test_a_layout_is_no_longer_than_a_small_multiple_of_its_source(source):
    assert len(read_json(source.encode()).text) <= 4 * len(source)


@pytest.mark.rare
def test_values_that_nest_deep_stand_on_lines_of_their_own_without_indentation():
    text = read_json(DEEP.encode()).text
    assert text.count("\n") > 25_000
    assert json.loads(text) == json.loads(DEEP)


def test_ordinary_values_are_indented():
    value = {"name": "Überlingen", "list": [{"a": [1, 2, {"b": None}]}] * 20}
    assert read_json(json.dumps(value).encode()).text == json.dumps(value, indent=2, ensure_ascii=False)


# Titles that programs write into files


@pytest.mark.parametrize(
    "title",
    [
        *("", "  ", None, "1", "2024", "- 3 -", "***", "…", "12.03.2020"),
        *("Untitled", "untitled-2", "(untitled)", "Untitled document", "UNTITLED  DOCUMENT", "Untitled 1", "no title"),
        *("PowerPoint Presentation", "PowerPoint-Präsentation", "Présentation PowerPoint", "Презентация PowerPoint"),
        *("PowerPoint 演示文稿", "Presentación de PowerPoint", "Presentation1", "Slide 1", "Slide"),
        *("Document1", "Document 2", "Dokument1", "Book1", "Classeur1", "Mappe1", "Microsoft Word - Document1"),
        *("Unbenanntes Dokument", "Sans titre", "Sin título", "Без названия", "无标题文档", "無題", "제목 없음"),
        *("Microsoft Word - report_final.doc", "x.doc", "Annual report.docx", "paper.tex", "index.html"),
        *(r"C:\Users\ann\Desktop\letter", r"\\server\share\plan", "file:///home/ann/plan", "https://example.org/a"),
        *("report_final", "s41586-020-2649-2", "IMG2034", "thesis-v3"),
        *("[Title]", "Click to edit Master title style", "unknown", "anonymous", "null", "N/A"),
    ],
)
def test_a_placeholder_or_the_name_of_a_file_is_no_title(title):
    assert meaningful(title) is None


@pytest.mark.parametrize(
    "title",
    [
        *("Annual report 2024", "The Untitled Document Project", "1984: a reading", "Book of Hours", "C++", "Q3"),
        *("Presentation skills", "Documents", "Slide rules", "COVID-19", "MP3", "東京都の人口", "Überblick", "Map"),
        *("Titles of nobility", "1. Introduction", "Unknown pleasures", "Node.js", "Scanning electron microscopes"),
    ],
)
def test_a_title_that_says_something_is_kept(title):
    assert meaningful(title) == title


def test_a_title_loses_its_line_breaks_and_the_name_of_the_program():
    assert meaningful(" Microsoft Word -  Annual\r\nreport ") == "Annual report"
