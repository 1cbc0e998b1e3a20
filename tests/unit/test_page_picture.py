"""A page of a PDF as a picture: what is marked is the passage."""

from __future__ import annotations

import random
import zlib
from contextlib import closing
from itertools import count
from types import SimpleNamespace

import pypdfium2
import pytest

from kb.api.errors import NotFound, Unreadable
from kb.blobs.folder import FolderBlobs
from kb.documents.originals import Originals
from kb.documents.page_pictures import PagePictures
from kb.formats.readers import pdf as pdf_reader
from kb.formats.readers.pdf_page import tidy
from kb.formats.readers.pdf_picture import Box, draw_page, find_passage, passage_boxes
from kb.parser.sandbox import Limits, Sandbox
from tests.support.blobs import kept_at
from tests.support.pdf import pdf

FEWEST_LETTERS = 30


def size_of(png):
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(png[16:20]), int.from_bytes(png[20:24])


def pixels_of(png):
    """The rows of a picture that this program wrote: no row is filtered."""
    start = png.index(b"IDAT") + 4
    length = int.from_bytes(png[start - 8 : start - 4])
    width, height = size_of(png)
    data = zlib.decompress(png[start : start + length])
    assert len(data) == height * (3 * width + 1)
    return [data[row * (3 * width + 1) + 1 : (row + 1) * (3 * width + 1)] for row in range(height)]


def readable_pdfs(folder):
    for path in sorted(folder.glob("files/*.pdf")):
        try:
            pdf_reader.read(path.read_bytes())
        except Unreadable:
            continue
        yield path


def area(box):
    return max(0.0, box.right - box.left) * max(0.0, box.top - box.bottom)


def covered(box, marks):
    """The share of a box that lies in the marks, which do not overlap within a line."""
    parts = (
        Box(max(box.left, each.left), max(box.bottom, each.bottom), min(box.right, each.right), min(box.top, each.top))
        for each in marks
    )
    return max(map(area, parts), default=0.0) / area(box)


def windows(document, random_source, wanted):
    """Stretches of the text of pages, each with the page's text and where it stands."""
    pages = range(len(document))
    for _ in count():
        with closing(document[random_source.choice(pages)]) as page, closing(page.get_textpage()) as text:
            length = text.count_chars()
            if length < 2 * FEWEST_LETTERS:
                continue
            start = random_source.randrange(length - FEWEST_LETTERS)
            stop = min(length, start + random_source.randrange(FEWEST_LETTERS, 900))
            yield text, range(start, stop), length
            wanted -= 1
            if not wanted:
                return


@pytest.mark.parametrize("wanted", [10, pytest.param(100, marks=pytest.mark.long)])
def test_the_marks_cover_the_words_of_a_passage_and_no_others(test_data, wanted):
    paths = list(readable_pdfs(test_data))
    assert len(paths) >= 5
    shares, beside = [], []
    for path in paths:
        with closing(pypdfium2.PdfDocument(path.read_bytes())) as document:
            for text, stretch, length in windows(document, random.Random(16), wanted):
                passage = tidy(text.get_text_range(stretch.start, len(stretch))).replace("\ufffe", "")
                if sum(map(str.isalnum, passage)) < FEWEST_LETTERS:
                    continue
                marks = passage_boxes(text, passage, stretch.start / length)
                for index in range(length):
                    letter = text.get_text_range(index, 1)
                    box = Box(*text.get_charbox(index))
                    if not letter.isalnum() or not area(box):
                        continue
                    (shares if index in stretch else beside).append(covered(box, marks))
    assert len(shares) > 1000
    print(
        f"{sum(shares) / len(shares):.4f} of the passages' letters are marked, {sum(beside) / len(beside):.4f} of others"
    )
    assert sum(shares) / len(shares) >= 0.99
    assert sum(beside) / len(beside) <= 0.02


def test_a_passage_is_marked_on_the_picture_where_it_stands_and_nothing_else():
    data = pdf("The lease ends in March 2028.", "Its deposit is three months of rent.")
    plain, marked = draw_page(data, 2), draw_page(data, 2, "deposit is three months")
    width, height = size_of(marked.png)
    assert (plain.boxes, width) == ([], 1100)
    [(left, top, right, bottom)] = marked.boxes
    assert 0.1 < left < right < 0.6
    assert 0.06 < top < bottom < 0.12
    before, after = pixels_of(plain.png), pixels_of(marked.png)
    changed = [row for row in range(height) if before[row] != after[row]]
    assert changed
    assert top * height - 2 <= min(changed) <= max(changed) <= bottom * height + 2


def test_a_passage_that_a_page_says_twice_is_marked_where_it_was_found():
    page = "the same words here and then " * 2
    letters = page.replace(" ", "")
    assert find_passage(letters, "thesamewords", 0.0).start == 0
    assert find_passage(letters, "thesamewords", 0.6).start == len(letters) // 2
    assert find_passage(letters, "nothingofit", 0.5) == range(0)


def test_a_passage_that_the_page_does_not_say_in_one_is_marked_from_its_beginning_to_its_end():
    words = [f"word{number}" for number in range(60)]
    page, passage = "".join(words), "".join([*words[10:30], "different", *words[31:50]])
    found = find_passage(page, passage, 0.2)
    assert page[found.start : found.stop] == "".join(words[10:50])


@pytest.mark.parametrize("page", [0, 3, 10**9])
def test_a_page_that_is_not_there_is_no_picture(page):
    with pytest.raises(Unreadable, match="2 pages"):
        draw_page(pdf("One.", "Two."), page)


def test_a_page_as_large_as_a_house_is_a_small_picture():
    data = pdf("Large.").replace(b"[0 0 612 792]", b"[0 0 14400 14400]")
    width, height = size_of(draw_page(data, 1).png)
    assert width * height <= 6_100_000
    data = pdf("Thin.").replace(b"[0 0 612 792]", b"[0 0 2 14400]")
    width, height = size_of(draw_page(data, 1).png)
    assert width * height <= 6_100_000


def test_the_parser_draws_pages_between_the_files_that_it_reads(tmp_path):
    path = tmp_path / "lease.pdf"
    path.write_bytes(pdf("The lease ends in March 2028."))
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.4 nothing")
    sandbox = Sandbox(Limits())
    try:
        assert size_of(sandbox.draw_page(path, 1, "ends in March", 0))[0] == 1100
        assert "lease" in sandbox.extract(path, "lease.pdf")[1].text
        with pytest.raises(Unreadable, match="damaged"):
            sandbox.draw_page(broken, 1, "", 0)
        with pytest.raises(Unreadable, match="has 1 page"):
            sandbox.draw_page(path, 7, "", 0)
        assert sandbox.draw_page(path, 1, "", 0)
    finally:
        sandbox.close()


def test_a_document_that_is_deleted_before_its_page_is_drawn_is_not_found(make_store, tmp_path):
    class Vanishing(Originals):
        """Files that are there when they are looked for, and then no more."""

        def check(self, document):
            super().check(document)
            kept_at(self, document.content_hash).unlink()

    document = SimpleNamespace(id=1, doc_type="pdf", content_hash="0" * 64)
    originals = Vanishing(FolderBlobs(tmp_path), keep=True)
    kept_at(originals, document.content_hash).parent.mkdir(parents=True)
    kept_at(originals, document.content_hash).write_bytes(pdf("The lease ends in March 2028."))
    with (
        make_store(dimensions=8) as store,
        PagePictures(store, originals, Limits()) as pictures,
        pytest.raises(NotFound, match="any more"),
    ):
        pictures.draw(document, 1, None)
