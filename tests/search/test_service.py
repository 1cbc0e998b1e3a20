"""A search through the service, with the real store and the real model, which waits at points that a test sets."""

from __future__ import annotations

import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import apsw
import numpy as np
import pytest

from kb.api.errors import ModelChanged
from kb.core import MAX_SEARCHES
from kb.embed.artifact import load_model
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.index.words.document_names import file_stem, parse_aliases, telling, tokens_of_names, with_aliases
from kb.index.words.language import guessed
from kb.index.words.segmentation import aligned
from kb.index.words.stems import stems_in
from kb.index.words.word_variants import variants_in
from kb.ingest.active_model import ActiveModel
from kb.ingest.draft import draft_note, embed_draft
from kb.search.name_match import WHOLE, likeness, sought, unreadable
from kb.search.query import Query
from kb.search.recall_monitor import RecallMonitor
from kb.search.service import SearchService
from kb.store.analyzer import Analyzer, FtsTokenizer
from kb.store.rows import ChunkPosition, Content, Filter, Named, NewChunk, NewJob, VectorSpace
from kb.telemetry.instruments import FollowingPool, Instruments
from tests.support.documents import DIMENSIONS
from tests.support.models import WrappedModel
from tests.support.rare_cases import mostly_rare


class Model(WrappedModel):
    """The model, which works once `go` is set; `begun` counts what it was asked for. A `broken` one fails."""

    def __init__(self, embedder):
        super().__init__(embedder)
        self.begun = threading.Semaphore(0)
        self.go = threading.Event()
        self.broken = False
        self.asked = []

    @property
    def models(self):
        return [self]

    def embed_queries(self, texts, *, alone=True):
        self.asked.append((alone, threading.current_thread() is threading.main_thread()))
        self.begun.release()
        self.go.wait()
        if self.broken:
            raise MemoryError
        return self._embedder.embed_queries(texts, alone=alone)


@pytest.fixture
def model(embedder):
    return Model(embedder)


@pytest.fixture
def store(make_store):
    with make_store() as opened:
        yield opened


@pytest.fixture
def service(store, model):
    with FollowingPool(MAX_SEARCHES) as pool:
        with closing(RecallMonitor(store, Instruments())) as recall:
            yield SearchService(store, model, pool, Instruments(), recall)
        model.go.set()


def add(store, texts, vector):
    """A document with a chunk for each text, all with the same vector."""
    chunks = [NewChunk(text, "", ChunkPosition(1, 1, 0, len(text))) for text in texts]
    content = Content("note", texts[0], texts[0], chunks, np.tile(vector, (len(texts), 1)))
    with store.write() as tx:
        return tx.documents.add(content, None, ())


@pytest.mark.requirement("E-9")
def test_as_many_searches_as_may_run_leave_connections_to_what_does_not_ask_the_model(store, service, model, embedder):
    add(store, ["The lamp is lit at dusk."], embedder.embed_queries(["lamp"])[0])
    with ThreadPoolExecutor(MAX_SEARCHES) as clients:
        searches = [clients.submit(service.search, Query.parse("lamp", Filter()), 1) for _ in range(MAX_SEARCHES)]
        try:
            for _ in range(MAX_SEARCHES):
                assert model.begun.acquire(timeout=60)
            with ThreadPoolExecutor(2) as others:
                words_only = others.submit(service.search, Query.parse("lamps", Filter(), vectors=False), 1)
                others.submit(store.check).result(60)
                assert [passage.highlights for passage in words_only.result(60).results] == [[(4, 8)]]
        finally:
            model.go.set()
        assert {search.result().results[0].text for search in searches} == {"The lamp is lit at dusk."}


def test_a_model_that_fails_fails_its_search_and_no_later_one(store, service, model, embedder):
    add(store, ["The lamp is lit at dusk."], embedder.embed_queries(["lamp"])[0])
    model.go.set()
    model.broken = True
    for _ in range(MAX_SEARCHES + 1):
        with pytest.raises(MemoryError):
            service.search(Query.parse("lamp", Filter()), 1)
    model.broken = False
    assert len(service.search(Query.parse("lamp", Filter()), 1).results) == 1


def test_a_query_among_others_is_embedded_by_its_own_thread_on_one_core_and_answered_alike(store, model, embedder):
    add(store, ["The lamp is lit at dusk."], embedder.embed_queries(["lamp"])[0])
    model.go.set()
    are_alone = [True, False]
    with FollowingPool(1) as pool, closing(RecallMonitor(store, Instruments())) as recall:
        service = SearchService(store, model, pool, Instruments(), recall, is_alone=lambda: are_alone[0])
        alone = service.search(Query.parse("a lamp", Filter()), 1)
        del are_alone[0]
        assert service.search(Query.parse("a lamp", Filter()), 1) == alone
        model.broken = True
        with pytest.raises(MemoryError):
            service.search(Query.parse("a lamp", Filter()), 1)
    assert model.asked == [(True, False), (False, True), (False, True)]


