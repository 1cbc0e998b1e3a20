"""After any changes and undos in any order, the state at each earlier point in time is known."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from kb import clock
from kb.api.errors import Occupied
from kb.documents.delete import delete, purge
from kb.documents.lookup import existing_version
from kb.documents.note_edit import Edit, NoteChange
from kb.documents.restore_document import restore, revert
from kb.documents.tags import change_tags
from kb.documents.write_document import write_document
from kb.documents.write_updated_note import update_note
from kb.ingest.draft import draft_note, embed_draft
from kb.search.query import Query
from kb.search.recall_monitor import RecallMonitor
from kb.search.service import SearchService
from kb.store.row_mapping import cursor_after
from kb.store.rows import Author, Filter
from kb.telemetry.instruments import FollowingPool, Instruments
from tests.support.note_vectors import at_once, make_waiting
from tests.support.undo import undo

WORDS = ("apple", "pear", "cherry", "plum", "fig", "lamp", "ship", "keeper")
TAGS = ("red", "green", "blue")
PATHS = (None, None, "/a", "/b", "/c")
AUTHORS = tuple(Author(name, "test") for name in ("ann", "bob"))
ORIGINALS = SimpleNamespace(sweep=lambda _: None)
"""Notes have none."""

MOST = 25
"""How many documents there are at most, in the bin or not."""


@dataclass(frozen=True)
class State:
    """The content of a document, and the time when it appeared."""

    text: str
    tags: frozenset
    path: str | None
    at: int = 0


@dataclass
class Known:
    """A document in the model: every version, who made it, and whether it is in the bin."""

    versions: list = field(default_factory=list)
    authors: list = field(default_factory=list)
    steps: list = field(default_factory=list)
    binned: int | None = None
    deleted_by: str | None = None
    gaps: dict = field(default_factory=dict)

    @property
    def state(self):
        return None if self.binned else self.versions[-1]

    def become(self, text, tags, step, author):
        self.versions.append(State(text, frozenset(tags), self.versions[-1].path))
        self.authors.append(author.by)
        self.steps.append(step)
        self.binned = None


@dataclass(frozen=True)
class Moment:
    """The state after a step."""

    at: datetime
    step: int
    states: dict


class Machine:
    """A store, a model of it, and every earlier point in time."""

    def __init__(self, database, embedder, seed):
        self.random = random.Random(seed)
        self.database = database
        self.embedder = embedder
        self.open()
        self.model = {}
        self.moments = []
        self.step = 0
        self.purged = set()
        self.counts = dict.fromkeys(self.ACTIONS, 0)

    ACTIONS = (
        "add", "add", "update", "update", "update", "retag", "retag", "revert", "revert", "delete", "delete",
        "restore", "restore", "purge", "undo", "undo_key", "reopen",
    )  # fmt: skip

    def run(self, steps):
        for self.step in range(1, steps + 1):
            action = self.random.choice(self.ACTIONS)
            getattr(self, action)()
            self.counts[action] += 1
            self.remember()
            self.check(self.random.choice(self.moments))
            if self.step % 5 == 0:
                self.check_search()
        self.opened.close()

    def open(self):
        self.opened = ExitStack()
        self.store = self.opened.enter_context(self.database())
        pool = self.opened.enter_context(FollowingPool(1))
        recall = self.opened.enter_context(closing(RecallMonitor(self.store, Instruments())))
        self.service = SearchService(self.store, self.embedder, pool, Instruments(), recall)

    def text(self):
        return " ".join(self.random.choices(WORDS, k=self.random.randint(1, 6)))

    def tags(self):
        return self.random.sample(TAGS, self.random.randint(0, 3))

    def one(self, *, binned=False):
        ids = [id_ for id_, known in self.model.items() if bool(known.binned) == binned]
        return self.random.choice(ids) if ids else None

    def add(self):
        if len(self.model) >= MOST:
            return self.purge()
        text, path, tags, author = self.text(), self.random.choice(PATHS), self.tags(), self.random.choice(AUTHORS)
        content = embed_draft(draft_note(text, None, self.embedder), self.embedder)
        with self.store.write() as tx:
            id_, _ = write_document(tx, content, path, tags, author=author)
        if id_ in self.model:
            known = self.model[id_]
            state = known.versions[-1]
            assert state.path == path
            if (text, state.tags | set(tags)) != (state.text, state.tags):
                known.become(text, state.tags | set(tags), self.step, author)
            return None
        same = [known for known in self.model.values() if known.state and known.state.path == path]
        assert not [known for known in same if path or known.state.text == text]
        self.model[id_] = Known([State(text, frozenset(tags), path)], [author.by], [self.step])
        return None

    def update(self):
        if id_ := self.one():
            text, author = self.text(), self.random.choice(AUTHORS)
            update_note(self.store, at_once(self.embedder), id_, NoteChange(Edit(text)), author=author)
            self.model[id_].become(text, self.model[id_].state.tags, self.step, author)

    def retag(self):
        if id_ := self.one():
            add, remove, author = self.tags(), self.tags(), self.random.choice(AUTHORS)
            change_tags(self.store, id_, add=add, remove=remove, author=author)
            state = self.model[id_].state
            if (tags := state.tags - set(remove) | set(add)) != state.tags:
                self.model[id_].become(state.text, tags, self.step, author)

    def revert(self):
        if id_ := self.one():
            number, author = self.random.randint(1, len(self.model[id_].versions)), self.random.choice(AUTHORS)
            revert(self.store, ORIGINALS, id_, number, author=author)
            self._become(self.model[id_], self.model[id_].versions[number - 1], author)

    def _become(self, known, state, author):
        now = known.versions[-1]
        if known.binned or (state.text, state.tags) != (now.text, now.tags):
            known.become(state.text, state.tags, self.step, author)

    def delete(self):
        if id_ := self.one():
            author = self.random.choice(AUTHORS)
            delete(self.store, ORIGINALS, id_, author)
            self._bin(self.model[id_], author)

    def _bin(self, known, author):
        known.binned, known.deleted_by = self.step, author.by

    def restore(self):
        if id_ := self.one(binned=True):
            known, author = self.model[id_], self.random.choice(AUTHORS)
            path = known.versions[-1].path
            if path and any(each.state and each.state.path == path for each in self.model.values()):
                with pytest.raises(Occupied):
                    restore(self.store, id_, author)
            else:
                restore(self.store, id_, author)
                self._unbin(known, author)

    def _unbin(self, known, author):
        known.gaps[len(known.versions) + 1] = known.binned
        known.become(known.versions[-1].text, known.versions[-1].tags, self.step, author)

    def purge(self):
        id_ = self.one(binned=self.random.random() < 0.7) or self.one()
        if id_ and len(self.model) > 5:
            purge(self.store, ORIGINALS, Path(), id_)
            del self.model[id_]
            self.purged.add(id_)

    def undo(self, key=None):
        if not self.moments:
            return
        moment = self.random.choice(self.moments[-20:])
        author = self.random.choice(AUTHORS)
        skipped = {step.document_id for step in undo(self.store, ORIGINALS, moment.at, key, author) if step.skipped}
        for id_, known in self.model.items():
            target = self._target(known, moment, key)
            if target == "leave" or id_ in skipped:
                assert key is None or target == "leave" or known.versions[-1].path is not None, target
                assert key is not None, "everything was taken back"
                continue
            if target is None and not known.binned:
                self._bin(known, author)
            elif target is not None:
                if known.binned:
                    self._unbin(known, author)
                self._become(known, target, author)

    def undo_key(self):
        self.undo(self.random.choice(AUTHORS).by)

    def _target(self, known, moment, key):
        """The state of a document after an undo. None means the bin."""
        made = [(step, by) for step, by in zip(known.steps, known.authors, strict=True) if step > moment.step]
        events = made + ([(known.binned, known.deleted_by)] if known.binned and known.binned > moment.step else [])
        while key is not None and events and events[0][1] != key:
            events = events[1:]
        if not events or any(key not in (None, by) for _, by in events):
            return "leave" if key is not None else (known.state if not events else self._before(known, events, moment))
        return self._before(known, events, moment)

    def _before(self, known, events, moment):
        count = len(known.versions) + bool(known.binned) - len(events)
        gap = known.gaps.get(count + 1)
        return None if count == 0 or (gap is not None and gap <= moment.step) else known.versions[count - 1]

    def reopen(self):
        self.opened.close()
        self.open()

    def remember(self):
        time.sleep(0.002)
        states = {id_: known.state for id_, known in self.model.items() if known.state}
        self.moments.append(Moment(clock.own.now(), self.step, states))
        time.sleep(0.002)
        assert self.listed() == states
        id_ = self.random.choice([*self.model, None])
        if id_ is not None:
            self.check_versions(id_)

    def check(self, moment):
        """The versions that stood at a moment are what the documents were then, but for those purged since."""
        expected = {id_: state for id_, state in moment.states.items() if id_ not in self.purged}
        with self.store.read() as tx:
            stood = {id_: self._stood(tx, id_, moment.at) for id_ in self.model}
        assert {id_: state for id_, state in stood.items() if state} == expected

    def _stood(self, tx, id_, at):
        """The state of a document at a point in time, by its versions."""
        for version in tx.history.versions(id_, limit=1000):
            document = version.document
            since = datetime.fromisoformat(document.updated_at or document.created_at)
            if since <= at and (version.until is None or at < datetime.fromisoformat(version.until)):
                return self._state(document, tx.history.chunks(version))
        return None

    def _state(self, document, chunks):
        text = "".join(chunk.text for chunk in chunks)
        return State(text, frozenset(document.tags), document.source_path)

    def check_search(self):
        """Check both searches: keyword search finds the documents with a word, semantic search every document."""
        states = {id_: known.state for id_, known in self.model.items() if known.state}
        word, tag = self.random.choice(WORDS), self.random.choice(TAGS)
        assert self.search(word, "words") == {id_ for id_, state in states.items() if word in state.text}
        make_waiting(self.store, self.embedder, states)
        assert self.search(word, "vectors") == states.keys()
        assert self.listed(tags=(tag,)) == {id_: state for id_, state in states.items() if tag in state.tags}

    def search(self, words, leg):
        """The documents that one of the searches finds."""
        query = Query.parse(words, Filter(), full_text=leg == "words", vectors=leg == "vectors")
        results = self.service.search(query, 100).results
        return {found.document_id for each in results for found in (each, *each.copies)}

    def listed(self, **filters):
        with self.store.read() as tx:
            documents, cursor = [], None
            sort = self.random.choice(("id", "recent", "date", "title", "path"))
            while page := tx.documents.page(Filter(**filters), sort=sort, limit=7, cursor=cursor):
                documents += page
                cursor = cursor_after(page[-1], sort)
            assert len({document.id for document in documents}) == len(documents)
            return {document.id: self._state(document, tx.documents.chunks(document.id)) for document in documents}

    def check_versions(self, id_):
        known = self.model[id_]
        with self.store.read() as tx:
            versions = tx.history.versions(id_, limit=1000)
            assert bool(tx.history.binned(id_)) == bool(known.binned)
            assert [version.number for version in versions] == list(range(len(known.versions), 0, -1))
            for version, state, by in zip(versions, known.versions[::-1], known.authors[::-1], strict=True):
                assert (frozenset(version.document.tags), version.author.by) == (state.tags, by)
            number = self.random.randint(1, len(known.versions))
            chunks = tx.history.chunks(existing_version(tx, id_, number))
            assert "".join(chunk.text for chunk in chunks) == known.versions[number - 1].text


@pytest.mark.slow
@pytest.mark.parametrize("steps", [150, pytest.param(5000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
def test_what_stood_at_every_former_moment_is_known(make_store, embedder, steps):
    machine = Machine(make_store, embedder, seed=steps)
    machine.run(steps)
    assert min(machine.counts.values()) > steps // 50
