"""Behaviour of every store, tested with each backend."""

from __future__ import annotations

import threading
import time
import tracemalloc
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from kb.api.rights import Limit
from kb.documents.excerpts import Excerpt, excerpt_of_characters
from kb.documents.write_document import write_document
from kb.search.query import Query
from kb.search.retrieve import Retriever
from kb.store.row_mapping import cursor_after
from kb.store.rows import ChunkPosition, Content, Extent, Filter, NewChunk, NewJob
from kb.telemetry.instruments import Instruments

DIMENSIONS = 8
ALL = Filter()


@pytest.fixture
def store(make_store):
    with make_store(dimensions=DIMENSIONS) as opened:
        yield opened


def unit(seed):
    vector = np.random.default_rng(seed).normal(size=DIMENSIONS).astype(np.float32)
    return vector / np.linalg.norm(vector)


def content(*texts, doc_type="note", title="A title", seed=0):
    start, chunks = 0, []
    for text in texts:
        chunks.append(NewChunk(text, title, ChunkPosition(1, 1, start, start + len(text), ("Part", "One"), 7)))
        start += len(text)
    vectors = np.stack([unit(seed + number) for number in range(len(texts))])
    return Content(doc_type, title, f"hash of {texts}", chunks, vectors)


def add(store, *texts, tags=(), source_path=None, **options):
    with store.write() as tx:
        return tx.documents.add(content(*texts, **options), source_path, tags)


def look(tx, words=(), vector=None, where=ALL, limit=100):
    vectors = None if vector is None else Future()
    if vectors:
        vectors.set_result(vector)
    return next(Retriever(tx.index, Query(None, words, where), vectors, Instruments()).rankings(limit)).candidates


def find(store, *arguments, **options):
    with store.read() as tx:
        return look(tx, *arguments, **options)


def ids_of(store, document_id):
    with store.read() as tx:
        return [chunk.id for chunk in tx.documents.chunks(document_id)]


def test_of_many_tags_a_document_must_carry_every_one(store):
    tags = [f"tag{number}" for number in range(100)]
    every = add(store, "an apple", tags=tags)
    for lacking in (0, 7, 8, 99):
        add(store, f"an apple without {lacking}", tags=tags[:lacking] + tags[lacking + 1 :])
    for where in (Filter(tuple(tags)), Filter((*tags[:9], *tags[:9], *tags))):
        with store.read() as tx:
            assert [each.id for each in tx.documents.page(where, sort="id", limit=9, cursor=None)] == [every]
    assert len(find(store, ("apple",), None, Filter(tuple(tags[:9]))).ids) == 2


def test_a_document_comes_back_as_it_was_written(store):
    document_id = add(store, "one\x00 ", "two 🐘", tags=["b", "a"], source_path="/x")
    with store.read() as tx:
        document, chunks = tx.documents.get(document_id), tx.documents.chunks(document_id)
    assert (document.title, document.source_path, document.tags) == ("A title", "/x", ("a", "b"))
    assert document.created_at.endswith("Z")
    assert document.updated_at is None
    assert [chunk.text for chunk in chunks] == ["one\x00 ", "two 🐘"]
    assert chunks[1].place == ChunkPosition(1, 1, 5, 10, ("Part", "One"), 7)


def test_each_leg_finds_its_best_and_each_candidate_has_both_scores(store):
    first = add(store, "apple apple", "pear", seed=1)
    second = add(store, "cherry", seed=10)
    found = find(store, ("apple",), unit(10), limit=1)
    [apple, _], [cherry] = ids_of(store, first), ids_of(store, second)
    assert found.ids.tolist() == [apple, cherry]
    assert found.fts[0] > 0
    assert np.isnan(found.fts[1])
    np.testing.assert_allclose(found.vec, [unit(1) @ unit(10), 1.0], rtol=1e-6)


def test_full_text_finds_as_many_as_asked_for_and_scores_any_chunk(store):
    document_id = add(store, "apple", "apple apple", "pear", 'an "apple" a day')
    ids = np.array(ids_of(store, document_id))
    with store.read() as tx:
        selection = tx.index.select(ALL)
        every = selection.full_text(["apple"], 10)
        assert every.ids.tolist() == ids[[0, 1, 3]].tolist()
        assert selection.full_text(["apple"], 1).ids.tolist() == [every.ids[np.argmax(every.scores)]]
        assert selection.full_text_scores(["apple"], ids)[[0, 1, 3]].tolist() == every.scores.tolist()
        assert np.isnan(selection.full_text_scores(["apple"], ids)[2])
        assert selection.full_text([], 10).ids.size == selection.full_text(['"', "\0"], 10).ids.size == 0


