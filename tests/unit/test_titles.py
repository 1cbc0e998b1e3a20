"""Titles that programs write into files: those that say something are kept."""

import pytest

from kb.formats.text.titles import meaningful


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