def test_a_query_is_embedded_once_however_long_a_list_its_documents_take(store, service, model, embedder):
    vector = embedder.embed_queries(["lamp"])[0]
    documents = [add(store, [f"Lamp {number}." for number in range(700)], vector)]
    documents += [add(store, [text], -vector) for text in ("Snow.", "Ice.")]
    model.go.set()
    found = service.search(Query.parse("lamp", Filter()), 3, grouped=True).results
    assert [(passage.document_id, len(passage.more)) for passage in found] == list(
        zip(documents, (2, 0, 0), strict=True)
    )
    assert model.begun.acquire(blocking=False)
    assert not model.begun.acquire(blocking=False)


def test_the_best_documents_are_the_same_however_many_are_asked_for(store, service, model, monkeypatch):
    monkeypatch.setattr("kb.search.service.CANDIDATES", 3)
    model.go.set()
    random = np.random.default_rng(4)
    for number in range(14):
        texts = ["lamp " * random.integers(0, 5) + f"snow {number} {each}" for each in range(random.integers(1, 9))]
        chunks = [NewChunk(text, "", ChunkPosition(1, 1, 0, len(text))) for text in texts]
        vectors = random.normal(size=(len(texts), 384)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        with store.write() as tx:
            tx.documents.add(Content("note", texts[0], str(number), chunks, vectors), None, ())

    def found(top):
        passages = service.search(Query.parse("lamp", Filter()), top, grouped=True, explain=True).results
        for passage in (each for first in passages for each in (first, *first.more)):
            legs = passage.explanation
            assert legs.words.share + legs.meaning.share + legs.typed == pytest.approx(passage.score)
        return [(each.document_id, each.score, [more.chunk_id for more in each.more]) for each in passages]

    every = found(14)
    assert len(every) == 14
    for top in range(1, 14):
        assert found(top) == every[:top]


def test_a_lone_match_scores_no_less_than_what_is_only_near(store, service, model, embedder):
    model.go.set()
    text = "Ticket E1042 waits for an answer."
    add(store, [text], embedder.embed_passages([text])[0])
    near = service.search(Query.parse("a question that nobody responded to", Filter()), 1, explain=True).results[0]
    match = service.search(Query.parse("E1042", Filter()), 1, explain=True).results[0]
    assert (near.score, near.fts_score) == (near.vec_score, None)
    legs = match.explanation
    assert match.score == pytest.approx(1 + match.vec_score + legs.typed)
    assert match.score > near.score
    assert (legs.words.share, legs.meaning.share) == pytest.approx((1, match.vec_score))


def test_a_document_of_very_many_passages_is_not_read_whole_for_a_grouped_search(store, service, model, monkeypatch):
    monkeypatch.setattr("kb.search.service.CANDIDATES", 5)
    monkeypatch.setattr("kb.search.retrieve.MOST_CANDIDATES", 40)
    model.go.set()
    near = np.eye(384, dtype=np.float32)[0]
    add(store, [f"apple {number}" for number in range(300)], near)
    fetched = []
    with store.read() as tx:
        kind = type(tx.index)
    monkeypatch.setattr(kind, "hits", lambda index, ids, hits=kind.hits: fetched.append(len(ids)) or hits(index, ids))
    answer = service.search(Query(None, ("apple",), Filter()), 5, grouped=True)
    assert [len(passage.more) for passage in answer.results] == [2]
    assert fetched == [3]


@pytest.mark.rare
def test_a_query_is_embedded_anew_for_vectors_that_came_into_use_a_moment_ago(store, embedder, other_model):
    """The database changes a moment before the engine takes the other model for the one in use."""
    text, other, active = (
        "The key is under the mat.",
        OnnxEmbedder(load_model(other_model), "cpu"),
        ActiveModel(embedder),
    )
    with store.write() as tx:
        tx.documents.add(embed_draft(draft_note(text, None, embedder), embedder), None, ())
        tx.second.begin(VectorSpace.of(other.spec))
        tx.second.add([1], other.embed_passages([text]))
    with store.write() as tx:
        assert tx.second.switch()
    with FollowingPool(1) as pool, closing(RecallMonitor(store, Instruments())) as recall:
        service = SearchService(store, active, pool, Instruments(), recall)
        query = Query.parse("Where is the key?", Filter(), full_text=False)
        with pytest.raises(ModelChanged):
            service.search(query, 1)
        active.announce(other)
        [passage] = service.search(query, 1).results
    [expected] = other.embed_queries(["Where is the key?"]) @ other.embed_passages([text])[0]
    assert passage.vec_score == pytest.approx(float(expected), abs=1e-4)


def replacing(store, earlier, texts, vector):
    """A note in the place of another one, with a chunk for each text, all with the same vector."""
    document_id = add(store, texts, vector)
    with store.write() as tx:
        chunks = [NewChunk(text, "", ChunkPosition(1, 1, 0, len(text))) for text in texts]
        content = Content("note", texts[0], texts[0], chunks, np.tile(vector, (len(texts), 1)), replaces=earlier)
        tx.documents.replace(document_id, content)
    return document_id


def test_what_replaced_a_document_comes_before_it_though_one_document_has_all_of_the_best_passages(
    store, service, model, embedder, monkeypatch
):
    monkeypatch.setattr("kb.search.service.CANDIDATES", 2)
    model.go.set()
    vector = embedder.embed_queries(["lamp"])[0]
    long = add(store, [f"Lamp {number}." for number in range(5)], vector)
    earlier = add(store, ["A lamp that is lit at dusk by the keeper and by nobody else."], vector * 0.5)
    add(store, [f"Snow {number}." for number in range(20)], vector * 0.4)
    later = replacing(store, earlier, ["Ice."], -vector)
    found = service.search(Query.parse("lamp", Filter()), 2, grouped=True).results
    assert [passage.document_id for passage in found] == [long, later]


def test_a_long_note_that_replaced_one_hides_none_that_replaced_another(store, service, model, embedder, monkeypatch):
    monkeypatch.setattr("kb.search.service.CANDIDATES", 2)
    model.go.set()
    vector = embedder.embed_queries(["lamp"])[0]
    earlier = [add(store, [text], vector) for text in ("Lamp one.", "Lamp two.")]
    add(store, ["Hail.", "Frost."], vector * 0.5)
    long = replacing(store, earlier[0], [f"Snow {number}." for number in range(60)], vector * 0.1)
    short = replacing(store, earlier[1], ["Ice."], -vector)
    found = service.search(Query.parse("lamp", Filter()), 4).results
    assert [passage.document_id for passage in found] == [long, earlier[0], short, earlier[1]]


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


@pytest.mark.parametrize("typed", mostly_rare(["30-year", "Q3_plan", "cold-start"]))
def test_a_name_that_many_passages_have_in_parts_still_comes_first_as_typed(filled, typed):
    _, service, add = filled
    parts = typed.replace("-", " ").replace("_", " ")
    add({f"other{number}.md": ("Note", f"All {parts.upper()} of {number} {parts.upper()}.") for number in range(20)})
    add({f"typed{number}.md": ("Note", f"Here {typed} is in the middle of note {number}.") for number in range(8)})
    assert all(path.startswith("typed") for path in paths(service, typed, top=8))


IDENTIFIERS = (
    "P-09", "INV-2024/117", "kb_get", "v2.13.0", "a.b-c", "the_end", "A/B", "AND-9", "is_a", "10.0.0.1", "foo::bar",
    "U-boat", "J.R.R.", "П-09", "C:\\a\\b", "--no-cache",
)  # fmt: skip


@pytest.mark.parametrize("form", mostly_rare(["{}", '"{}"', 'what is "{}"?', "{}."]))
def test_an_identifier_comes_before_longer_ones_and_before_its_parts(filled, form):
    _, service, add = filled
    signs = str.maketrans(dict.fromkeys("-./_:\\", " "))
    for number, identifier in enumerate(IDENTIFIERS):
        add(
            {
                f"{number} longer.md": (
                    None,
                    f"See {identifier.rstrip('.')}-2: the team checks {identifier}-2 in May.",
                ),
                f"{number} parts.md": (None, f"See {identifier.translate(signs)}, all {identifier.translate(signs)}."),
                f"{number} whole.md": (None, f"Much later the team spoke about {identifier} in the workshop."),
            }
        )
    found = [paths(service, form.format(identifier))[0] for identifier in IDENTIFIERS]
    assert found == [f"{number} whole.md" for number in range(len(IDENTIFIERS))]


@pytest.mark.parametrize(
    ("query", "unknown"),
    [
        ("P-09", ["P-09"]),
        ("dosing offset of pump P-09", ["P-09"]),
        ('"P-09"', ["P-09"]),
        ('"pump sound"', ["pump sound"]),
        ("kb_get and AT&T", ["kb_get", "AT&T"]),
        ("ticket 4711", ["4711"]),
        ("NASA pump", ["NASA"]),
        ("pump P-07 of GitHub at 3pm on 2026-08-18, 5kg", []),
        ("archive", []),
        ("ARCHIVE-2", []),
    ],
)
def test_an_identifier_a_name_or_a_phrase_that_no_document_contains_is_said(filled, query, unknown):
    _, service, add = filled
    add(
        {
            "archive-2.md": ("P-07", "Dosing offset of pump P-07, a ticket of GitHub."),
            "sound.md": ("P-08", "A sound pump P-08 at 09:00."),
        }
    )
    answer = service.search(Query.parse(query, Filter()), 5)
    assert answer.results
    assert [(each.word, each.nearest) for each in answer.unknown] == [(word, []) for word in unknown]


def dated(text, day):
    return f"---\ndate: {day}\n---\n{text}"


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("vectors", [True, False])
def test_of_notes_that_say_the_same_of_a_fact_the_latest_comes_first(filled, vectors, is_first):
    _, service, add = filled
    notes = {
        "earlier.md": (None, dated("The standup is daily at 9:30 in room Linde.", "2026-01-12")),
        "later.md": (None, dated("The daily standup moves to 10:00 because of the way to school.", "2026-04-20")),
        "other.md": (None, dated("The meeting of the board is in room Oak.", "2026-11-02")),
    }
    add(notes if is_first else dict(reversed(notes.items())))
    for query in ("When is the daily standup?", "standup", "daily standup budget"):
        assert paths(service, query, vectors=vectors)[:2] == ["later.md", "earlier.md"]


def test_a_later_note_comes_first_only_if_it_answers_as_well_and_says_the_same(filled):
    _, service, add = filled
    add(
        {
            "P-07.md": (None, dated("Pump P-07: offset 0.40 ml for each stroke.", "2026-01-12")),
            "P-08.md": (None, dated("Pump P-08: offset 0.44 ml for each stroke.", "2026-04-20")),
            "key.md": (None, dated("The spare key of the boat house is under the red flowerpot.", "2026-01-12")),
            "list.md": (None, dated("House rules: no shoes. A boat needs a lamp, a key needs a ring.", "2026-04-20")),
            "lunch.md": (None, dated("Lunch is at noon.", "2026-01-12")),
            "same day.md": (None, dated("Lunch is at one.", "2026-01-12T18:00:00Z")),
        }
    )
    assert paths(service, "offset of pump P-07")[0] == "P-07.md"
    assert paths(service, "key of the boat house")[0] == "key.md"
    assert paths(service, "lunch")[0] == "lunch.md"


@pytest.mark.parametrize(
    ("query", "parts", "path"),
    [
        ("wifi", [], "guests.md"),
        ("zeroday patch", ["zero day"], "day.md"),
        ("maxconnections", ["max connections"], "max.md"),
        ("E2207", [], "error.md"),
        ("pump p07", [], "pump.md"),
    ],
)
def test_words_that_stick_together_find_their_parts(filled, query, parts, path):
    _, service, add = filled
    add(
        {
            "guests.md": ("Guests", "The Wi-Fi of the guests has a new password."),
            "day.md": ("Patch", "A zero day in the library: patch it."),
            "max.md": ("Settings", "Set max_connections to 200."),
            "error.md": ("Errors", "E-2207: the relay sticks."),
            "pump.md": ("Pumps", "P-07: offset 0.40 ml."),
            "other.md": ("Others", "The day of zero connections: 2207 pumps, e-mail of 07:00 p.m. and a wide fish."),
        }
    )
    answer = service.search(Query.parse(query, Filter()), 5)
    assert answer.results[0].source_path == path
    assert [each.nearest[0] for each in answer.unknown] == parts
    assert not answer.weak


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


@pytest.mark.parametrize(
    ("query", "is_weak"),
    mostly_rare(
        [
            ("E-2207 courier prices", False),
            ("E-2208 courier prices", True),
            ("address of the quay for herring", False),  # a rare word weighs more than two that stand everywhere
            ("invoice 4711 overdue customer", False),
            ("invoice 4712 overdue customer", True),
        ],
        2,
    ),
)
def test_a_document_with_the_identifier_or_the_rare_words_of_a_query_is_no_weak_answer(filled, query, is_weak):
    _, service, add = filled
    add({f"{number}.md": (None, f"Boat note {number}: the quay has an address for boats.") for number in range(40)})
    add({text[-4:]: (None, text) for text in ("E-2207: the relay sticks.", "Paid 4711 in May.", "Herring!")})
    assert service.search(Query.parse(query, Filter()), 5).weak == is_weak


def test_an_answer_names_other_languages_of_documents_only_if_nothing_answers_well(filled):
    _, service, add = filled
    add(
        {
            "garage.md": (None, "Die Kündigungsfrist für die Garage beträgt sechs Wochen zum Ende des Quartals."),
            "maison.md": (None, "Le contrat de la maison couvre le feu, les dégâts des eaux et le vol des bijoux."),
            "ferry.md": (None, "The ferry leaves the harbour at six in the morning and comes back in the evening."),
        }
    )

    def others(query, **filters):
        return service.search(Query.parse(query, Filter(**filters)), 5).other_languages

    assert others("how long must I tell the landlord before leaving") == ["de", "fr"]
    assert others("notice period") == ["de", "fr"]
    assert others("wann zahlt die Versicherung bei Hagel") == ["en", "fr"]
    assert others("when does the ferry leave the harbour") == []
    assert others("notice period", lang="fr") == []
    assert others("notice period", source_path="ferry.md") == []
    assert others("違約金") == []


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


FILES = {
    "lease contract.pdf": ("home/lease contract.pdf", ("home",)),
    "Übersicht.pdf": ("office/Übersicht.pdf", ()),
    "scan.pdf": ("office/scan.pdf", ()),
    "C++.pdf": (None, ()),
}


@pytest.fixture
def asked(make_store):
    with make_store(dimensions=DIMENSIONS) as store:
        with store.write() as tx:
            for number, (name, (path, tags)) in enumerate(FILES.items()):
                given = {"source_path": path, "tags": tags, "content_hash": f"{number:064}"}
                job = tx.jobs.add(NewJob("file", filename=name, staged="x", **given))
                tx.jobs.claim(1)
                tx.jobs.fail(job, "It needs a password.")

        def names(query, **where):
            with store.read() as tx:
                found = unreadable(tx, Query.parse(query, Filter(**where)), tx.index.analyzer)
            return {each.filename for each in found}

        yield names


def test_a_query_that_names_a_file_by_a_word_of_its_name_gets_it(asked):
    assert asked("lease contract") == asked("contract pdf") == asked("contract") == {"lease contract.pdf"}
    assert asked("the lease contract of my flat") == {"lease contract.pdf"}
    assert asked("übersicht") == asked("uebersicht.pdf") == {"Übersicht.pdf"}
    assert asked("C++") == {"C++.pdf"}


@pytest.mark.parametrize("query", ["pdf", "PDF files", "harbour", "C", "the"])
def test_an_ending_alone_names_no_file(asked, query):
    assert asked(query) == set()


def test_a_filter_leaves_out_files_that_it_would_not_admit(asked):
    assert asked("lease contract", source_prefix="home/") == {"lease contract.pdf"}
    assert asked("lease contract", tags=("home",)) == {"lease contract.pdf"}
    assert asked("lease contract", name="lease*") == {"lease contract.pdf"}
    for where in ({"source_prefix": "office/"}, {"tags": ("office",)}, {"document_id": 7}, {"name": "memo*"}):
        assert asked("lease contract", **where) == set()


@pytest.fixture(scope="module")
def indexed():
    return Analyzer(FtsTokenizer(apsw.Connection(":memory:"))).indexed


def likened(indexed, query, path, *, title="Something else", is_part=False, header=""):
    words, whole = sought(Query.parse(query, Filter()).units, indexed)
    named = Named(1, title, path, "", is_part, header)
    assert whole in tokens_of_names(indexed, named.names, path) or not words
    return likeness(named, words, indexed)


@pytest.mark.parametrize(
    "name",
    [
        "C++",
        "C#",
        ".NET",
        "दीवार की मरम्मत",
        "ตารางเรือ",
        "שָׁלוֹם",
        "Ἀθῆναι",
        "naïve café",
        "東京の天気",
        "Łódź",
        "Issue #42 login",
        "Größe",
        "한국 여행",
        "getUserById",
        "snake_case_name",
        "Vannevar Bush",
        "μετρό",
    ],
)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_file_is_found_by_its_whole_name_in_any_script(indexed, name, form):
    assert likened(indexed, name, f"notes/{unicodedata.normalize(form, name)}.md") == WHOLE


@pytest.mark.parametrize(
    ("query", "name"), [("C", "C++"), ("C++", "C#"), ("NET", ".NET"), ("दान", "दिन"), ("42", "#421")]
)
def test_a_sign_or_a_mark_makes_another_name(indexed, query, name):
    words = sought(Query.parse(query, Filter()).units, indexed)[0]
    assert likeness(Named(1, "", f"{name}.md", "", is_part=False, header=""), words, indexed) == 0


@pytest.mark.parametrize(
    ("path", "is_part", "stem"),
    [
        ("C#.md", False, "C#"),
        ("Issue #42 login.md", False, "Issue #42 login"),
        ("mail.eml#lease.txt", True, "lease"),
        ("box/Issue #42.eml#C#.md", True, "C#"),
        ("a.zip#b.eml#c/lease.txt", True, "lease"),
        ("a/.gitignore", False, ".gitignore"),
        ("a\\b\\.NET.md", False, ".NET"),
    ],
)
def test_a_name_is_cut_at_a_hash_only_inside_another_file(path, is_part, stem):
    assert file_stem(path, is_part=is_part) == stem


def test_stop_words_are_left_out_of_names_unless_there_are_no_others(indexed):
    assert telling(indexed, "How to sail the boat") == telling(indexed, "sail boat")
    assert telling(indexed, "how_to_sail") == ["sail"]
    assert telling(indexed, "To be or not to be")
    assert telling(indexed, "It") == ["it"]
    assert telling(indexed, "John Doe") == ["john", "doe"]


def test_aliases_and_authors_are_names(indexed):
    title = with_aliases("As We May Think", ["Memex", "Vannevar Bush"])
    header = f"{title} › The desk"
    assert parse_aliases("As We May Think", header) == ["Memex", "Vannevar Bush"]
    assert parse_aliases("Report (2024)", "Report (2024) › Costs") == []
    assert parse_aliases("Report", "Report › Costs (2024)") == []
    assert with_aliases("Report", []) == "Report"
    for query in ("memex", "Vannevar Bush"):
        assert likened(indexed, query, "essay.md", title="As We May Think", header=header) == WHOLE


# ruff: noqa: RUF001 - letters of other alphabets are meant
SENTENCES = {
    "de": "Die {} stehen seit vielen Jahren dort, und niemand weiß mehr, wem sie gehören.",
    "fr": "Nous avons vu les {} hier soir, et personne ne savait ce qu'il fallait en faire.",
    "es": "Ayer vimos las {} otra vez, y nadie sabía qué hacer con ellas hasta el lunes.",
    "it": "Ieri abbiamo visto i {} e nessuno sapeva che cosa farne prima di lunedì.",
    "pt": "Ontem vimos os {} outra vez, e ninguém sabia o que fazer com eles até segunda-feira.",
    "nl": "Gisteren hebben wij de {} weer gezien, en niemand wist wat ermee moest gebeuren.",
    "sv": "I går såg vi {} igen, och ingen visste vad man skulle göra med dem före måndag.",
    "no": "I går så vi {} igjen, og ingen visste hva de skulle gjøre med dem før mandag kveld.",
    "da": "I går så vi {} igen, og ingen vidste, hvad man skulle gøre med dem inden mandag.",
    "fi": "Eilen näimme {} taas, eikä kukaan tiennyt, mitä niille pitäisi tehdä ennen maanantaita.",
    "ru": "Вчера мы снова видели {}, и никто не знал, что с ними делать до понедельника.",
    "pl": "Wczoraj znowu widzieliśmy {} i nikt nie wiedział, co z nimi zrobić do poniedziałku.",
    "tr": "Dün yine {} gördük ve pazartesi gününe kadar onlarla ne yapacağımızı kimse bilmiyordu.",
    "hu": "Tegnap újra láttuk a {}, és senki sem tudta, mit kellene velük csinálni hétfőig.",
    "cs": "Včera jsme znovu viděli {} a nikdo nevěděl, co s nimi máme do pondělí udělat.",
}
"""A sentence of each language, with room for a word."""

FORMS = [
    ("de", "Häuser", "Haus"),
    ("de", "Verträge", "Vertrag"),
    ("fr", "chevaux", "cheval"),
    ("fr", "journaux", "journal"),
    ("es", "ciudades", "ciudad"),
    ("es", "luces", "luz"),
    ("it", "gatti", "gatto"),
    ("it", "laghi", "lago"),
    ("pt", "animais", "animal"),
    ("pt", "corações", "coração"),
    ("nl", "huizen", "huis"),
    ("sv", "fakturorna", "faktura"),
    ("no", "fakturaene", "faktura"),
    ("da", "aftalerne", "aftale"),
    ("fi", "taloissa", "talo"),
    ("ru", "книги", "книга"),
    ("ru", "городах", "город"),
    ("pl", "książki", "książka"),
    ("tr", "kitaplar", "kitap"),
    ("hu", "házakat", "ház"),
    ("cs", "města", "město"),
]


@pytest.fixture
def notes(make_store, embedder):
    """A store, a service over it, and a function that adds notes by their paths."""

    def add(**texts):
        for path, text in texts.items():
            content = embed_draft(draft_note(text, None, ActiveModel(embedder)), embedder)
            with store.write() as tx:
                tx.documents.add(content, path, ())

    instruments = Instruments()
    with make_store() as store, ThreadPoolExecutor(1) as pool, closing(RecallMonitor(store, instruments)) as recall:
        yield store, SearchService(store, ActiveModel(embedder), pool, instruments, recall), add


def search(service, query, where=None, **modes):
    return service.search(Query.parse(query, where or Filter(), **({"vectors": False} | modes)), 10)


def found(service, query, where=None):
    return [passage.source_path for passage in search(service, query, where).results]


@pytest.mark.parametrize("language", SENTENCES)
def test_the_language_of_a_text_is_guessed(language):
    assert guessed([SENTENCES[language].format("")]) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Haus",
        "Rechnung 4711",
        "3.14159 2.71828 1.41421 1.73205 0.57721",
        "https://example.org/die/alten/haeuser/stehen/am/hafen.html",
        " ".join(f"{SENTENCES['de'].format('Boote')} {SENTENCES['fr'].format('bateaux')}" for _ in range(4)),
        " ".join([SENTENCES["ru"].format("лодки")] * 3 + ["The boats are in the harbour, and nobody is on deck."] * 5),
    ],
)
def test_of_a_short_text_or_one_in_several_languages_none_is_guessed(text):
    assert guessed([text]) is None


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("来週月曜日の定例会議は第二会議室で午前十時開始。", "ja"),
        ("玄関の呼び鈴は故障中です。裏口へお回りください。", "ja"),
        ("ゲートウェイの再起動ボタンは本体の背面にあります。", "ja"),
        ("大阪事務所の契約更新日は2027年4月30日です。家賃は月28万円。", "ja"),
        ("次の設計レビューは12月8日の15時、会議室Bで行う。資料は三日前までに配る。", "ja"),
        ("下周一的例会改在第二会议室，上午十点开始。", "zh"),
        ("下周一10点的例会改在3楼第二会议室，请大家准时参加。", "zh"),
    ],
)
def test_japanese_is_told_from_chinese_by_its_kana(text, language):
    assert guessed([text]) == language


