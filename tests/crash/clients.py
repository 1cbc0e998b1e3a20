"""Clients that write, and their knowledge of it: acknowledged writes are certain, others may have happened."""

from __future__ import annotations

import asyncio
import io
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING
from uuid import uuid4

from kb.api.errors import EngineUnreachable, KbError, NotFound, NotReembedding, Unavailable
from kb.client.client import EngineClient

if TYPE_CHECKING:
    import random

KEYS = 5
UNDONE = 0.2
"""How often what was written is taken back."""

FILLER = "Patient clerks keep the ledgers of the counting house. "
UNKNOWN = (EngineUnreachable, Unavailable, NotFound)
"""What leaves it open whether something was written: what is not found may be what was not acknowledged before."""


@dataclass(frozen=True)
class State:
    """What a document is: the hash of its content, its tags, and whether it is a note."""

    content_hash: str
    tags: frozenset
    is_note: bool


@dataclass
class Client:
    """One who writes to paths of its own, one after the other.

    `possible` has the states that each path may have: one, unless an answer did not come. None is no document. `files`
    has the tags that files at each path had: a file that comes back from the bin has its former ones as well.
    """

    name: str
    random: random.Random
    possible: dict = field(default_factory=dict)
    ids: dict = field(default_factory=dict)
    binned: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)
    acknowledged: int = 0
    undone: int = 0
    number: int = 0

    async def write(self, api):
        """Write until the engine is gone; each write is an operation of its own."""
        while True:
            path = f"/{self.name}/{self.random.randrange(KEYS)}"
            before = self.possible.get(path, {None})
            api.begin_operation(uuid4().hex)
            try:
                if len(before) == 1:
                    await self.step(api, path)
                    if self.possible[path] != before and self.random.random() < UNDONE:  # else there is none to undo
                        await self.take_back(api, path, before)
                else:
                    await self.learn(api, path)
            except EngineUnreachable:
                return

    async def take_back(self, api, path, before):
        """Undo the last write to a path, and sometimes undo the undo."""
        for _ in range(self.random.choice((1, 1, 2))):
            [state], [earlier] = self.possible[path], before
            operations = (await api.operations(limit=100))["operations"]
            number = next(each["number"] for each in operations if f"({self.name})" in (each["client"] or ""))
            api.begin_operation(uuid4().hex)
            async with Written(self, path, state, earlier):
                steps = (await api.undo(operation=number))["steps"]
                assert [each["skipped"] for each in steps] == [None], steps
            self.undone += 1
            if earlier is None:
                self.binned[path] = self.ids[path], state
            elif state is None:
                self.ids[path] = self.binned.pop(path)[0]
            before = {state}

    async def step(self, api, path):
        """One write to a path whose document is known, or is not there."""
        [state] = self.possible.get(path, {None})
        if state is None:
            acts = (self.add, self.upload, self.restore) if path in self.binned else (self.add, self.upload)
            await self.random.choice(acts)(api, path)
        else:
            acts = (self.update, self.retag, self.delete, self.add) if state.is_note else (self.retag, self.delete)
            await self.random.choice(acts)(api, path, state)

    def text(self):
        self.number += 1
        return f"{self.name} says {self.number}. " + FILLER * self.random.choice((0, 3, 60))

    async def add(self, api, path, before=None):
        text, tag = self.text(), f"t{self.random.randrange(9)}"
        tags = frozenset([tag, *(before.tags if before else ())])
        async with Written(self, path, before, State(hashed(text), tags, is_note=True)):
            job = await api.add_note(text=text, source_path=path, tags=[tag])
        await self.finish(api, path, job)

    async def upload(self, api, path):
        text, tag = self.text(), f"t{self.random.randrange(9)}"
        before = self.files.get(path, set()) | {frozenset()}
        possible = {State(hashed(text), tags | {tag}, is_note=False) for tags in before}
        async with Written(self, path, None, *possible):
            job = await api.add_file("ledger.txt", io.BytesIO(text.encode()), source_path=path, tags=[tag])
        await self.finish(api, path, job)
        await self.learn(api, path)

    async def learn(self, api, path):
        """See which of its possible states a document has."""
        state = state_of(await api.document(self.ids[path]))
        assert state in self.possible[path], f"{path} is {state}, and may be {self.possible[path]}"
        self.keep(path, state)

    def keep(self, path, state):
        self.possible[path] = {state}
        if state and not state.is_note:
            self.files.setdefault(path, set()).add(state.tags)

    async def finish(self, api, path, job):
        """Learn the document's id; a job that failed would be a write that is lost."""
        while (job := await api.job(job.get("job_id") or job["id"], wait=5))["status"] not in ("done", "failed"):
            pass
        assert job["status"] == "done", job
        self.ids[path] = job["document_id"]
        self.binned.pop(path, None)

    async def update(self, api, path, before):
        text = self.text()
        async with Written(self, path, before, State(hashed(text), before.tags, is_note=True)):
            await api.update_note(self.ids[path], text)

    async def retag(self, api, path, before):
        add, remove = {f"t{self.random.randrange(9)}"}, set(list(before.tags)[:1])
        after = State(before.content_hash, frozenset(before.tags - remove | add), before.is_note)
        async with Written(self, path, before, after):
            await api.change_tags(self.ids[path], add=sorted(add), remove=sorted(remove - add))
        self.keep(path, after)

    async def delete(self, api, path, before):
        async with Written(self, path, before, None):
            await api.delete_document(self.ids[path])
        self.binned[path] = self.ids[path], before

    async def restore(self, api, path):
        document_id, state = self.binned[path]
        async with Written(self, path, None, state):
            await api.restore(document_id)
        self.ids[path] = document_id
        del self.binned[path]

    def compare(self, found, in_bin=None):
        """Yield each difference to the acknowledged state. From then on, the found state counts."""
        for path, (document_id, _) in self.binned.items() if in_bin is not None else ():
            if self.possible[path] == {None} and document_id not in in_bin:
                yield f"document {document_id}, which was at {path}, is not in the bin any more"
        for path, possible in self.possible.items():
            documents = found.get(path, [])
            states = [state for state, _ in documents] or [None]
            if len(states) > 1:
                yield f"{path} is there {len(states)} times"
            if states[0] not in possible:
                yield f"{path} is {states[0]}, and may be {possible}"
            self.keep(path, states[0])
            self.ids[path] = documents[0][1] if documents else None
            if documents:
                self.binned.pop(path, None)


