"""Excerpts of Markdown, in results on a page and on one line of a pipe."""

from __future__ import annotations

import pytest

from kb_web.document_html import snippet
from kb_web.search import place_below
from kb_web.tags import alphabetical


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
        ("==hot== if a == b %%hidden%%", "hot if a == b"),
        ("Hot.[^1]\n\n[^1]: Very.", "Hot. Very."),
        ("The cone bends. ^cone", "The cone bends."),
        ("2 ^ 3", "2 ^ 3"),
        ("#roof is a tag", "#roof is a tag"),
    ],
)
def test_an_excerpt_is_without_signs(text, shown):
    assert " ".join(str(snippet("note", text, [])).replace("&gt;", ">").split()) == shown
    assert str(snippet("markdown", text, [])) == str(snippet("note", text, []))


@pytest.mark.parametrize("matter", ["---\ntags: [tea]\nby: Ada\n---\n", "+++\nby = 'Ada'\n+++\n"])
@pytest.mark.parametrize("word", ["", "Lamps"])
def test_an_excerpt_has_no_front_matter(matter, word):
    text = f"{matter}# Lamps\n\nBlue ones."
    found = [(text.index(word), text.index(word) + len(word))] if word else []
    assert " ".join(snippet("note", text, found).striptags().split()) == "Lamps Blue ones."
    assert ("<mark>Lamps</mark>" in snippet("note", text, found)) == bool(word)


def test_an_excerpt_has_front_matter_if_only_that_matches():
    text = "---\nby: Ada\n---\nBlue lamps."
    assert "by: <mark>Ada</mark>" in snippet("note", text, [(text.index("Ada"), text.index("Ada") + 3)])


@pytest.mark.parametrize(
    "text", ["See [[Kiln door|the door]].", "See the door%% of Kiln %%.", "See [the door](http://Kiln.example)."]
)
def test_an_excerpt_shows_nothing_that_the_page_hides_even_if_it_was_found(text):
    found = (text.index("Kiln"), text.index("Kiln") + 4)
    assert snippet("note", text, [found]) == "See the door."
    assert snippet("note", text, [(0, 3), found]) == "<mark>See</mark> the door."


def test_other_texts_keep_their_signs():
    assert snippet("code", "x = a[[1]] | b", []) == "x = a[[1]] | b"


def test_a_word_of_an_address_that_an_excerpt_does_not_show_is_not_marked():
    text = "![plan](pics/garden-plan.png) The garden is wet."
    ranges = [[at, at + len("garden")] for at in (13, 34)]
    assert [text[first:last] for first, last in ranges] == ["garden", "garden"]
    assert str(snippet("markdown", text, ranges)) == "plan The <mark>garden</mark> is wet."


@pytest.mark.parametrize(
    ("doc_type", "title", "place", "words"),
    [
        ("markdown", "Home", {"heading": ["Home"]}, ""),
        ("markdown", "Home", {"heading": ["Home", "Roof"]}, "Roof"),
        ("markdown", "Home", {"heading": []}, "line 7"),
        ("pdf", "Home", {"heading": ["Home"], "page": 3}, "page 3"),
        ("pptx", "Home", {"heading": [], "page": 3}, "slide 3"),
        ("odp", "Home", {"heading": ["Roof"], "page": 3}, "slide 3 · Roof"),
    ],
)
def test_the_place_of_a_result_does_not_repeat_its_title_and_counts_slides(doc_type, title, place, words):
    where = {"page": None, "line_start": 7, **place}
    assert place_below({"doc_type": doc_type, "title": title, "place": where}) == words


def test_tags_are_sorted_without_regard_to_case_and_each_below_its_parent():
    tags = [{"tag": tag} for tag in ("Recipes", "atlas", "home/Garden", "home-office", "home", "recipes")]
    shown = [each["tag"] for each in sorted(tags, key=alphabetical)]
    assert shown == ["atlas", "home", "home/Garden", "home-office", "Recipes", "recipes"]