def test_code_and_addresses_in_a_text_do_not_hide_its_language():
    code = "`for name in names: print(name)` https://example.org/a/list/of/the/names "
    assert guessed([code + SENTENCES["de"].format("Boote") + code]) == "de"
    assert guessed(["```\nthe = {'and': 'of the'}\nreturn the\n```\n" + SENTENCES["it"].format("laghi")]) == "it"


@pytest.mark.parametrize(("language", "many", "one"), FORMS)
def test_a_word_finds_its_other_forms_in_both_directions(notes, language, many, one):
    _, service, add = notes
    add(
        many=SENTENCES[language].format(many),
        one=SENTENCES[language].format(one),
        english="The boats are in the harbour, and nobody is on deck before Monday.",
    )
    for query, first, second in ((one, "one", "many"), (many, "many", "one")):
        answer = search(service, query)
        assert [passage.source_path for passage in answer.results] == [first, second]
        marked = [passage.text[start:end] for passage in answer.results for start, end in passage.highlights]
        assert marked == ([one, many] if query == one else [many, one])
        assert not answer.unknown
        assert not answer.weak


def test_a_german_note_is_found_among_english_ones_and_english_words_have_no_german_stems(notes):
    _, service, add = notes
    add(
        picture="We hung the picture above the door, and the old man rested there until the evening came.",
        hunger=SENTENCES["de"].format("Hunger und Durst, die alten Gärten"),
        garden="The garden behind the house is where the children rest after school.",
    )
    assert found(service, "Garten") == ["hunger"]
    assert found(service, "hunger") == ["hunger"]
    assert found(service, "pictures") == ["picture"]