def test_an_analyzer_tells_words_apart_as_the_full_text_does(store):
    with store.read() as tx:
        stems = list(tx.index.analyzer.stems("🐘 Cafés sailing: naïve"))
    assert stems == [(2, 7, "cafe"), (8, 15, "sail"), (17, 22, "naiv")]


def test_an_analyzer_parts_what_has_no_spaces_into_pairs_of_letters(store):
    with store.read() as tx:
        analyzer = tx.index.analyzer
        assert list(analyzer.stems("🐘Python教程 sailing")) == [
            (1, 7, "python"),
            (7, 9, "教程"),
            (8, 9, "程"),
            (10, 17, "sail"),
        ]
        assert [analyzer.stems_of(word) for word in ("教程", "程", "Python教程")] == [
            ["教程"],
            ["程"],
            ["python", "教程"],
        ]


def test_what_may_not_be_seen_is_not_told_by_its_spelling(store):
    add(store, "zeppelin", tags=["hidden"])
    add(store, "an apple", tags=["seen"])
    with store.read() as tx:
        everything, seen = (tx.index.select(Filter(limit=limit)) for limit in (None, Limit(tags=("seen",))))
        assert everything.unknown(["zepelin", "zeppelin"]) == {"zepelin": ["zeppelin"]}
        assert seen.unknown(["zepelin", "zeppelin"]) == {"zepelin": [], "zeppelin": []}


def test_a_leg_that_does_not_run_scores_nothing(store):
    add(store, "apple")
    assert np.isnan(find(store, ("apple",)).vec).all()
    assert np.isnan(find(store, (), unit(3)).fts).all()
    assert find(store).ids.size == 0


@pytest.mark.requirement("E-1")
def test_a_filter_narrows_both_legs_before_they_choose(store):
    for number in range(20):
        add(store, f"apple {number}", seed=0, doc_type="note")
    wanted = [add(store, f"apple pie {number}", seed=5, tags=["x", "y"]) for number in range(3)]
    add(store, "apple pudding", seed=5, tags=["x"])
    found = find(store, ("apple",), unit(0), Filter(("x", "y")), limit=3)
    assert sorted(found.ids.tolist()) == sorted(id_ for document in wanted for id_ in ids_of(store, document))
    assert find(store, ("apple",), unit(0), Filter(doc_type="pdf")).ids.size == 0
    assert find(store, ("apple",), unit(0), Filter(("no such tag",))).ids.size == 0


def test_hits_come_in_the_order_asked_with_their_document(store):
    one, two = add(store, "one", tags=["t"]), add(store, "two", source_path="/p")
    wanted = [*ids_of(store, two), *ids_of(store, one)]
    with store.read() as tx:
        hits = tx.index.hits(wanted)
    assert [hit.text for hit in hits] == ["two", "one"]
    assert (hits[0].source_path, hits[1].tags) == ("/p", ("t",))


@pytest.mark.requirement("N-2")
@pytest.mark.requirement("N-3")
def test_replacing_content_keeps_the_document_and_leaves_nothing_of_the_old(store):
    document_id = add(store, "old words", tags=["t"], seed=1)
    with store.read() as tx:
        before = tx.documents.get(document_id)
    with store.write() as tx:
        tx.documents.replace(document_id, content("new words", "more", seed=2))
    with store.read() as tx:
        after = tx.documents.get(document_id)
    assert (after.id, after.tags, after.created_at) == (before.id, before.tags, before.created_at)
    assert after.content_hash != before.content_hash
    assert after.updated_at is not None
    assert find(store, ("old",)).ids.size == 0
    assert find(store, ("new",), unit(2)).ids.tolist() == ids_of(store, document_id)


@pytest.mark.requirement("E-6")
def test_a_deleted_document_leaves_nothing_behind(store):
    document_id = add(store, "gone", tags=["only here"])
    with store.write() as tx:
        tx.documents.delete(document_id)
    with store.read() as tx:
        assert tx.documents.get(document_id) is None
        assert tx.documents.chunks(document_id) == []
        assert tx.documents.tags() == []
        assert tx.counts().chunks == 0
    assert find(store, ("gone",), unit(0)).ids.size == 0


@pytest.mark.requirement("N-2")
def test_a_transaction_that_fails_changes_nothing(store):
    document_id = add(store, "old words", tags=["t"], seed=1)

    def fail():
        with store.write() as tx:
            tx.documents.replace(document_id, content("new words", seed=2))
            tx.documents.change_tags(document_id, add=["u"], remove=["t"])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with store.read() as tx:
        assert tx.documents.get(document_id).tags == ("t",)
    found = find(store, ("old",), unit(1))
    assert found.ids.tolist() == ids_of(store, document_id)
    np.testing.assert_allclose(found.vec, [1.0], rtol=1e-6)
    assert add(store, "and it goes on", seed=3) > document_id
    assert find(store, ("goes",), unit(3)).vec.max() == pytest.approx(1.0)


