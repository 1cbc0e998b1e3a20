"""Markdown's signs of emphasis leave titles and excerpts only where they are pairs around words."""

from __future__ import annotations

import pytest

from kb.ingest.draft import first_line
from kb.web.text import snippet


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("2 ** 3 ** 4", "2 ** 3 ** 4"),
        ("5*3*2", "5*3*2"),
        ("snake_case_name", "snake_case_name"),
        ("a lone **star", "a lone **star"),
        ("C#", "C#"),
        ("# **Bold** and *slanted* `code`", "Bold and slanted `code`"),
        ("**a *b* c** and _snake_case_", "a b c and snake_case"),
        ("* item", "item"),
        ("> - # deep ##", "deep"),
        ("---\nbelow a rule", "below a rule"),
        ("#roof is a tag", "#roof is a tag"),
    ],
)
def test_a_title_keeps_the_signs_that_are_no_markdown(line, title):
    assert first_line(line) == title


def test_an_excerpt_is_without_the_pairs_and_keeps_the_rest():
    text = "**Very bold words**, *once*, and 2 * 3 ** 4 in snake_case_name"
    begin = text.index("bold")
    found = snippet("note", text, [(begin, begin + 4)])
    assert found == "Very <mark>bold</mark> words, once, and 2 * 3 ** 4 in snake_case_name"
    assert snippet("text", text, []) == text