def test_a_note_without_a_known_language_is_found_by_its_words_as_they_are(notes):
    _, service, add = notes
    add(short="Häuser", long=SENTENCES["de"].format("Häuser"))
    assert found(service, "Häuser") == ["short", "long"]
    assert found(service, "Haus") == ["long"]


def test_quotes_and_stars_mean_the_word_as_it_is(notes):
    _, service, add = notes
    add(many=SENTENCES["fr"].format("chevaux"), one=SENTENCES["fr"].format("cheval"))
    assert found(service, '"chevaux"') == ["many"]
    assert found(service, "cheval*") == ["one"]
    [passage] = search(service, '"chevaux"').results
    assert [passage.text[start:end] for start, end in passage.highlights] == ["chevaux"]


def test_the_language_is_a_filter_and_follows_the_text(notes, embedder):
    store, service, add = notes
    add(german=SENTENCES["de"].format("Boote"), french=SENTENCES["fr"].format("bateaux"), short="Boote")
    assert found(service, "Boot", Filter(lang="de")) == ["german"]
    assert found(service, "Boot", Filter(lang="fr")) == []
    with store.read() as tx:
        listed = {each.source_path: each for each in tx.documents.page(Filter(), sort="id", limit=9, cursor=None)}
        assert {path: each.language for path, each in listed.items()} == {
            "german": "de",
            "french": "fr",
            "short": None,
        }
        assert tx.documents.count(Filter(lang="fr")) == 1
        assert tx.counts().languages == {"de": 1, "fr": 1}
        assert tx.index.languages == ["de", "fr"]
    changed = embed_draft(draft_note(SENTENCES["nl"].format("boten"), None, ActiveModel(embedder)), embedder)
    with store.write() as tx:
        tx.documents.replace(listed["german"].id, changed)
        assert tx.documents.get(listed["german"].id).language == "nl"
    assert found(service, "boot", Filter(lang="nl")) == ["german"]
    assert found(service, "boot", Filter(lang="de")) == []
    assert found(service, "Boote") == ["short"]


