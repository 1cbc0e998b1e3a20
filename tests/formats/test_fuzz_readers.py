"""Readers end soon on any generated input, with a result or a reason; `make fuzz` takes minutes for each."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import contextmanager, suppress
from importlib import import_module

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from kb.api.errors import Unreadable
from kb.api.fields import DocumentsCursor, JobsCursor
from kb.api.file_types import MARKUPS
from kb.formats.detect import detect
from kb.formats.extract import extract
from kb.formats.installed_types import FORMATS
from kb.formats.text.extracted import Extracted, Section
from kb.ingest.chunk import Chunker
from kb.markdown.front_matter import front_matter
from kb.markdown.tags import tags_in
from kb.parser.sandbox import resident
from kb.search.query import Query, tokenize
from kb.store.rows import Filter
from tests.support.samples import CHANGES, SAMPLES, damaged

SECONDS = float(os.environ.get("KB_FUZZ_SECONDS", "0"))
"""How long each test goes on with other examples; the suite takes a few of each."""
LONGEST = 10
"""How many seconds of a processor's time one example may take, of a few kB at most."""
MOST_GROWTH = 100 << 20
"""How many bytes of memory all examples but the first may leave behind."""

READERS = sorted({each.reader for each in FORMATS.values()} | set(MARKUPS.values()))
TEXT = st.text(st.characters(codec="utf-8"), max_size=300)


@contextmanager
def limited():
    def interrupt(*_):
        raise TimeoutError(f"it took more than {LONGEST} seconds")

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def fuzz(check, *strategies):
    """Let `check` hold for made-up examples, for as long as is asked for."""

    @settings(
        max_examples=30, derandomize=not SECONDS, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.tuples(*strategies))
    def holds(example):
        with limited():
            check(*example)

    holds()
    begun, resident_then = time.monotonic(), None
    while (spent := time.monotonic() - begun) < SECONDS:
        seed(random.getrandbits(64))(holds)()
        if resident_then is None and spent > SECONDS / 5:
            resident_then = resident(os.getpid())
    assert resident_then is None or resident(os.getpid()) - resident_then < MOST_GROWTH


def assert_sound(extracted):
    place = 0
    for section in extracted.sections:
        assert section.start == place < section.end
        assert all(isinstance(title, str) for title in section.heading)
        place = section.end
    assert place == len(extracted.text)
    assert "\0" not in extracted.text
    extracted.text.encode()
    assert extracted.title is None or extracted.title.strip()
    assert all(isinstance(tag, str) for tag in extracted.tags)


def read(data, filename):
    try:
        _, extracted = extract(data, filename)
    except Unreadable as error:
        reason = error.detail
    else:
        reason = None
        assert_sound(extracted)
    assert reason is None or reason == "the parser failed with an internal error" or "parser failed" not in reason


def test_there_is_a_sample_of_each_format():
    assert {detect(SAMPLES[name], name) for name in SAMPLES} == FORMATS.keys()


@pytest.mark.parametrize("name", SAMPLES)
def test_a_damaged_file_is_read_or_refused(name):
    fuzz(lambda changes: read(damaged(SAMPLES[name], changes), name), CHANGES)


@pytest.mark.parametrize("reader", READERS)
def test_each_reader_takes_or_refuses_any_bytes(reader):
    beginnings = sorted({data[:size] for data in SAMPLES.values() for size in (0, 8, 64)})

    def check(beginning, data):
        with suppress(Unreadable):
            assert_sound(import_module(reader).read(beginning + data))

    fuzz(check, st.sampled_from(beginnings), st.binary(max_size=500))


def test_damaged_real_files_are_read_or_refused(test_data):
    files = sorted(path for path in (test_data / "files").iterdir() if path.stat().st_size < 100_000)

    def check(file, changes):
        read(damaged(file.read_bytes(), changes), file.name)

    fuzz(check, st.sampled_from(files), CHANGES)


def test_any_front_matter_is_understood_or_text():
    marks = "title:|tags: [|]|{|}|a.b|=|'|\"|\n|- |&a |*a|!!x |[[|#|: |2024-01-01|date|<<|? |>|%|\t|'''|`|``|\\"
    parts = st.sampled_from(marks.split("|"))

    def check(fence, pieces):
        text = f"{fence}\n{''.join(pieces)}\n{fence}\n"
        found = front_matter(text)
        assert 0 <= found.length <= len(text)
        tags_in("".join(pieces))

    fuzz(check, st.sampled_from(["---", "+++"]), st.lists(parts | TEXT, max_size=30))


def test_any_query_is_words_that_can_be_looked_up():
    def check(text):
        query = Query.parse(text, Filter())
        assert len(set(query.words)) == len(query.words)
        assert all(map(tokenize, query.terms))

    fuzz(check, TEXT | st.text())


@pytest.mark.parametrize("sort", ["id", "recent"])
def test_any_cursor_is_refused_or_gives_a_page(make_store, sort):
    cursors = st.from_regex(r"[0-9]{1,19}\.?[0-9a-f]{0,40}") | TEXT
    with make_store(dimensions=8) as store:

        def check(text):
            for kind in (DocumentsCursor, JobsCursor):
                try:
                    cursor = TypeAdapter(kind).validate_python(text)
                except ValidationError:
                    continue
                with store.read() as tx:
                    if kind is DocumentsCursor:
                        tx.documents.page(Filter(), sort=sort, limit=5, cursor=cursor)
                    else:
                        tx.jobs.page(status=None, limit=5, before=int(cursor))

        fuzz(check, cursors)


def test_any_text_is_cut_into_chunks_that_give_it_back(embedder):
    words = st.sampled_from(["a ", "word", "\n", "\n\n", ". ", "東", "ß" * 50, "x" * 300, "-", "\u200b", "\t", "é"])

    def check(pieces, cuts, title):
        text = "".join(pieces)
        ends = sorted({*(cut for cut in cuts if cut < len(text)), len(text)})
        parts = [
            Section(start, end, (f"Part {end}",)) for start, end in zip([0, *ends], ends, strict=False) if end > start
        ]
        extracted = Extracted(None, text, tuple(parts))
        chunks = [chunk for chunk, _ in Chunker(embedder).split(extracted, title)]
        assert "".join(chunk.text for chunk in chunks) == text

    fuzz(check, st.lists(words | TEXT, max_size=60), st.lists(st.integers(1, 2000), max_size=5), TEXT)