class Written:
    """A write to a path: until it is acknowledged, the state before is possible as well as those after it."""

    def __init__(self, client, path, before, *after):
        self._client, self._path, self._before, self._after = client, path, before, after

    async def __aenter__(self):
        self._client.possible[self._path] = {self._before, *self._after}

    async def __aexit__(self, kind, error, _):
        if error is None:
            self._client.possible[self._path] = {*self._after}
            self._client.acknowledged += 1
        elif isinstance(error, KbError) and not isinstance(error, UNKNOWN):
            raise AssertionError(f"refused: {error}") from error


def hashed(text):
    return sha256(text.encode()).hexdigest()


async def documents_by_path(api):
    """What is there: for each path its documents, each as its state and id."""
    found = {}
    async for each in api.iter_documents():
        found.setdefault(each["source_path"], []).append((state_of(each), each["id"]))
    return found


def state_of(document):
    return State(document["content_hash"], frozenset(document["tags"]), document["doc_type"] == "note")


async def ids_in_bin(api):
    """The ids of deleted documents that can be restored."""
    ids, cursor = set(), None
    while True:
        page = await api.bin(limit=500, cursor=cursor)
        ids |= {each["id"] for each in page["documents"]}
        if (cursor := page["next_cursor"]) is None:
            return ids


async def write_until_gone(url, clients):
    """Let each client write, as a program of its own."""

    async def write(client):
        async with EngineClient(url, agent=client.name) as api:
            await client.write(api)

    await asyncio.gather(*map(write, clients))


ACTIONS = ("start", "start", "start", "stop", "resume", "rollback", "finish")


async def reembed_until_gone(api, chance):
    """Start, stop and revert the computation of new vectors, at random."""
    while True:
        try:
            await api.reembed(chance.choice(ACTIONS))
        except NotReembedding:
            pass
        except EngineUnreachable:
            return
        await asyncio.sleep(chance.uniform(0, 0.5))