def test_a_reader_sees_the_vectors_of_its_own_moment(store):
    document_id = add(store, "old", seed=1)
    with store.read() as before:
        assert before.documents.get(document_id)
        with store.write() as tx:
            tx.documents.replace(document_id, content("new", seed=2))
        seen = look(before, ("old",), unit(1), limit=10)
        assert before.index.hits(seen.ids.tolist())[0].text == "old"
        assert seen.vec.tolist() == pytest.approx([1.0])
    assert find(store, ("new",), unit(2)).vec.tolist() == pytest.approx([1.0])


def test_a_reader_that_many_writes_overtook_still_sees_its_own_moment(store):
    document_id = add(store, "text 0", seed=0)
    with store.read() as before:
        assert before.documents.get(document_id)
        for number in range(1, 40):
            with store.write() as tx:
                tx.documents.replace(document_id, content(f"text {number}", seed=number))
        seen = look(before, (), unit(0), limit=10)
        assert before.index.hits(seen.ids.tolist())[0].text == "text 0"
        assert seen.vec.tolist() == pytest.approx([1.0])


@pytest.mark.slow
def test_vectors_survive_growth_deletion_and_reopening(make_store):
    with make_store(dimensions=DIMENSIONS) as store:
        documents = [add(store, f"number {number}", seed=number) for number in range(2500)]
        with store.write() as tx:
            for document_id in documents[:2400:2]:
                tx.documents.delete(document_id)
        left = documents[1:2400:2] + documents[2400:]
        add(store, "late", seed=9999)
        [last] = ids_of(store, left[-1])
        everything_is_found(store, len(left) + 1, last)
    with make_store(dimensions=DIMENSIONS) as store:
        everything_is_found(store, len(left) + 1, last)


def everything_is_found(store, count, last):
    everything = find(store, (), unit(2499), limit=5000)
    assert everything.ids.size == count
    assert everything.ids[np.argmax(everything.vec)] == last
    assert find(store, ("late",), unit(9999)).vec.max() == pytest.approx(1.0)


@pytest.mark.requirement("N-5")
def test_updated_at_is_set_by_a_real_change_of_tags_and_by_nothing_less(store):
    document_id = add(store, "text", tags=["t"])
    for add_, remove in (([], []), (["t"], []), (["t"], ["t"]), ([], ["other"])):
        with store.write() as tx:
            tx.documents.change_tags(document_id, add=add_, remove=remove)
            assert tx.documents.get(document_id).updated_at is None
    with store.write() as tx:
        tx.documents.change_tags(document_id, add=["u"], remove=["t"])
        assert tx.documents.get(document_id).tags == ("u",)
        assert tx.documents.get(document_id).updated_at is not None


@pytest.mark.requirement("E-4")
def test_recent_documents_come_first_whether_they_were_added_or_changed(store):
    first, second, third = (add(store, f"text {number}") for number in range(3))
    time.sleep(0.002)  # times are kept to the millisecond
    with store.write() as tx:
        tx.documents.change_tags(first, add=["x"], remove=[])
    with store.read() as tx:
        page = tx.documents.page(Filter(), sort="recent", limit=10, cursor=None)
    assert [document.id for document in page] == [first, third, second]


@pytest.mark.parametrize("sort", ["id", "recent"])
def test_pages_follow_each_other_without_gap_or_repetition(store, sort):
    documents = [add(store, f"text {number}") for number in range(7)]
    seen, cursor = [], None
    while True:
        with store.read() as tx:
            page = tx.documents.page(Filter(), sort=sort, limit=3, cursor=cursor)
            if not page:
                break
            cursor = cursor_after(page[-1])
        seen += [document.id for document in page]
    assert seen == (documents if sort == "id" else documents[::-1])


@pytest.mark.parametrize(("sort", "expected"), [("title", "adebc"), ("path", "cabed")])
def test_a_list_from_a_to_z_does_not_heed_case(store, sort, expected):
    rows = {
        "a": ("aal", "b/1"),
        "b": ("Pier", "b/2"),
        "c": ("Zug " + "x" * 300, "A/9"),
        "d": ("BOOT", None),
        "e": ("ozean", "b/3"),
    }
    ids = {add(store, f"text {name}", title=title, source_path=path): name for name, (title, path) in rows.items()}
    with store.read() as tx:
        after = [None]
        for _ in rows:
            [document] = tx.documents.page(Filter(), sort=sort, limit=1, cursor=after[-1])
            after.append(cursor_after(document, sort))
        found = [ids[int(cursor.partition(".")[0])] for cursor in after[1:]]
        assert tx.documents.page(Filter(), sort=sort, limit=1, cursor=after[-1]) == []
        assert tx.documents.page(Filter(), sort=sort, limit=9, cursor="1.00ff") is not None
    assert "".join(found) == expected