def test_an_emoji_is_a_word_and_marked_where_it_stands(notes):
    _, service, add = notes
    add(
        whale="Container 🐳 started in the harbour",
        flag="A ferry to 🇳🇴 and back, in any weather",
        thumb="Done 👍🏽 for today",
        none="Nothing of that kind",
    )
    for query, path, sign in (
        ("🐳", "whale", "🐳"),
        ("🇳🇴", "flag", "🇳🇴"),
        ("👍", "thumb", "👍"),
        ("ferry 🇳🇴", "flag", "🇳🇴"),
    ):
        [passage] = search(service, query).results
        assert passage.source_path == path
        assert sign in [passage.text[start:end] for start, end in passage.highlights]
    assert found(service, "🐙") == []


def test_a_word_in_chinese_characters_is_there_before_one_that_only_has_its_letters(notes):
    _, service, add = notes
    add(tokyo="東京都の展望室は四十五階にあります。", kyoto="京都の展望室は駅の上にあります。")
    for query in ("京都", "展望室 京都", "京都 展望室"):
        assert found(service, query)[0] == "kyoto"
        assert search(service, query, vectors=True).results[0].source_path == "kyoto"
    assert found(service, "東京都")[0] == "tokyo"


class Counted(FtsTokenizer):
    """Counts the calls."""

    def __init__(self):
        super().__init__(apsw.Connection(":memory:"))
        inner, self.calls = self._tokenize, 0

        def tokenize(*arguments, **options):
            self.calls += 1
            return inner(*arguments, **options)

        self._tokenize = tokenize


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Die Häuser im Łódźer Hafen, ﬁnden getUserById und die Größe von 1,872.00 m²"),
        ("ru", "Книги лежат в гавани"),
        ("fr", "Les chevaux 🐳 d'œuvre"),
        (None, "plain words of the harbour"),
        ("de", ""),
    ],
)
def test_the_words_of_a_text_are_cut_in_one_call(language, text):
    counted = Counted()
    found = list(Analyzer(counted).variants(text, language))
    assert counted.calls <= 1
    written, _ = aligned(text)
    each = [*variants_in(written), *stems_in(written, language)]
    assert [stem for _, _, stem in found] == [stem for variant in each for stem in counted.tokens(variant.text)]


