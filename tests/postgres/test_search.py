"""A search in PostgreSQL finds the same as in SQLite, with the same scores."""

from __future__ import annotations

import contextlib
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from kb.embed.protocol import ModelSpec
from kb.index.words.language import guessed
from kb.index.words.stems import stemmed
from kb.search.query import Query
from kb.search.recall_monitor import RecallMonitor
from kb.search.service import SearchService
from kb.store.postgres.store import PostgresTransaction
from kb.store.rows import Author, ChunkPosition, Content, Filter, NewChunk
from kb.telemetry.instruments import Instruments
from tests.support import documents, stores

pytestmark = pytest.mark.postgres
DIMENSIONS = 16
NO_MODEL = SimpleNamespace(
    current=SimpleNamespace(spec=ModelSpec("none", "", "fp32", documents.DIMENSIONS, window=256))
)
SYLLABLES = ("ka", "lo", "mi", "run", "ning", "tes", "ted", "Zürich", "don't", "e-mail", "教程", "編程")
LONG = "e-mail e-mail e-mail e-mail e-mail"
QUERIES = [
    ["kalo"],
    ["kalo", "mirun", "tested"],
    ["kalo", "kalo"],
    ["don't"],
    ["e-mail", "lomi"],
    ["教程", "編"],
    ["ka*"],
    ["run*", "mi"],
    ["e-mail*"],
    ["zurich"],
    ["nowhere", "kalo"],
    ["zürich", "zuerich", "kalo"],
    ["zürich", "zuerich", "ka*"],
    ["zürich", "zuerich", LONG],
    ["lomi", "tesloka", "runningted", *stemmed(["lomi", "tesloka", "runningted"], ["de", "fr"])],
    [*stemmed(["zürich"], ["de", "es"]), "kalo"],
]
COUNTED = ["kalo", "nowhere", "zürich", "zuerich", "e-mail", "ka*", LONG, "+", "tested"]
"""Words whose occurrences are counted: some stand nowhere, some have very many tokens."""
FILTERS = [
    Filter(),
    Filter(tags=("tenth",)),
    Filter(tag_not=("tenth",)),
    Filter(source_prefix="/a/"),
    Filter(holding=("kalo",), lacking=("don't",)),
    Filter(tags=("no such tag",)),
    Filter(lang="es"),
    Filter(by="ada", authors_not=("codex",)),
]


def filled(store, count=300):
    """Writes the same made-up documents into any store."""
    chosen = random.Random(7)
    vectors = np.random.default_rng(7)
    for number in range(count):
        texts = [words(chosen, chosen.randint(1, 40)) for _ in range(chosen.randint(1, 4))]
        header = words(chosen, 2)
        chunks = [NewChunk(text, header, ChunkPosition(1, 1, 0, len(text))) for text in texts]
        made = vectors.normal(size=(len(texts), DIMENSIONS)).astype(np.float32)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        tags = [tag for tag, every in (("tenth", 10), ("half", 2), ("hundredth", 100)) if number % every == 0]
        path = f"/{'ab'[number % 2]}/{number}"
        language = ("de", "fr", "en", None)[number % 4]
        one = Content("note", header, str(number), chunks, made, language=language)
        other = replace(one, content_hash=f"{number} anew", chunks=chunks[:1], vectors=made[:1], language="es")
        with store.write() as tx:
            author = Author(("Ada", "Bo", None)[number % 3], ("kb/1 codex (mcp)", None)[number % 2])
            document = tx.documents.add(one, path, tags, author=author)
            if number % 7 == 3:
                tx.documents.delete(document)
            elif number % 7 == 5:
                tx.documents.replace(document, other)
    return store


