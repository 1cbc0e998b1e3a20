"""What is marked on a page's picture covers the words of its passage, as the index has it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import islice
from types import SimpleNamespace
from unicodedata import normalize

import pypdfium2
import pytest

from kb.api.errors import Unreadable
from kb.documents.page_pictures import passage_of
from kb.formats.readers import pdf
from kb.formats.readers.pdf_picture import Box, passage_boxes
from kb.ingest.chunk import Chunker
from kb.store.rows import Chunk

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
    made = Chunker(tokenizer).split(pdf.read(data), None)
    return [Chunk(index, index, new.header, new.text, new.place) for index, (new, _) in enumerate(made)]


def passages(folder, embedder):
    """Each passage with the page that says it, the words of that page, and the passage's place there."""
    readable = []
    for path in sorted(folder.glob("files/*.pdf")):
        try:
            pdf.read(path.read_bytes())
        except Unreadable:
            continue
        readable.append((path.read_bytes(), {}))
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
                        yield chunk, text, words[number], passage_of(chunks, number, chunk.index)


def plain(text):
    return "".join(filter(str.isalnum, normalize("NFKC", text).casefold()))


def words_of(text):
    """The words of a page, each with the boxes of its letters."""
    words, boxes = [""], [[]]
    for index in range(text.count_chars()):
        character = text.get_text_range(index, 1)
        box = Box(*text.get_charbox(index))
        if character.isspace() or not character:
            words.append("")
            boxes.append([])
        elif box.right > box.left and box.top > box.bottom:
            words[-1] += plain(character)
            boxes[-1].append(box)
    return [(word, own) for word, own in zip(words, boxes, strict=True) if word and own]


def area(box):
    return max(0.0, box.right - box.left) * max(0.0, box.top - box.bottom)


def common(one, other):
    return area(
        Box(
            max(one.left, other.left),
            max(one.bottom, other.bottom),
            min(one.right, other.right),
            min(one.top, other.top),
        )
    )


def rephrase(page_words, passage):
    """The boxes of the passage's own words, found by comparing it with the page word by word."""
    wanted = [word for word in map(plain, passage.split()) if word]
    matcher = SequenceMatcher(None, [word for word, _ in page_words], wanted, autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size >= ALIGNED]
    found = [boxes for block in blocks for _, boxes in page_words[block.a : block.a + block.size]]
    return found, len(found) / max(1, len(wanted))


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