def test_jobs_are_claimed_in_order_and_once(store):
    with store.write() as tx:
        added = [tx.jobs.add(NewJob("note", text=f"text {number}")) for number in range(5)]
    with store.write() as tx:
        assert [job.id for job in tx.jobs.claim(3)] == added[:3]
        assert [job.id for job in tx.jobs.claim(3)] == added[3:]
        assert tx.jobs.claim(3) == []


def test_a_job_that_was_begun_before_is_claimed_by_itself(store):
    with store.write() as tx:
        added = [tx.jobs.add(NewJob("note", text=f"text {number}")) for number in range(3)]
        tx.jobs.claim(2)
        tx.jobs.release(added[:2], failed=True)
        claims = [[(job.id, job.attempts) for job in tx.jobs.claim(10)] for _ in range(3)]
    assert claims == [[(added[2], 1)], [(added[0], 2)], [(added[1], 2)]]


def test_without_files_all_else_is_claimed_but_what_comes_after_one_for_its_path(store):
    with store.write() as tx:
        file = tx.jobs.add(NewJob("file", staged="a", filename="a.txt", source_path="/a"))
        after, other = (tx.jobs.add(NewJob("note", text="text", source_path=path)) for path in ("/a", "/b"))
        assert [job.id for job in tx.jobs.claim(9, files=False)] == [other]
        assert tx.jobs.claim(9, files=False) == []
        assert [job.id for job in tx.jobs.claim(9)] == [file, after]


def test_a_job_that_its_engine_gave_back_was_not_attempted(store):
    with store.write() as tx:
        added = [tx.jobs.add(NewJob("note", text=f"text {number}")) for number in range(3)]
        tx.jobs.claim(3)
        assert tx.jobs.release_stalled(0) == 3
        assert [(job.id, job.attempts) for job in tx.jobs.claim(10)] == [(job_id, 1) for job_id in added]
        tx.jobs.release(added, failed=False)
        assert {tx.jobs.get(job_id).attempts for job_id in added} == {0}


def test_a_job_whose_engine_died_three_times_is_failed_and_its_content_kept(store):
    with store.write() as tx:
        job = tx.jobs.add(NewJob("file", staged="a", filename="a.txt"))
        for died in (1, 2, 3):
            assert tx.jobs.claim(10)[0].attempts == died
            assert tx.jobs.take_up(3, "died") == ([job] if died == 3 else [])
        assert (tx.jobs.get(job).status, tx.jobs.get(job).error) == ("failed", "died")
        assert tx.jobs.staged() == {"a"}
        assert tx.jobs.retry(job)
        assert tx.jobs.claim(10)[0].attempts == 1


def test_vectors_that_failed_are_tried_once_more_later_and_what_is_not_stored_is_not(store):
    document = add(store, "text")
    with store.write() as tx:
        stored, lost = (tx.jobs.add(NewJob("note", text=f"text {number}")) for number in range(2))
        tx.jobs.claim(2)
        tx.jobs.set_document(stored, document, existed=False, omitted={})
        assert tx.jobs.take_up(1, "died") == [stored, lost]
        assert tx.jobs.try_vectors_again(3600, 2) == 0
        assert tx.jobs.try_vectors_again(0, 2) == 1
        [again] = tx.jobs.claim(10)
        assert (again.id, again.attempts, again.error) == (stored, 3, None)
        assert tx.jobs.take_up(3, "died") == [stored]


def test_a_failed_job_is_behind_what_came_later_for_its_path_unless_that_failed_too(store):
    document = add(store, "text", source_path="/p")
    with store.write() as tx:
        first, second, third, other = (
            tx.jobs.add(NewJob("file", staged="a", source_path=path, part_of=part))
            for path, part in (("/p#a", document), ("/p#a", None), ("/p#a", None), ("/q", None))
        )
        tx.jobs.claim(4)
        for job in (first, second, other):
            tx.jobs.fail(job, "no room")
        assert [tx.jobs.later(job) for job in (first, second, third, other)] == [third, third, None, None]
        tx.jobs.fail(third, "no room")
        assert tx.jobs.later(first) is None
        tx.jobs.retry(second)
        tx.jobs.claim(1)
        tx.jobs.finish(second, document)
        assert tx.jobs.later(first) == second
        tx.jobs.retry_parts(document)
        assert tx.jobs.get(first).status == "failed"
        tx.jobs.delete(second)
        tx.jobs.retry_parts(document)
        assert tx.jobs.get(first).status == "queued"


