"""One web page, one document: what tells the address of a page from others, and what does not."""

from __future__ import annotations

import pytest

from kb.api.web_address import is_same_page, is_spelling_of, page_address
from kb.index.words.links import address_key, links_in


@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("HTTP://Tides.Example:80/A", "http://tides.example/A"),
        ("https://tides.example/a?utm_source=n&id=7&fbclid=1#part", "https://tides.example/a?id=7"),
        ("https://tides.example/a?utm_medium=mail", "https://tides.example/a"),
        ("https://tides.example/a?b=&c=%20", "https://tides.example/a?b=&c=%20"),
        ("https://tides.example/#/boats/7", "https://tides.example/#/boats/7"),
        ("https://tides.example/a#:~:text=tide", "https://tides.example/a"),
        ("http://[tides", "http://[tides"),
        ("notes/a.md#part?utm_source=n", "notes/a.md#part?utm_source=n"),
    ],
)
def test_a_page_has_an_address_without_what_counts_its_visitors(address, page):
    assert page_address(address) == page
    assert page_address(page) == page


@pytest.mark.parametrize(
    ("address", "canonical", "same"),
    [
        ("http://tides.example/a/", "https://www.tides.example/a", True),
        ("https://tides.example/amp/a", "https://tides.example/a", True),
        ("https://tides.example/a?utm_source=n", "https://tides.example/a", True),
        ("https://tides.example/a?id=1", "https://tides.example/a", False),
        ("https://tides.example/a?id=1", "https://tides.example/a?id=1", True),
        ("https://tides.example/a", "https://tides.example/", False),
        ("https://tides.example/a", "https://boats.example/a", False),
        ("https://tides.example/a", "javascript:void(0)", False),
    ],
)
def test_a_page_may_name_its_address_unless_that_is_another_page(address, canonical, same):
    assert is_same_page(address, canonical) is same


def test_a_page_for_signing_in_is_another_page():
    assert is_spelling_of("http://tides.example/a", "https://www.tides.example/a/")
    assert not is_spelling_of("https://tides.example/a", "https://tides.example/login")


def test_links_to_a_page_find_it_however_they_are_written():
    text = "[[https://tides.example/A?utm_source=n#x|tides]], [t](https://tides.example/a/) and https://tides.example/a"
    assert {link.key for link in links_in(text)} == {address_key("https://tides.example/a")}
