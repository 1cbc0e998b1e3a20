"""A page of a PDF as a picture: the marked text is the indexed passage. Also the number of pages."""

from __future__ import annotations

import random
import zlib
from contextlib import closing
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import count, islice
from types import SimpleNamespace
from unicodedata import normalize

import pypdfium2
import pytest

from kb.api.errors import DiskFault, NotFound, Unreadable
from kb.blobs.folder import FolderBlobs
from kb.documents.originals import Originals
from kb.documents.page_pictures import PagePictures, chunk_on_page
from kb.formats.readers import pdf as pdf_reader
from kb.formats.readers.pdf_page import tidy
from kb.formats.readers.pdf_picture import TextBox, draw_page, find_passage, passage_boxes
from kb.ingest.chunk import Chunker
from kb.parser.sandbox import Limits, Sandbox
from kb.store.rows import Chunk
from kb_web.documents import page_count
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


def common(one, other):
    """The area that two boxes share."""
    left, bottom = max(one.left, other.left), max(one.bottom, other.bottom)
    return area(TextBox(left, bottom, min(one.right, other.right), min(one.top, other.top)))


def covered(box, marks):
    """The share of a box that lies in the marks, which do not overlap within a line."""
    return max((common(box, each) for each in marks), default=0.0) / area(box)


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


@pytest.mark.rare
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
                    box = TextBox(*text.get_charbox(index))
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
    width, height = size_of(marked)
    assert size_of(plain) == (width, height)
    assert width == 1100
    before, after = pixels_of(plain), pixels_of(marked)
    changed = [row for row in range(height) if before[row] != after[row]]
    assert 0.06 < min(changed) / height < max(changed) / height < 0.12
    pixels = {place // 3 for row in changed for place in range(3 * width) if before[row][place] != after[row][place]}
    assert 0.1 < min(pixels) / width < max(pixels) / width < 0.6


def test_only_the_words_of_a_search_are_marked_if_the_passage_has_them():
    data = pdf("The lease ends in March 2028. A release is another word.")
    with (
        closing(pypdfium2.PdfDocument(data)) as document,
        closing(document[0]) as page,
        closing(page.get_textpage()) as text,
    ):
        passage = "The lease ends in March 2028. A release"
        whole = passage_boxes(text, passage, 0)
        word, both = (passage_boxes(text, passage, 0, words) for words in (["LEASE"], ["lease", "march"]))
        assert (len(whole), len(word), len(both)) == (1, 1, 2), "release has other letters before it"
        assert area(word[0]) < area(whole[0]) / 5
        assert passage_boxes(text, passage, 0, ["absent"]) == whole


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
    width, height = size_of(draw_page(data, 1))
    assert width * height <= 6_100_000
    data = pdf("Thin.").replace(b"[0 0 612 792]", b"[0 0 2 14400]")
    width, height = size_of(draw_page(data, 1))
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
        pytest.raises(NotFound, match="no longer"),
    ):
        pictures.draw(document, 1, None)


def test_a_pdf_whose_pages_take_too_long_to_count_is_not_read_again(tmp_path, monkeypatch):
    tried = []

    def count_pages(sandbox, path):
        tried.append(path)
        raise Unreadable(sandbox.limits.too_slow)

    monkeypatch.setattr("kb.parser.sandbox.Sandbox.count_pages", count_pages)
    originals = Originals(FolderBlobs(tmp_path), keep=True)
    document = SimpleNamespace(id=1, doc_type="pdf", content_hash="ab" * 32)
    kept_at(originals, document.content_hash).parent.mkdir(parents=True)
    kept_at(originals, document.content_hash).touch()
    with PagePictures(None, originals, Limits(seconds=5)) as pages:
        for _ in range(2):
            with pytest.raises(NotFound, match="more than 5 seconds"):
                pages.count(document)
    assert len(tried) == 1


async def test_the_page_of_a_document_whose_pages_cannot_be_counted_is_shown_all_the_same():
    async def pages(document_id):
        raise DiskFault(f"document {document_id}")

    assert await page_count(SimpleNamespace(engine=SimpleNamespace(pages=pages)), 1, known=7) == 7


WINDOWS = (256, 200, 160, 128, 112, 96, 80, 64, 56, 48, 40, 32)
"""How many tokens a chunk may have: those of the index first, then ever shorter ones, of which there are more."""

ALIGNED = 3
"""How many words of a passage stand one after another on the page where they are its own."""

FEWEST_WORDS = 8


def chunks_of(data, embedder, window):
    """The chunks of a PDF, as the index has them if the window is the model's."""
    tokenizer = SimpleNamespace(
        spec=replace(embedder.spec, window=window),
        count_tokens=embedder.count_tokens,
        token_starts=embedder.token_starts,
    )
    made = Chunker(tokenizer).split(pdf_reader.read(data), None)
    return [Chunk(index, index, new.header, new.text, new.place) for index, (new, _) in enumerate(made)]


def passages(folder, embedder):
    """Each passage with the page that says it, the words of that page, and the passage's place there."""
    readable = [(path.read_bytes(), {}) for path in readable_pdfs(folder)]
    for window in WINDOWS:
        for data, words in readable:
            chunks = chunks_of(data, embedder, window)
            with closing(pypdfium2.PdfDocument(data)) as document:
                for chunk in chunks:
                    number = chunk.place.page
                    if number is None or len(chunk.text.split()) < FEWEST_WORDS:
                        continue
                    with closing(document[number - 1]) as page, closing(page.get_textpage()) as text:
                        words[number] = words.get(number) or words_of(text)
                        yield chunk, text, words[number], chunk_on_page(chunks, number, chunk.index)


def plain(text):
    return "".join(filter(str.isalnum, normalize("NFKC", text).casefold()))


def words_of(text):
    """The words of a page, each with the boxes of its letters."""
    words, boxes = [""], [[]]
    for index in range(text.count_chars()):
        character = text.get_text_range(index, 1)
        box = TextBox(*text.get_charbox(index))
        if character.isspace() or not character:
            words.append("")
            boxes.append([])
        elif box.right > box.left and box.top > box.bottom:
            words[-1] += plain(character)
            boxes[-1].append(box)
    return [(word, own) for word, own in zip(words, boxes, strict=True) if word and own]


def rephrase(page_words, passage):
    """The boxes of the passage's own words, found by comparing it with the page word by word."""
    wanted = [word for word in map(plain, passage.split()) if word]
    matcher = SequenceMatcher(None, [word for word, _ in page_words], wanted, autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size >= ALIGNED]
    found = [boxes for block in blocks for _, boxes in page_words[block.a : block.a + block.size]]
    return found, len(found) / max(1, len(wanted))


@pytest.mark.rare
@pytest.mark.parametrize("wanted", [40, pytest.param(500, marks=pytest.mark.long)])
def test_the_marks_cover_the_words_of_each_passage_of_the_index(test_data, embedder, wanted):
    shares, compared = [], []
    for chunk, text, page_words, passage in islice(passages(test_data, embedder), wanted):
        words, share = rephrase(page_words, chunk.text)
        marks = passage_boxes(text, *passage)
        boxes = [box for word in words for box in word]
        covered = sum(min(area(box), sum(common(box, mark) for mark in marks)) for box in boxes)
        compared.append(share)
        shares.append(covered / max(sum(map(area, boxes)), 1e-9))
    assert len(shares) == wanted
    mean = sum(compared) / wanted
    print(f"{wanted} passages, {mean:.3f} of their words compared: marked are {min(shares):.4f} of each at least")
    assert mean > 0.95
    assert min(shares) >= 0.99