def test_a_job_that_was_begun_before_goes_behind_the_others_but_not_behind_one_that_would_replace_it(store):
    with store.write() as tx:
        first, other = (tx.jobs.add(NewJob("note", text="text", source_path=path)) for path in ("/p", "/q"))
        tx.jobs.claim(2)
        tx.jobs.release([first, other], failed=True)
        later, new = (tx.jobs.add(NewJob("note", text="text", source_path=path)) for path in ("/p", "/new"))
        claims = [[job.id for job in tx.jobs.claim(10)] for _ in range(5)]
    assert claims == [[new], [first], [later], [other], []]


def test_a_dropped_job_leaves_nothing_and_its_key_is_free_again(store):
    with store.write() as tx:
        job = tx.jobs.add(NewJob("file", staged="a", filename="a.txt", idempotency_key="key"))
        tx.jobs.claim(1)
        assert tx.jobs.set_progress(job, 0.5)
        tx.jobs.delete(job)
        assert not tx.jobs.set_progress(job, 0.6)
        assert (tx.jobs.get(job), tx.jobs.with_key("key"), tx.jobs.staged()) == (None, None, set())
        assert tx.jobs.add(NewJob("note", text="text", idempotency_key="key")) > job


def test_a_note_is_short_by_its_bytes_also_behind_a_nul(store):
    with store.write() as tx:
        tx.jobs.add(NewJob("note", text="\0" + "a" * 100))
        short = tx.jobs.add(NewJob("note", text="\0" + "a" * 99))
        assert [job.id for job in tx.jobs.claim_short(8, 100, bool)] == [short]


def test_short_jobs_overtake_others_but_none_that_came_before_for_the_same_path(store):
    with store.write() as tx:
        tx.jobs.add(NewJob("file", staged="long", source_path="/p"))
        tx.jobs.add(NewJob("file", staged="short", source_path="/p"))
        tx.jobs.add(NewJob("note", text="a" * 101, source_path="/q"))
        tx.jobs.add(NewJob("note", text="a", source_path="/q"))
        short = [
            tx.jobs.add(NewJob("file", staged="short", source_path="/r")),
            tx.jobs.add(NewJob("note", text="a", source_path="/s")),
        ]
        tx.jobs.add(NewJob("note", text="a", source_path="/s"))
        assert [job.id for job in tx.jobs.claim_short(8, 100, "short".__eq__)] == short
        assert tx.jobs.claim_short(8, 100, "short".__eq__) == []


def test_a_job_that_gives_signs_of_life_is_not_stalled(store):
    with store.write() as tx:
        tx.jobs.add(NewJob("note", text="text"))
        [job] = tx.jobs.claim(1)
        tx.jobs.heartbeat([job.id])
        tx.jobs.set_progress(job.id, 0.5)
        assert tx.jobs.release_stalled(60) == 0
        assert tx.jobs.get(job.id).progress == 0.5


def test_finished_and_failed_jobs_say_so(store):
    with store.write() as tx:
        tx.jobs.add(NewJob("file", staged="a", filename="a.pdf", tags=("t",)))
        tx.jobs.add(NewJob("file", staged="b", filename="b.pdf"))
        done, failed = tx.jobs.claim(2)
        assert tx.jobs.staged() == {"a", "b"}
        tx.jobs.finish(done.id, 7, existed=True, omitted={"files": 2})
        tx.jobs.fail(failed.id, "the model is gone")
        assert tx.jobs.staged() == {"b"}
        assert tx.jobs.retry(failed.id)
        tx.jobs.fail(failed.id, "the file is empty", drop=True)
        assert tx.jobs.staged() == set()
        assert (tx.jobs.get(done.id).status, tx.jobs.get(done.id).document_id) == ("done", 7)
        assert [tx.jobs.get(job.id).existed for job in (done, failed)] == [True, False]
        assert [dict(tx.jobs.get(job.id).omitted) for job in (done, failed)] == [{"files": 2}, {}]
        assert (tx.jobs.get(failed.id).status, tx.jobs.get(failed.id).error) == ("failed", "the file is empty")
        assert [job.id for job in tx.jobs.page(status="failed", limit=10, before=None)] == [failed.id]
        assert [job.id for job in tx.jobs.page(status=None, limit=10, before=failed.id)] == [done.id]


def test_a_document_that_is_added_and_replaced_in_one_transaction_is_there_once(store):
    with store.write() as tx:
        document_id = tx.documents.add(content("early", seed=1), "/p", ())
        tx.documents.replace(document_id, content("late", seed=2))
    found = find(store, (), unit(2))
    assert found.ids.tolist() == ids_of(store, document_id)
    assert found.vec.tolist() == pytest.approx([1.0])


