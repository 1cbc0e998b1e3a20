"""AsciiDoc, Canvas, and what Obsidian does not show of a Markdown file."""

from __future__ import annotations

import json

import pytest

from kb.api.errors import Unreadable
from tests.support.reading import read

QUAY = """// a remark
= The Quay: *a* history
Ann Sullivan <ann@x.example>
v1.2, October 2, 2013: first
:tags: tide, rope

== Begin

----
== no heading
----

Old style
~~~~~~~~~

.Caption
====
an example
====
"""


def test_asciidoc_has_a_title_a_date_and_headings():
    quay = read(QUAY, "quay.adoc")
    assert (quay.title, quay.date, quay.tags) == ("The Quay: a history", "2013-10-02", ("tide", "rope"))
    top = "The Quay: a history"
    assert [section.heading for section in quay.sections] == [(), (top,), (top, "Begin"), (top, "Begin", "Old style")]
    assert quay.text == QUAY


@pytest.mark.parametrize(
    ("source", "title", "date"),
    [
        ("Quay\n====\n:revdate: 2026-01-05\n\nwords\n", "Quay", "2026-01-05"),
        ("---\ntitle: Pier\ndate: 2025-03-01\n---\n= Quay\n\nwords\n", "Pier", "2025-03-01"),
        ("= Quay\n\n1984\n", "Quay", None),
        ("just words\n", None, None),
        ("= One\n\n= Two\n", None, None),
    ],
)
def test_the_title_and_date_of_asciidoc_are_in_its_header(source, title, date):
    found = read(source, "a.asciidoc")
    assert (found.title, found.date) == (title, date)


def card(x, y, **fields):
    return {"id": f"{x} {y}", "x": x, "y": y, "width": 100, "height": 40} | fields


def test_a_canvas_is_its_cards_and_links():
    nodes = [
        card(0, 100, type="group", label="Boats") | {"width": 500, "height": 300},
        card(200, 150, type="file", file="Log/Mast.md", subpath="#Sail"),
        card(20, 150, type="text", text="# Tide\n#rope at the quay"),
        card(0, 0, type="link", url="https://x.example/a"),
    ]
    edges = [{"id": "e", "fromNode": "20 150", "toNode": "200 150", "label": "pulls"}, {"id": "f", "fromNode": "none"}]
    board = read(json.dumps({"nodes": nodes, "edges": edges}), "board.canvas")
    assert board.tags == ("rope",)
    assert board.text == (
        "<https://x.example/a>\n\n## Boats\n\n# Tide\n#rope at the quay\n\n[[Log/Mast.md#Sail]]\n\n"
        "Tide → [[Log/Mast.md#Sail]]: pulls"
    )


@pytest.mark.parametrize("content", ["{", "[]", "words"])
def test_a_canvas_that_is_none_is_text(content):
    assert read(content, "a.canvas").text == content


@pytest.mark.parametrize("content", ['{"nodes": 1, "edges": [1]}', '{"nodes": [{"x": "1", "text": 2}, 3]}'])
def test_a_canvas_without_cards_says_so(content):
    with pytest.raises(Unreadable, match="no text"):
        read(content, "a.canvas")


def test_comments_of_obsidian_are_not_read():
    source = "A %%hidden%% word, 100%% of 50%%.\n\n%%\nhidden\n#tag\n%%\n\n```\n%% code %%\n```\n`%%` kept %%\n"
    shown = read(source, "a.md")
    assert shown.text == "A  word, 100%% of 50%%.\n\n\n\n\n\n\n```\n%% code %%\n```\n`%%` kept %%\n"
    assert shown.tags == ()
    assert read("%%all of it%%\n", "a.md").text == "%%all of it%%\n"
