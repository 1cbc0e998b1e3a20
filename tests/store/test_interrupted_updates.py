"""A note update that is cut short leaves the old note or the new one, whole and found (requirement N-2)."""

from __future__ import annotations

import pickle
import resource
from contextlib import contextmanager

import apsw
import pytest

from kb.api.errors import DiskFault, DiskFull
from kb.documents.note_edit import Edit, NoteChange
from kb.documents.write_document import write_document
from kb.documents.write_updated_note import update_note
from kb.ingest.draft import draft_note, embed_draft
from kb.store.rows import NOBODY, Filter
from kb.store.sqlite.store import SqliteStore
from tests.store.test_store import look
from tests.support.disks import filled, small_disk
from tests.support.interrupted import killed_at_each_statement
from tests.support.note_vectors import at_once
from tests.support.spaces import space

OLD = "# Harbour\n\n" + "The old lighthouse keeper counts ships. " * 60
NEW = "# Mountain\n\n" + "A young shepherd tells of goats and snow. " * 90


def content_of(text, embedder):
    return embed_draft(draft_note(text, None, embedder), embedder)


def whole(store, document_id, content):
    """Whether the note is `content` and nothing else, in its text and in what words and vectors find."""
    with store.read() as tx:
        document, chunks = tx.documents.get(document_id), tx.documents.chunks(document_id)
        if document.content_hash != content.content_hash:
            return False
        ids = {chunk.id for chunk in chunks}
        assert [chunk.text for chunk in chunks] == [chunk.text for chunk in content.chunks]
        by_words = look(tx, ("ships", "snow", "harbour", "mountain"), None, Filter(), 100)
        by_vector = look(tx, (), content.vectors[0], Filter(), 100)
        assert set(by_words.ids.tolist()) == set(by_vector.ids.tolist()) == ids
        assert by_vector.vec.max() == pytest.approx(1)
        assert document.tags == ("sea",)
    return True


@pytest.fixture
def old(embedder):
    return content_of(OLD, embedder)


@pytest.fixture
def new(embedder):
    return content_of(NEW, embedder)


def make(path, old):
    """A store with one note; answers it and the note's id."""
    path.parent.mkdir(exist_ok=True)
    store = SqliteStore(path, space(old.vectors.shape[1]))
    with store.write() as tx:
        return store, write_document(tx, old, None, ["sea"])[0]


def sound(path):
    """Whether the database's tables agree with each other."""
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
    answers = connection.execute("PRAGMA integrity_check").fetchall()
    connection.close()
    return answers == [("ok",)]


@pytest.mark.slow
@pytest.mark.requirement("N-2")
def test_killed_before_any_statement_the_note_is_the_old_one_or_the_new_one(tmp_path, old, new):
    database = tmp_path / "whole" / "kb.db"
    store, document_id = make(database, old)
    store.close()
    database.with_name("content.pickle").write_bytes(pickle.dumps((document_id, new)))
    *killed, finished = killed_at_each_statement("update_note", database, tmp_path / "killed")
    assert len(killed) > 3 * (len(old.chunks) + len(new.chunks))
    for path in [*killed, finished]:
        store = SqliteStore(path, space(old.vectors.shape[1]))
        updated = whole(store, document_id, new)
        assert updated or whole(store, document_id, old)
        assert updated == (path == finished)
        assert versions(store, document_id) == ([new, old] if updated else [old])
        store.close()
        assert sound(path)


def versions(store, document_id):
    """The contents of a document's versions."""
    with store.read() as tx:
        found = tx.history.versions(document_id, limit=10)
        return [Held("".join(chunk.text for chunk in tx.history.chunks(version))) for version in found]


class Held(str):
    """A text, which equals the content that it is of."""

    def __eq__(self, content):
        return str(self) == "".join(chunk.text for chunk in content.chunks)

    __hash__ = str.__hash__


@pytest.mark.slow
@pytest.mark.parametrize("action", ["delete", "restore"])
def test_killed_before_any_statement_a_document_is_in_the_bin_or_not_and_never_both(tmp_path, embedder, action):
    old = content_of("# Harbour\n\nThe keeper counts ships.", embedder)
    database = tmp_path / "whole" / "kb.db"
    store, document_id = make(database, old)
    if action == "restore":
        with store.write() as tx:
            tx.history.discard(document_id, NOBODY)
    store.close()
    database.with_name("content.pickle").write_bytes(pickle.dumps((document_id, old)))
    *killed, finished = killed_at_each_statement(action, database, tmp_path / "killed")
    assert len(killed) > 10
    for path in [*killed, finished]:
        store = SqliteStore(path, space(old.vectors.shape[1]))
        with store.read() as tx:
            is_binned, is_there = bool(tx.history.binned(document_id)), bool(tx.documents.get(document_id))
        assert is_binned != is_there
        assert is_there == ((path == finished) == (action == "restore"))
        assert is_binned or whole(store, document_id, old)
        assert versions(store, document_id)[-1] == old
        store.close()
        assert sound(path)


@contextmanager
def files_no_larger_than(size):
    """No room in a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def old_then_new(store, document_id, old, new, embedder, no_room):
    """Without room the old note stays; with room the same store goes on."""
    for _ in range(3):
        with no_room(), pytest.raises((DiskFull, DiskFault), match=r"disk is full|cannot be written: .*kb.db"):
            update_note(store, at_once(embedder), document_id, NoteChange(Edit(NEW * 4)))
        assert whole(store, document_id, old)
    update_note(store, at_once(embedder), document_id, NoteChange(Edit(NEW)))
    assert whole(store, document_id, new)
    store.close()


def test_memory_that_runs_out_at_the_disk_is_not_taken_for_a_fault_of_the_disk(make_store):
    with make_store() as store, pytest.raises(apsw.IOError), store.write():
        raise apsw.exception_for(apsw.SQLITE_IOERR_NOMEM)


@pytest.mark.slow
@pytest.mark.requirement("N-2")
def test_on_a_full_disk_the_old_note_stays_and_with_room_again_the_store_goes_on(tmp_path, embedder, old, new):
    with small_disk(tmp_path / "disk", 4) as disk:
        store, document_id = make(disk / "kb.db", old)
        old_then_new(store, document_id, old, new, embedder, lambda: filled(disk))
        assert sound(disk / "kb.db")


@pytest.mark.rare
@pytest.mark.requirement("N-2")
def test_a_file_that_may_not_grow_leaves_the_old_note_and_the_store_goes_on(tmp_path, embedder, old, new):
    path = tmp_path / "kb.db"
    store, document_id = make(path, old)
    size = max(file.stat().st_size for file in tmp_path.iterdir())
    old_then_new(store, document_id, old, new, embedder, lambda: files_no_larger_than(size))
    assert sound(path)