@pytest.mark.slow
def test_readers_and_a_writer_work_at_once(store):
    stop, errors = threading.Event(), []

    def read():
        while not stop.is_set():
            with store.read() as tx:
                found = look(tx, ("word",), unit(1), limit=10)
                hits = tx.index.hits(found.ids.tolist())
                chunks = [chunk.id for hit in hits for chunk in tx.documents.chunks(hit.document_id)]
                if sorted(chunks) != sorted(found.ids.tolist()):
                    errors.append((chunks, found))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    document_id = add(store, "word 0", seed=0)
    for number in range(200):
        with store.write() as tx:
            tx.documents.replace(document_id, content(f"word {number}", seed=number))
    stop.set()
    for reader in readers:
        reader.join()
    assert errors == []


@pytest.mark.parametrize(
    ("prefix", "inside", "outside"),
    [
        ("/a/", ["/a/x", "/a/x/y", "/a/\U0010ffff", "/a/"], ["/a", "/ab", "/a0", "/b/a/x"]),
        ("/日\U0010ffff", ["/日\U0010ffff", "/日\U0010ffff/x"], ["/日", "/日\U0010fffe", "/旦"]),
        ("\ud7ff", ["\ud7ffx"], ["\ue000", "\ud7fe"]),
        ("\U0010ffff", ["\U0010ffff", "\U0010ffffz"], ["\U0010fffe", "z"]),
        ("%_*", ["%_*x"], ["a_*x", "%x*"]),
    ],
)
def test_a_prefix_admits_what_begins_with_it_and_nothing_else(store, prefix, inside, outside):
    ids = [add(store, path, source_path=path) for path in inside]
    add(store, "no path")
    for path in outside:
        add(store, path, source_path=path)
    where = Filter(source_prefix=prefix)
    with store.read() as tx:
        assert [document.id for document in tx.documents.page(where, sort="id", limit=10, cursor=None)] == ids
        assert {document.id for document in tx.documents.page(where, sort="recent", limit=10, cursor=None)} == set(ids)
    assert len(find(store, (), unit(0), where).ids) == len(ids)


@pytest.mark.parametrize(
    ("part", "inside", "outside"),
    [
        ("Mail/", ["/mail/x", "mail/", "/a/MAIL/x"], ["/mailbox", "/mai/l"]),
        ("%_\\", ["/a%_\\b"], ["/abcd", "/a%b\\", "/a%_b"]),
        ("日", ["/日/x", "x日"], ["/旦"]),
    ],
)
def test_a_part_admits_the_paths_that_it_stands_in(store, part, inside, outside):
    ids = [add(store, path, source_path=path) for path in inside]
    add(store, "no path")
    for path in outside:
        add(store, path, source_path=path)
    where = Filter(source_parts=(part,))
    with store.read() as tx:
        assert [each.id for each in tx.documents.page(where, sort="id", limit=10, cursor=None)] == ids
        assert {each.id for each in tx.documents.page(where, sort="recent", limit=10, cursor=None)} == set(ids)


def test_parts_types_and_words_can_be_excluded_and_several_types_admitted(store):
    here, other, none = (
        add(store, "a lamp", source_path="/box/a"),
        add(store, "a draft", source_path="/x/b"),
        add(store, "quay"),
    )
    with store.write() as tx:
        page = tx.documents.add(content("page", doc_type="pdf"), "/box/c.pdf", ())
    cases = {
        Filter(source_parts=("box", "a")): {here},
        Filter(source_parts_not=("BOX",)): {other, none},
        Filter(doc_types=("pdf", "docx")): {page},
        Filter(doc_types_not=("pdf", "docx")): {here, other, none},
        Filter(doc_types_not=("pdf",), lacking=("draft",), source_parts_not=("%",)): {here, none},
    }
    with store.read() as tx:
        for where, ids in cases.items():
            for sort in ("id", "date"):
                page_ids = {each.id for each in tx.documents.page(where, sort=sort, limit=10, cursor=None)}
                assert page_ids == ids, where
            assert tx.documents.count(where) == len(ids)
            assert len(tx.index.select(where).chunk_ids()) == len(ids)


def test_an_id_is_found_by_how_it_begins(store):
    ids = [add(store, f"text {number}") for number in range(25)]
    for digits in ("1", "2", "12", "25", "26"):
        with store.read() as tx:
            page = tx.documents.page(Filter(id_prefix=digits), sort="id", limit=50, cursor=None)
        assert [each.id for each in page] == [each for each in ids if str(each).startswith(digits)]