def test_without_vectors_half_of_the_words_are_enough_for_an_answer(filled):
    _, service, add = filled
    add({"a.md": ("Ferry", "The ferry leaves at six."), "b.md": ("Soup", "The soup needs salt.")})
    assert service.search(Query.parse("ferry zeppelin airship mast", Filter(), vectors=False), 5).weak
    assert not service.search(Query.parse("ferry leaves", Filter(), vectors=False), 5).weak


def test_a_question_in_another_language_is_not_ranked_by_its_small_words(filled):
    _, service, add = filled
    add(
        {
            "die.md": ("Tools", "The die of the press is worn; die makers want a week."),
            "vet.md": ("Cat", "The veterinarian vaccinated our cat in March."),
        }
    )
    question = "Wann wurde die Katze vom Tierarzt geimpft?"
    by_meaning = service.search(Query.parse(question, Filter(), full_text=False), 2).results
    assert paths(service, question) == [passage.source_path for passage in by_meaning]
    assert paths(service, "die of the press")[0] == "die.md"


def test_other_languages_are_named_when_the_rarest_word_is_nowhere(filled):
    _, service, add = filled
    add(
        {
            "lease.md": ("Wohnung", "Der Mietvertrag der Wohnung endet mit einer Frist von drei Monaten."),
            "boat.md": ("Boat", "The boat lies in the harbour, and the harbour master has the key of the boat."),
        }
    )
    with_unknown = service.search(Query.parse("who has the key of the boat in the harbour, Wiktoria", Filter()), 5)
    assert (with_unknown.weak, with_unknown.other_languages) == (False, ["de"])
    assert service.search(Query.parse("who has the key of the boat in the harbour", Filter()), 5).other_languages == []
