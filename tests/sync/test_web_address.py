"""One web page, one document: what tells the address of a page from others, and what does not."""

from __future__ import annotations

import io

import pytest

from kb.api.job_models import FileRequest
from kb.api.web_address import is_same_page, is_spelling_of, page_address
from kb.blobs.folder import FolderBlobs
from kb.documents.job_queue import submit_file
from kb.index.words.link_targets import address_key, links_in
from tests.store.test_store import content


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


@pytest.mark.parametrize("first", ["https://tides.example/a?utm_source=n", "https://Tides.example/a#x"])
def test_a_page_keeps_the_document_under_which_it_was_saved_first(make_store, tmp_path, first):
    with make_store(dimensions=8) as store:
        with store.write() as tx:
            tx.documents.add(content("tides"), first, ())
            tx.documents.add(content("boats"), "https://tides.example/a?id=1#x", ())
        request = FileRequest(source_path="https://tides.example/a?fbclid=1")
        job = submit_file(store, FolderBlobs(tmp_path), io.BytesIO(b"x"), "a.html", request)
        with store.read() as tx:
            assert tx.jobs.get(job.job_id).source_path == first