def test_a_document_keeps_the_name_of_its_file_and_whether_its_title_was_given(store):
    plain = add(store, "plain")
    with store.write() as tx:
        named = tx.documents.add(
            replace(content("words", doc_type="text"), filename="a.txt", title_given=True), None, ()
        )
    with store.read() as tx:
        found = [(tx.documents.get(id_).filename, tx.documents.get(id_).title_given) for id_ in (plain, named)]
    assert found == [(None, False), ("a.txt", True)]
    with store.write() as tx:
        tx.documents.replace(named, content("other words", doc_type="text"))
        assert (tx.documents.get(named).filename, tx.documents.get(named).title_given) == ("a.txt", False)
        tx.documents.rename(plain, "b.txt")
        assert tx.documents.get(plain).filename == "b.txt"
        assert tx.documents.get(plain).updated_at is None


def test_the_same_file_under_another_name_is_the_same_document_with_the_last_name(store):
    for filename in ("first.txt", "second.txt", None):
        with store.write() as tx:
            document_id, _ = write_document(tx, replace(content("words", doc_type="text"), filename=filename), None, ())
    with store.read() as tx:
        [document] = tx.documents.page(ALL, sort="id", limit=10, cursor=None)
    assert (document.id, document.filename) == (document_id, "second.txt")


@pytest.mark.requirement("E-11")
@pytest.mark.parametrize("source_path", [None, "/one"])
@pytest.mark.parametrize("count", [2, 3])
def test_content_that_several_documents_hold_goes_to_the_oldest_of_them(store, count, source_path):
    equal = [add(store, "the same words", source_path=source_path) for _ in range(count)]
    with store.write() as tx:
        assert write_document(tx, content("the same words"), source_path, ["again"]) == (equal[0], True)
    with store.read() as tx:
        assert [tx.documents.get(each).tags for each in equal] == [("again",)] + [()] * (count - 1)
        assert tx.documents.with_content("hash of nothing", source_path, note=True) is None


def test_a_job_comes_back_as_it_was_accepted(store):
    job = NewJob("file", "T", "/p", ("a", "b"), None, "staged", "a.txt", "key", "request", "content", 7, 2)
    with store.write() as tx:
        job_id = tx.jobs.add(job)
    with store.read() as tx:
        found = tx.jobs.get(job_id)
        assert tx.jobs.with_key("key") == found
    for name in (
        "kind",
        "title",
        "source_path",
        "tags",
        "text",
        "staged",
        "filename",
        "request_hash",
        "content_hash",
        "part_of",
        "depth",
    ):
        assert getattr(found, name) == getattr(job, name), name
    assert (found.status, found.attempts, found.progress, found.document_id) == ("queued", 0, 0, None)


def test_a_key_has_one_job(store):
    with store.write() as tx:
        first = tx.jobs.add(NewJob("note", text="one", idempotency_key="key"))
        assert tx.jobs.add(NewJob("note", text="two", idempotency_key="key")) == first
        assert tx.jobs.add(NewJob("note", text="three", idempotency_key="other")) > first
        assert tx.jobs.get(first).text == "one"
        assert tx.jobs.pending() == 2


