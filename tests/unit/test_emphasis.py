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
        ("Fix `__init__` in `kb/__main__.py`", "Fix `__init__` in `kb/__main__.py`"),
        (r"Multiply \*carefully\* please", r"Multiply \*carefully\* please"),
        ("class _A: __slots__", "class _A: slots"),
        ("_**all of it**_", "all of it"),
        ("这是**粗体**文字", "这是粗体文字"),
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


def test_code_in_an_excerpt_stands_as_it_is_also_where_it_is_cut_off():
    whole = "Call `__all__`:\n```\ndef __init__(self)\n```\nand **then**"
    assert snippet("note", whole, []).split() == ["Call", "`__all__`:", "def", "__init__(self)", "and", "then"]
    assert "__init__" in snippet("note", "```py\ndef __init__(self):", [])
