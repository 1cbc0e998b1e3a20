"""Searches over vectors in memory: exact ones, and codes of real vectors against them; and vectors in two dimensions."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from kb.index.vectors.coded_index import CodedIndex, StoredIndex, VectorCache
from kb.index.vectors.flat_index import FlatIndex
from kb.index.vectors.projection import evened, project
from kb.index.vectors.quantize import Quantizer
from kb.index.vectors.scores import ScoredChunks
from kb.index.vectors.shared_rows import Rows
from tests.support.models import embed_file
from tests.support.rare_cases import mostly_rare

TURNS, QUERIES = 1200, 100
SIZE = 30_000
BLOCK = 2_000
"""So many are made at once: all of them at once would take four times their memory."""
SPACED = 3
"""Ids are so far apart: a row is not an id."""


class Reader:
    """Vectors that are stored in an array."""

    def __init__(self, ids, vectors):
        self.ids, self._vectors, self.read = ids, vectors, 0

    def vectors(self, ids):
        self.read += ids.size
        return self._vectors[np.searchsorted(self.ids, ids)]

    def nearest(self, query, limit, ids):
        ids, vectors = (self.ids, self._vectors) if ids is None else (ids, self.vectors(ids))
        return ScoredChunks(ids, np.vecdot(vectors, query).astype(np.float64)).best(limit)


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def random_units(count, dimensions, seed=0):
    return unit(np.random.default_rng(seed).normal(size=(count, dimensions)))


def coded(ids, vectors):
    quantizer = Quantizer(vectors.mean(0))
    codes = [quantizer.encode(ids[block], vectors[block]) for block in blocks(ids.size)]
    return CodedIndex.of(Rows.of(ids, np.asfortranarray(np.concatenate(codes))), quantizer)


def blocks(size):
    return [slice(start, start + BLOCK) for start in range(0, size, BLOCK)]


def best(found, limit=10):
    return found.best(limit).ids.tolist()


@pytest.fixture(scope="module")
def embedded(model_files, model_cache, test_data):
    """Real vectors: turns of conversations, and questions about them. Kept, as they take the model some seconds."""
    kept = model_cache / "turns.npz"
    with FileLock(model_cache / "lock"):
        if not kept.exists():
            embed_file(model_files, test_data / "locomo_turns", kept, turns=TURNS, queries=QUERIES)
    with np.load(kept) as file:
        return file["turns"], file["queries"]


@pytest.fixture(scope="module")
def many(embedded):
    """As many as a large database has: each the mean of two real ones, at least half of it the first, and some noise."""
    turns, queries = embedded
    random = np.random.default_rng(1)
    first, second = random.integers(0, len(turns), (2, SIZE))
    share = random.uniform(0.5, 0.95, (SIZE, 1)).astype(np.float32)
    vectors = random.standard_normal((SIZE, turns.shape[1]), dtype=np.float32)
    for block in blocks(SIZE):
        near = share[block] * turns[first[block]] + (1 - share[block]) * turns[second[block]]
        vectors[block] = unit(near + 0.01 * vectors[block])
    ids = np.arange(1, SIZE + 1) * SPACED
    reader = Reader(ids, vectors)
    return coded(ids, vectors).snapshot(reader), reader, queries


@pytest.mark.slow
def test_codes_of_real_vectors_find_what_every_vector_compared_finds(many):
    snapshot, reader, queries = many
    recall = [np.isin(best(reader.nearest(query, 100, None)), best(snapshot.nearest(query, 100))) for query in queries]
    assert np.mean(recall) >= 0.99
    reader.read = 0
    snapshot.nearest(queries[0], 100)
    assert reader.read <= 350


@pytest.mark.slow
def test_scores_are_those_of_the_vectors_whether_read_now_or_before(many):
    snapshot, reader, queries = many
    for query in queries[:10]:
        found = snapshot.nearest(query, 100)
        assert (found.scores == np.vecdot(reader.vectors(found.ids), query)).all()
        reader.read = 0
        assert (found.scores == snapshot.cosines(query, found.ids)).all()
        assert not reader.read, "what was read a moment ago is read again"


def test_a_vector_gives_its_place_to_another():
    ids, vectors = np.arange(50), random_units(50, 16)
    cache = VectorCache(16, 20 * 4 * 16)
    cache.put(ids[:20], vectors[:20])
    cache.put(ids[20:], vectors[20:])
    found, are_there = cache.get(ids)
    assert np.count_nonzero(are_there) == 20
    assert (found[are_there] == vectors[are_there]).all()
    assert cache.size == 20 * 4 * 16


def test_a_chunk_without_a_vector_is_asked_for_again():
    cache = VectorCache(16, 1 << 20)
    cache.put(np.array([7]), np.zeros((1, 16), np.float32))
    assert not cache.get(np.array([7]))[1].any()
    assert cache.size == 0


def test_threads_get_the_vectors_of_their_chunks_while_others_put_theirs_in_the_same_places():
    vectors = random_units(4000, 384)
    cache = VectorCache(384, 100 * 4 * 384)

    def ask(seed):
        random, hits = np.random.default_rng(seed), 0
        for _ in range(300):
            ids = np.unique(random.integers(0, 4000, 100))
            found, are_there = cache.get(ids)
            assert (found[are_there] == vectors[ids[are_there]]).all()
            cache.put(ids[~are_there], vectors[ids[~are_there]])
            hits += np.count_nonzero(are_there)
        return hits

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(4)))


@pytest.mark.slow
def test_a_filter_of_any_selectivity_never_comes_back_short_and_finds_the_same(many):
    snapshot, reader, queries = many
    random, overlaps = np.random.default_rng(2), []
    for query in np.tile(queries, (3, 1)):
        mask = random.random(SIZE) < np.exp(random.uniform(np.log(0.001), np.log(0.5)))
        ids = snapshot.ids[mask]
        found = snapshot.nearest(query, 100, ids)
        assert found.ids.size == min(100, ids.size)
        assert np.isin(found.ids, ids).all()
        assert best(snapshot.nearest(query, 100, mask), 100) == found.ids.tolist()
        overlaps.append(np.isin(best(reader.nearest(query, 100, ids)), best(found)).mean())
    assert np.mean(overlaps) >= 0.99


@pytest.mark.parametrize("make", [FlatIndex.of, coded])
@pytest.mark.parametrize("among", [np.empty(0, np.int64), np.zeros(500, np.bool_)])
def test_among_none_nothing_is_found(make, among):
    ids, vectors = np.arange(500), random_units(500, 16)
    snapshot = make(ids, vectors).snapshot(Reader(ids, vectors))
    assert snapshot.nearest(vectors[0], 10, among).ids.size == 0
    assert snapshot.nearest(vectors[0], 10, among, exact=True).ids.size == 0


def test_few_vectors_are_compared_exactly_whatever_the_filter():
    ids, vectors = np.arange(3000) * SPACED, random_units(3000, 384)
    snapshot, reader = FlatIndex.of(ids, vectors), Reader(ids, vectors)
    for share in (0.001, 0.1, 0.6, 1.0):
        mask = np.random.default_rng(3).random(3000) < share
        expected = reader.nearest(vectors[7], 20, ids[mask])
        for among in (mask, ids[mask]):
            found = snapshot.nearest(vectors[7], 20, among)
            assert (found.ids == expected.ids).all()
            assert (found.scores == expected.scores).all()


@pytest.mark.parametrize("dimensions", mostly_rare([8, 63, 64, 100, 384, 768], 2))
def test_vectors_of_any_length_are_coded(dimensions):
    ids, vectors = np.arange(1, 2001), random_units(2000, dimensions)
    quantizer = Quantizer(vectors.mean(0))
    codes, query = quantizer.encode(ids, vectors), vectors[3]
    signs, wanted = vectors > quantizer.mean, query > quantizer.mean
    assert (quantizer.distances(query, np.asfortranarray(codes)) == (signs != wanted).sum(1)).all()
    centred = vectors - quantizer.mean
    deviations = np.sqrt((centred**2).mean(1, keepdims=True))
    meant = np.where(signs, 1, -1) * np.where(np.abs(centred) > 0.98 * deviations, 1.5104, 0.4528)
    step = (query.max() - query.min()) / 63
    rounded = query.min() + np.rint((query - query.min()) / step) * step
    rough, fine = 2 * signs @ rounded - query.sum(), meant @ query
    for estimates, values, product in (
        (quantizer.estimates, np.where(signs, 1, -1), rough),
        (quantizer.refined, meant, fine),
    ):
        expected = (centred**2).sum(1) / (centred * values).sum(1) * product
        assert estimates(query, codes, ids - 1) == pytest.approx(expected, rel=1e-3, abs=1e-4)
    assert 4 in best(coded(ids, vectors).snapshot(Reader(ids, vectors)).nearest(query, 10), 1)


def test_the_sizes_make_an_estimate_finer():
    ids, vectors = np.arange(2000), random_units(2000, 384)
    quantizer = Quantizer(vectors.mean(0))
    codes, query = quantizer.encode(ids, vectors), random_units(1, 384, seed=5)[0]
    cosines = (vectors - quantizer.mean) @ query
    rough, fine = (estimates(query, codes, ids) - cosines for estimates in (quantizer.estimates, quantizer.refined))
    assert np.abs(fine).mean() < 0.55 * np.abs(rough).mean()


def test_estimates_for_a_long_list_take_little_memory():
    quantizer, query = Quantizer(np.zeros(384, np.float32)), random_units(1, 384)[0]
    codes = np.asfortranarray(np.resize(quantizer.encode(np.arange(1000), random_units(1000, 384)), (60_000, 13)))
    for estimates in quantizer.estimates, quantizer.refined:
        tracemalloc.start()
        found = estimates(query, codes, np.arange(60_000))
        assert tracemalloc.get_traced_memory()[1] < 4 * 60_000 * 104
        tracemalloc.stop()
        assert (found == np.resize(found[:1000], 60_000)).all()


def test_a_chunk_without_a_vector_is_coded():
    quantizer = Quantizer(np.zeros(100, np.float32))
    codes = quantizer.encode(np.array([1]), np.zeros((1, 100), np.float32))
    query = random_units(1, 100)[0]
    assert [estimates(query, codes, np.array([0])) for estimates in (quantizer.estimates, quantizer.refined)] == [0, 0]


def test_each_bit_of_a_code_and_its_id_are_checked():
    ids, vectors = np.arange(1, 6), random_units(5, 100)
    quantizer = Quantizer(vectors.mean(0))
    codes = quantizer.encode(ids, vectors)
    assert quantizer.intact(ids, codes).all()
    for bit in range(64 * codes.shape[1]):
        flipped = codes.copy()
        flipped[2, bit // 64] ^= np.uint64(1 << bit % 64)
        assert quantizer.intact(ids, flipped).tolist() == [True, True, False, True, True], bit
    assert not quantizer.intact(ids[::-1][[0, 1, 3, 4]], codes[[0, 1, 3, 4]]).any()


CHANGES = st.lists(st.tuples(st.integers(0, 40), st.floats(0, 1), st.integers(0, 9)), min_size=1, max_size=12)


@pytest.mark.parametrize(
    "make", [FlatIndex.of, coded, lambda ids, _: StoredIndex(Rows.of(ids, np.empty((ids.size, 0))))]
)
@given(changes=CHANGES)
def test_an_index_follows_each_change_and_the_ones_before_stay_as_they_were(make, changes):
    vectors = random_units(4000, 16)
    reader = Reader(np.arange(4000), vectors)
    alive, last = set(range(1200)), 1200
    moments = [(make(np.arange(last), vectors[:last]), frozenset(alive))]
    for added, share, seed in changes:
        random = np.random.default_rng(seed)
        removed = {each for each in alive if random.random() < share}
        new = [(chunk_id, vectors[chunk_id]) for chunk_id in range(last, last + added)]
        moments.append((moments[-1][0].changed(new, removed), alive := frozenset(alive - removed | dict(new).keys())))
        last += added
    for index, chunks in moments:
        snapshot, query = index.snapshot(reader), vectors[17]
        ids = np.array(sorted(chunks), np.int64)
        assert index.count == ids.size
        expected = best(reader.nearest(query, 5, ids), 5)
        everything = snapshot.nearest(query, 4000, ids)
        assert everything.ids.tolist() == ids.tolist()
        assert everything.scores == pytest.approx(np.vecdot(vectors[ids], query))
        if not isinstance(index, StoredIndex):  # what that one finds is up to the database
            assert best(snapshot.nearest(query, 200), 5) == expected


def test_vectors_that_are_compared_are_read_in_blocks():
    ids, vectors = np.arange(20_000), random_units(20_000, 8)

    class Blocks(Reader):
        largest = 0

        def vectors(self, ids):
            self.largest = max(self.largest, ids.size)
            return super().vectors(ids)

    reader = Blocks(ids, vectors)
    scores = coded(ids, vectors).snapshot(reader).cosines(vectors[3], ids)
    assert (scores == np.vecdot(vectors, vectors[3])).all()
    assert reader.largest <= 8192


def scattered(count, dimensions=64, seed=1):
    random = np.random.default_rng(seed)
    spread = np.concatenate([[9, 5], np.ones(dimensions - 2)])
    axes = np.linalg.qr(random.normal(size=(dimensions, dimensions)))[0]
    return (random.normal(size=(count, dimensions)) * spread @ axes + 3).astype(np.float32)


def test_the_axes_are_those_along_which_vectors_differ_most():
    vectors = scattered(400)
    centred = vectors - vectors.mean(axis=0)
    _, _, best = np.linalg.svd(centred, full_matrices=False)
    for column, expected in zip(project(vectors.copy()).T, (centred @ best[:2].T).T, strict=True):
        assert abs(np.corrcoef(column, expected)[0, 1]) > 0.999


def test_the_same_vectors_lie_at_the_same_places_and_fill_the_plane():
    vectors = scattered(300)
    places = project(vectors.copy())
    assert (places == project(vectors.copy())).all()
    assert places.min(axis=0) == pytest.approx([-1, -1])
    assert places.max(axis=0) == pytest.approx([1, 1])


def test_many_like_vectors_leave_room_for_the_others():
    alike = scattered(60) / 40 + np.r_[np.full(1, 20), np.zeros(63)].astype(np.float32)
    plain = project(np.concatenate([scattered(30, seed=2), alike]))
    places = evened(plain)
    assert np.ptp(places[30:], axis=0).min() > 3 * np.ptp(plain[30:], axis=0).min()
    for axis in range(2):
        assert (np.diff(places[np.argsort(plain[:, axis]), axis]) > 0).all(), "the order along an axis stays"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_vectors_have_places_too(count):
    assert np.isfinite(evened(project(scattered(count)))).all()


def test_vectors_that_are_all_the_same_lie_at_one_place():
    places = evened(project(np.ones((50, 16), np.float32)))
    assert np.isfinite(places).all()
    assert len(np.unique(places.round(3), axis=0)) == 1