def at_once(count, act):
    """What so many threads get that begin together."""
    barrier = threading.Barrier(count)

    def begin(number):
        barrier.wait()
        return act(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


@pytest.mark.requirement("E-11")
@pytest.mark.parametrize("source_path", [None, "/one"])
def test_two_writers_of_one_content_at_once_make_one_document(store, source_path):
    def write(number):
        with store.write() as tx:
            return write_document(tx, content("the same words"), source_path, [f"tag {number}"])[0]

    for _ in range(10):
        [document_id] = set(at_once(4, write))
    with store.read() as tx:
        [document] = tx.documents.page(ALL, sort="id", limit=10, cursor=None)
    assert (document.id, len(document.tags)) == (document_id, 4)


@pytest.mark.requirement("E-11")
def test_two_writers_at_one_path_at_once_leave_one_of_their_contents_there(store):
    def write(number):
        with store.write() as tx:
            return write_document(tx, content(f"words of {number}", seed=number), "/one", ())[0]

    [document_id] = set(at_once(4, write))
    with store.read() as tx:
        [chunk] = tx.documents.chunks(document_id)
        assert tx.counts().chunks == 1
    assert find(store, (), unit(int(chunk.text[-1]))).ids.tolist() == [chunk.id]


def test_two_submissions_under_one_key_at_once_are_one_job(store):
    def submit(number):
        with store.write() as tx:
            known = tx.jobs.with_key("key")
            return known.id if known else tx.jobs.add(NewJob("note", text=f"text {number}", idempotency_key="key"))

    assert len(set(at_once(4, submit))) == 1
    with store.read() as tx:
        assert len(tx.jobs.page(status=None, limit=10, before=None)) == 1


def test_done_jobs_expire_and_take_nothing_along_that_a_document_needs(store):
    with store.write() as tx:
        message = tx.documents.add(replace(content("a message", doc_type="eml"), filename="m.eml"), "job:1#m", ())
        inside = tx.documents.add(content("inside", doc_type="text", seed=5), "job:1#m#a", (), message)
        jobs = [tx.jobs.add(NewJob("file", staged=f"staged{number}", part_of=message)) for number in range(5)]
        done, done_too, failed, running, queued = jobs
        tx.jobs.claim(4)
        for job_id in (done, done_too):
            tx.jobs.finish(job_id, message)
        tx.jobs.fail(failed, "no")
    with store.write() as tx:
        assert tx.jobs.expire(1, 10) == 0
        time.sleep(0.05)  # times are kept to the millisecond, and each is later than the one before
        assert tx.jobs.expire(0, 1) == 1
        assert tx.jobs.expire(0, 10) == 1
        assert tx.jobs.expire(0, 10) == 0
        assert [job.id for job in tx.jobs.page(status=None, limit=10, before=None)] == [queued, running, failed]
        assert tx.jobs.staged() == {"staged2", "staged3", "staged4"}
        assert (tx.documents.get(message).filename, tx.documents.get(inside).source_path) == ("m.eml", "job:1#m#a")
        assert tx.documents.take_unneeded_files() == []
        assert tx.jobs.add(NewJob("note", text="an id is not given twice")) > queued
        tx.documents.delete(message)
        assert tx.documents.get(inside) is None


def test_what_is_counted_is_what_is_there(store):
    add(store, "one", "two")
    add(store, "three", doc_type="text")
    with store.write() as tx:
        tx.jobs.add(NewJob("note", text="text"))
    with store.read() as tx:
        counts = tx.counts()
    assert (counts.documents, counts.chunks, counts.jobs) == ({"note": 1, "text": 1}, 3, {"queued": 1})
    assert counts.size > 0
    assert counts.queue_age >= 0


def test_a_page_of_a_documents_chunks_is_read_by_itself(store):
    document_id = add(store, "one ", "two ", "three ", "four")
    with store.read() as tx:
        assert [chunk.text for chunk in tx.documents.chunks(document_id, 1, 2)] == ["two ", "three "]
        assert [chunk.text for chunk in tx.documents.chunks(document_id, 3)] == ["four"]
        assert tx.documents.chunks(document_id, 9, 2) == []
        assert [chunk.text for chunk in tx.documents.chunks_between(document_id, 5, 9)] == ["two ", "three "]
        assert [chunk.text for chunk in tx.documents.chunks_between(document_id, 8, 8)] == []
        assert tx.documents.extent(document_id) == Extent(4, 18)
        assert tx.documents.extent(99) == Extent(0, 0)


@pytest.mark.parametrize(
    ("start", "end"), [(None, None), (0, 4), (3, 9), (5, None), (17, 18), (18, 99), (99, 5), (7, 2)]
)
def test_characters_are_the_same_whether_all_of_a_document_is_read_or_a_part(store, start, end):
    document_id = add(store, "one ", "two ", "three ", "four")
    with store.read() as tx:
        part = excerpt_of_characters(tx.documents, document_id, start, end)
    begin = min(start or 0, 18)
    finish = max(begin, 18 if end is None else min(end, 18))
    assert part == Excerpt(begin, finish, 18, "one two three four"[begin:finish])


def test_the_first_chunks_of_documents_are_found_with_their_documents(store):
    one, other = add(store, "one ", "two ", "three "), add(store, "four ", seed=9)
    with store.read() as tx:
        firsts = tx.documents.chunk_ids([other, one, 999], 2)
        assert sorted(document for document, _ in firsts) == [one, one, other]
        assert {chunk for _, chunk in firsts} <= {
            chunk.id for each in (one, other) for chunk in tx.documents.chunks(each)
        }
        assert tx.documents.chunk_ids([], 2) == []


def test_the_generation_is_another_one_after_each_change_of_vectors_and_of_these_alone(store):
    def generation():
        with store.read() as tx:
            return tx.generation

    before = generation()
    document_id = add(store, "one ")
    added = generation()
    with store.write() as tx:
        tx.documents.change_tags(document_id, add=["kept"], remove=[])
    assert before != added == generation()


def test_what_replaced_a_note_again_and_again_takes_no_room_for_each_pair_of_them(store):
    with store.write() as tx:
        ids = [tx.documents.add(content("one"), None, ())]
        for _ in range(2000):
            ids.append(tx.documents.add(replace(content("one"), replaces=ids[-1]), None, ()))
    with store.read() as tx:
        tracemalloc.start()
        found = tx.documents.successors(ids[:1])
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found == {ids[0]: ids[1:]}
        assert most < 4 << 20
        assert tx.documents.successors(ids[-3:]) == {ids[-3]: ids[-2:], ids[-2]: ids[-1:]}