def words(chosen, count):
    return " ".join("".join(chosen.choices(SYLLABLES, k=chosen.randint(1, 2))) for _ in range(count))


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same documents in both stores. Their chunks have different ids, but the same order."""
    folder = tmp_path_factory.mktemp("both")
    with stores.sqlite(folder, dimensions=DIMENSIONS) as one, stores.postgres(folder, dimensions=DIMENSIONS) as other:
        yield filled(one), filled(other)


def places(tx, ids):
    """The texts of chunks, without their ids."""
    return [(hit.title, hit.source_path, hit.index) for hit in tx.index.hits(ids.tolist())]


def each(both, act):
    """What both stores answer."""
    answers = []
    for store in both:
        with store.read() as tx:
            answers.append(act(tx))
    return answers


@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("query", QUERIES)
def test_full_text_finds_the_same_with_the_same_scores_to_the_last_bit(both, query, where):
    def best(tx):
        found = tx.index.select(where).full_text(query, 20)
        return places(tx, found.ids), found.scores.tolist()

    one, other = each(both, best)
    assert other == one


@pytest.mark.parametrize("query", QUERIES)
def test_any_chunk_has_the_same_score(both, query):
    def scores(tx):
        ids = np.array(
            [
                chunk.id
                for document in tx.documents.page(Filter(), sort="id", limit=400, cursor=None)
                for chunk in tx.documents.chunks(document.id)
            ]
        )
        return np.nan_to_num(tx.index.select(Filter()).full_text_scores(query, ids), nan=-1).tolist()

    one, other = each(both, scores)
    assert other == one


@pytest.mark.parametrize("chosen", [(), (0, 1, 2), (5, 40, 99, 100)])
def test_words_occur_as_often_in_any_chunks_whether_they_stand_there_or_elsewhere(both, chosen):
    def counts(tx):
        every = tx.index.select(Filter()).chunk_ids()
        found = tx.index.select(Filter()).occurrences(COUNTED, every[[*chosen]])
        return [one and (one.idf, one.counts.tolist(), one.frequency, one.of) for one in found]

    one, other = each(both, counts)
    assert other == one
    assert one[0]
    assert one[1] is None


@pytest.mark.parametrize("where", [*FILTERS, Filter(tags=("hundredth",)), Filter(tags=("half",))])
@pytest.mark.parametrize("is_indexed", [False, True])
def test_the_nearest_vectors_are_the_same_and_never_too_few(both, where, is_indexed, monkeypatch):
    if is_indexed:
        monkeypatch.setattr("kb.store.postgres.vectors.EXACT", -1)
        monkeypatch.setattr("kb.store.postgres.vectors.CROSSING", -1)
    vector = np.ones(DIMENSIONS, np.float32) / 4

    def nearest(tx):
        if is_indexed and isinstance(tx, PostgresTransaction):
            tx.connection.execute("SET LOCAL enable_seqscan = off")
        found = tx.index.select(where).nearest(vector, 10)
        return places(tx, found.ids), found.scores.tolist()

    one, other = each(both, nearest)
    assert other == one


@pytest.mark.parametrize("query", [["kalo", "mirun"], ["tested", "runmi"]])
def test_what_stands_beside_chunks_lends_the_same(both, query):
    vector = np.ones(DIMENSIONS, np.float32) / 4

    def lent(tx):
        selection = tx.index.select(Filter())
        context = selection.in_context(query, vector, selection.full_text(query, 30).ids)
        return places(tx, context.ids), np.nan_to_num(context.fts, nan=-1).tolist(), context.vec.tolist()

    (one, fts, vec), (other, other_fts, other_vec) = each(both, lent)
    assert (other, other_fts) == (one, fts)
    np.testing.assert_allclose(other_vec, vec, rtol=1e-6)


def test_misspelled_words_are_told_alike(both):
    one, other = each(both, lambda tx: tx.index.select(Filter()).unknown(["zurihc", "nowhere", "testde", "kalo"]))
    assert other == one


NAMES = {
    "meeting": "昨日、田中さんは会議に来ませんでした。誰も理由を知りませんでした。",
    "doctor": "午後、佐藤先生に会いました。病院はとても混んでいました。",
    "journey": "Вчера мы снова были в Москве, и никто не знал, что делать до понедельника.",
    "english": "Nobody met Tanaka yesterday.",
}


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("Tanaka", ["english", "meeting"]),
        ("田中さん", ["meeting"]),
        ("田中", ["meeting"]),
        ("Tanaka さん", ["meeting"]),
        ("Satō", ["doctor"]),
        ("佐藤先生", ["doctor"]),
        ("Moskva", ["journey"]),
    ],
)
def test_a_name_with_its_title_is_found_in_both_scripts(named, typed, found):
    for search in named:
        assert search(typed)[: len(found)] == found


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """A search by words in each store, which returns the names of what it finds."""
    folder = tmp_path_factory.mktemp("named")
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(searching(make(folder, dimensions=documents.DIMENSIONS)))
            for make in stores.STORES.values()
        ]


@contextlib.contextmanager
def searching(opened):
    instruments = Instruments()
    with (
        opened as store,
        ThreadPoolExecutor(1) as pool,
        contextlib.closing(RecallMonitor(store, instruments)) as recall,
    ):
        with store.write() as tx:
            for name, text in NAMES.items():
                tx.documents.add(replace(documents.content(text, title=""), language=guessed([text])), name, ())
        service = SearchService(store, NO_MODEL, pool, instruments, recall)
        yield lambda typed: [
            passage.source_path for passage in service.search(Query.parse(typed, Filter(), vectors=False), 9).results
        ]
