from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kb.formats.extracted import Extracted, Section
from kb.ingest.chunk import CHUNK_TOKENS, SPECIAL_TOKENS, cut

texts = st.one_of(
    st.text(max_size=3000),
    st.lists(
        st.sampled_from(["word", "Überraschung", "日本語の文章", "🐘🎉", "x" * 300, "a.b-c/d", "\n\n", "\n", "\t"])
    ).map(" ".join),
    st.text(alphabet="aé日\u0301\ufdfa \n.#-", max_size=3000),
    st.integers(1, 6000).map("x".__mul__),
    st.tuples(st.integers(3500, 4100), st.integers(0, 300), st.integers(0, 300)).map(
        lambda sizes: "A" * sizes[0] + "qzkvjxwq" * sizes[1] + " word" * sizes[2]
    ),
    st.integers(1, 1500).map("!".__mul__),
)
slow_but_thorough = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def documents(draw):
    """A text with sections that partition it."""
    text = draw(texts)
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=5))) if len(text) > 1 else []
    edges = [0, *cuts, len(text)]
    headings = st.lists(st.text(min_size=1, max_size=400), max_size=3).map(tuple)
    pages = st.sampled_from([None, 1, 2])
    sections = tuple(Section(start, end, draw(headings), draw(pages)) for start, end in pairwise(edges))
    return Extracted(None, text, sections)


def pieces_of(text, embedder, title=None, sections=None):
    return list(cut(Extracted(None, text, sections or (Section(0, len(text)),)), title, embedder))


def chunks_of(*arguments):
    return [chunk for chunk, _ in pieces_of(*arguments)]


@pytest.mark.requirement("N-1")
@slow_but_thorough
@given(document=documents(), title=st.one_of(st.none(), st.text(min_size=1, max_size=600)))
def test_chunks_joined_give_the_text_back_and_none_exceeds_the_window(document, title, embedder):
    pieces = list(cut(document, title, embedder))
    assert "".join(chunk.text for chunk, _ in pieces) == document.text
    position = 0
    for chunk, read in pieces:
        assert (chunk.place.char_start, chunk.place.char_end) == (position, position + len(chunk.text))
        position = chunk.place.char_end
        assert embedder.count_tokens(chunk.text) <= CHUNK_TOKENS + SPECIAL_TOKENS
        assert read.endswith(chunk.text.strip())
        assert embedder.count_tokens(read) <= embedder.window


def test_a_short_text_is_one_chunk(embedder):
    [chunk] = chunks_of("Just a line.", embedder)
    assert (chunk.place.line_start, chunk.place.line_end) == (1, 1)


def test_a_long_text_is_cut_between_paragraphs(embedder):
    paragraph = "The quick brown fox jumps over the lazy dog. " * 15
    chunks = chunks_of(f"{paragraph}\n\n{paragraph}\n\n{paragraph}", embedder)
    assert [chunk.text.strip() for chunk in chunks] == [paragraph.strip()] * 3
    assert [(chunk.place.line_start, chunk.place.line_end) for chunk in chunks] == [(1, 1), (3, 3), (5, 5)]


def test_a_word_without_end_is_cut_all_the_same(embedder):
    chunks = chunks_of("x" * 10_000, embedder)
    assert len(chunks) >= 3


def test_a_chunk_stands_under_its_title_and_headings(embedder):
    text = "# Animals\n\n## Cats\n\n" + "Cats purr when they are content and loved. " * 3
    sections = (Section(0, 11, ("Animals",)), Section(11, len(text), ("Animals", "Cats")))
    [(chunk, read)] = pieces_of(text, embedder, "Zoology", sections)
    assert chunk.header == "Zoology › Animals › Cats"
    assert chunk.place.heading == ("Animals", "Cats")
    assert read.startswith("Zoology › Animals › Cats\n# Animals")


def test_a_chunk_never_spans_two_pages(embedder):
    text = "Page one is short.\nPage two too.\n"
    chunks = chunks_of(text, embedder, None, (Section(0, 19, (), 1), Section(19, len(text), (), 2)))
    assert [(chunk.place.page, chunk.text) for chunk in chunks] == [(1, text[:19]), (2, text[19:])]


def test_a_long_header_gives_way_to_the_text(embedder):
    [(_, read)] = pieces_of("word " * 190, embedder, "title " * 300)
    assert read.count("word") == 190
    assert 0 < read.count("title") < 100


def test_a_rest_is_shared_out_instead_of_making_a_chunk_of_a_few_words(embedder):
    sizes = [embedder.count_tokens(chunk.text) for chunk in chunks_of("One two three four. " * 43, embedder)]
    assert len(sizes) == 2
    assert min(sizes) > 90


def test_text_without_spaces_is_cut_between_characters(embedder):
    chunks = chunks_of("日本語の長い文章です" * 100, embedder)
    assert len(chunks) == 5
