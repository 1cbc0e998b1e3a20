"""What is written as it was typed comes first, a name before what mentions it, and copies are one result."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from kb.ingest.draft import draft_note, embed_draft
from kb.ingest.models import ActiveModel
from kb.search.query import Query
from kb.search.recall import RecallMonitor
from kb.search.service import SearchService
from kb.store.rows import Filter, NewJob
from kb.telemetry.instruments import Instruments

TEMPLATE = (
    "Before the boat leaves, its crew checks each rope, lamp and anchor, fills the tank and reads the weather. The mate"
    " notes the hour, the wind and the height of the water in the blue book, and whoever steers signs below. After the"
    " trip the deck is washed, wet sails are hung up to dry, and the keys go back to the hook behind the office door."
)


@pytest.fixture
def filled(make_store, embedder):
    """A store, a service over it, and a function that adds documents by their paths."""

    def add(documents):
        for path, (title, text) in documents.items():
            content = embed_draft(draft_note(text, title, ActiveModel(embedder)), embedder)
            with store.write() as tx:
                tx.documents.add(content, path, ())

    instruments = Instruments()
    with make_store() as store, ThreadPoolExecutor(1) as pool, closing(RecallMonitor(store, instruments)) as recall:
        yield store, SearchService(store, ActiveModel(embedder), pool, instruments, recall), add


def paths(service, query, top=5, **options):
    answer = service.search(Query.parse(query, Filter(), full_text=True, vectors=options.pop("vectors", True)), top)
    return [passage.source_path for passage in answer.results]


@pytest.mark.parametrize("vectors", [True, False])
def test_a_document_of_that_name_comes_before_one_that_mentions_it(filled, vectors):
    _, service, add = filled
    add(
        {
            "Reading/Vannevar Bush.md": ("As We May Think", "The memex is a desk that remembers."),
            "Index.md": ("Reading list", "Vannevar Bush wrote about the memex. Vannevar Bush."),
            "Daily/2026-02-28.md": ("Saturday", "Tomorrow is 2026-03-01, the ferry leaves."),
            "Daily/2026-03-01.md": ("Sunday", "Booking code of the ferry."),
        }
    )
    for query in ("Vannevar", "vannevar bush", "Vannevar Bush.md", "reading vannevar"):
        assert paths(service, query, vectors=vectors)[0] == "Reading/Vannevar Bush.md"
    assert paths(service, "2026-03-01", vectors=vectors)[0] == "Daily/2026-03-01.md"
    assert not service.search(Query.parse("Vannevar", Filter()), 5).unknown


@pytest.mark.parametrize("vectors", [True, False])
def test_what_is_written_as_it_was_typed_comes_first(filled, vectors):
    _, service, add = filled
    add(
        {
            "code.md": ("Code", "It calls foo_bar twice."),
            "site.md": (
                "foo.com",
                "foo.com has a bar, and foo bar are names in every book about programs with foo and bar.",
            ),
            "worst.md": ("Costs", "The worst-case is rare."),
            "case.md": ("Cases", "In the worst case, a case is the worst of all worst cases."),
            "bank.md": ("Statement", "The balance is 1,872.00 euros."),
            "other.md": ("Statement", "The balance is 1,873.00 euros."),
            "std.md": ("Moves", "You don't return std::move from a function."),
            "t.md": ("t", "test"),
        }
    )
    for query, path in (
        ("foo_bar", "code.md"),
        ("worst-case", "worst.md"),
        ("1872.00", "bank.md"),
        ("don't", "std.md"),
    ):
        assert paths(service, query, vectors=vectors)[0] == path


@pytest.mark.parametrize("typed", ["30-year", "Q3_plan", "cold-start"])
def test_a_name_that_many_passages_have_in_parts_still_comes_first_as_typed(filled, typed):
    _, service, add = filled
    parts = typed.replace("-", " ").replace("_", " ")
    add({f"other{number}.md": ("Note", f"All {parts.upper()} of {number} {parts.upper()}.") for number in range(20)})
    add({f"typed{number}.md": ("Note", f"Here {typed} is in the middle of note {number}.") for number in range(8)})
    assert all(path.startswith("typed") for path in paths(service, typed, top=8))


def test_copies_are_one_result_that_names_the_other_places(filled):
    _, service, add = filled
    add({f"project{number}/template.md": ("Template", TEMPLATE) for number in range(8)})
    add({"near.md": ("Template", TEMPLATE.replace("blue book", "red book"))})
    add({"answer.md": ("Who", "Petra checks the ropes and lamps of the crew on Mondays and signs the list.")})
    query = Query.parse("who checks the ropes and lamps of the crew", Filter())
    for grouped in (False, True):
        answer = service.search(query, 5, grouped=grouped)
        assert "answer.md" in [passage.source_path for passage in answer.results]
        [template] = [passage for passage in answer.results if passage.copies]
        assert len(template.copies) == 8
        assert len({copy.document_id for copy in template.copies} | {template.document_id}) == 9
    below = service.search(Query.parse("ropes lamps crew", Filter(source_prefix="project3/")), 5)
    assert [passage.source_path for passage in below.results] == ["project3/template.md"]


def test_short_notes_that_differ_in_a_word_of_the_query_are_two(filled):
    _, service, add = filled
    add(
        {
            f"{code}.md": (None, f"Ticket {code} waits for an answer from the harbour office.")
            for code in ("E1042", "E1043")
        }
    )
    answer = service.search(Query.parse("E1042 harbour", Filter()), 5)
    assert [passage.source_path for passage in answer.results] == ["E1042.md", "E1043.md"]
    assert not any(passage.copies for passage in answer.results)


def test_a_file_that_could_not_be_read_is_named_with_the_reason(filled):
    store, service, add = filled
    add({"a.md": ("A", "Anything.")})
    with store.write() as tx:
        job = tx.jobs.add(NewJob("file", filename="lease contract.pdf", content_hash="0" * 64, staged="x"))
        tx.jobs.claim(1)
        tx.jobs.fail(job, "It needs a password.")
    [file] = service.search(Query.parse("lease contract", Filter()), 5).unreadable
    assert (file.filename, file.error) == ("lease contract.pdf", "It needs a password.")
    assert not service.search(Query.parse("harbour", Filter()), 5).unreadable


def test_an_answer_says_when_nothing_answers_well(filled):
    _, service, add = filled
    add({"a.md": ("Ferry", "The ferry leaves at six."), "b.md": ("Soup", "The soup needs salt.")})
    assert service.search(Query.parse("salary of the president of Ruritania", Filter()), 5).weak
    assert not service.search(Query.parse("when does the ferry leave", Filter()), 5).weak


def test_names_filter_documents(filled):
    store, _, add = filled
    add({"a/memo from HR.md": ("A", "One."), "b/Memo.txt": ("B", "Two."), "c/memory_1.md": ("C", "Three.")})
    with store.read() as tx:
        for pattern, found in (("memo*", 3), ("memo from*", 1), ("*.MD", 2), ("memo", 0), ("memory?1.md", 1), ("%", 0)):
            assert len(tx.documents.page(Filter(name=pattern), sort="id", limit=9, cursor=None)) == found


@pytest.mark.parametrize("vectors", [True, False])
def test_a_word_as_it_was_typed_comes_before_a_name_that_has_another_form_of_it(filled, vectors):
    _, service, add = filled
    add(
        {
            "version.md": ("version", "Shows which version of the engine runs, and the version of its model."),
            "archive.md": ("archive", "Keeps a versioned copy of each note."),
            "Müller.md": ("Letters", "Of the mill, to the mayor."),
            "mill.md": ("mill", "Muller is the word for one who grinds; a muller grinds paint."),
        }
    )
    assert paths(service, "versioned", vectors=vectors)[0] == "archive.md"
    assert paths(service, "version", vectors=vectors)[0] == "version.md"
    assert paths(service, "mueller", vectors=vectors)[0] == "Müller.md"
