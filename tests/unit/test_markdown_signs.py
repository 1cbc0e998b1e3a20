"""Excerpts of Markdown, in results on a page and on one line of a pipe."""

from __future__ import annotations

import pytest

from kb.web.document_html import snippet


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("See [[Bricks]] and [[Bricks|the list]] and [[Bricks#Prices]]", "See Bricks and the list and Bricks#Prices"),
        ("![[door.png|320]] ![[Note]]", "door.png Note"),
        ("[the insurer](../House/Insurance.md) ![door](img/door.png)", "the insurer door"),
        ("[a](https://e.org/b_(c)) [array](0)", "a array"),
        ("array[0] [x] [1]", "array[0] [x] [1]"),
        ("## Open tasks\n- [ ] Pay\n- [x] Call\n- tea", "Open tasks ☐ Pay ☑ Call - tea"),
        ("> [!warning] Gas\n> Never fire.", "Gas Never fire."),
        ("| Kind | Price |\n|:-----|------:|\n| Soft | 4.50 |", "Kind · Price Soft · 4.50"),
        ("a | b || c", "a | b || c"),
        ("==hot== if a == b %%hidden%%", "hot if a == b hidden"),
        ("Hot.[^1]\n\n[^1]: Very.", "Hot. Very."),
        ("The cone bends. ^cone", "The cone bends."),
        ("2 ^ 3", "2 ^ 3"),
        ("#roof is a tag", "#roof is a tag"),
    ],
)
def test_an_excerpt_is_without_signs(text, shown):
    assert " ".join(str(snippet("note", text, [])).replace("&gt;", ">").split()) == shown
    assert str(snippet("markdown", text, [])) == str(snippet("note", text, []))


def test_what_was_found_stands_as_it_is_written():
    text = "See [[Kiln door|the door]]"
    assert "<mark>Kiln</mark>" in snippet("note", text, [(text.index("Kiln"), text.index("Kiln") + 4)])


def test_other_texts_keep_their_signs():
    assert snippet("code", "x = a[[1]] | b", []) == "x = a[[1]] | b"
