"""A knowledge base of any size with everything in it: history, bin, files, threads, folders, jobs, keys, audit lines."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from hashlib import sha256

import numpy as np

from kb.blobs.folder import FolderBlobs
from kb.blobs.protocol import kept_as
from kb.store.rows import AuditEvent, Author, ChunkPosition, Content, NewChunk, NewJob

SYLLABLES = ("ka", "lo", "mi", "run", "ning", "tes", "ted", "Zü", "rich", "ver", "ein", "bel", "sto", "ne", "qui", "ra")
UNSPACED = ("教程", "編程語言", "データベース", "知識")
TAGS = ("red", "blue", "garden", "café", "thread:red", "thread:blue", "日記")
PATHS = (None, "/letters/{}.md", "/letters/old/{}.md", "notes/{}", "/alone-{}")
AUTHORS = (Author(), Author("anna", "cli"), Author("bot", "mcp", "it was wrong"))
BATCH = 50


@dataclass
class Library:
    """Writes documents into a store without other writers, the same documents for the same seed.

    Args:
        store: the store.
        settings: those of its engine, for its files.
        dimensions: of a vector.
    """

    store: object
    settings: object
    dimensions: int
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    there: list[int] = field(default_factory=list)

    def __post_init__(self):
        self.words = ["".join(self.chance.choices(SYLLABLES, k=self.chance.randint(1, 4))) for _ in range(2000)]
        self.words += UNSPACED
        self.vectors = np.random.default_rng(7).normal(size=(len(self.words), self.dimensions)).astype(np.float32)
        self.blobs = FolderBlobs(self.settings.files_dir.parent)
        for folder in (self.settings.files_dir, self.settings.staging_dir):
            folder.mkdir(parents=True, exist_ok=True)

    def fill(self, count):
        """Add documents, and change some of them after each batch."""
        for start in range(0, count, BATCH):
            with self.store.write() as tx:
                self.there += [self.add(tx, start + number) for number in range(min(BATCH, count - start))]
            with self.store.write() as tx:
                self.change(tx, 20)
        with self.store.write() as tx:
            self.queue(tx)

    def add(self, tx, number):
        """Add a document: a note, a short one, a file, or one that came inside a file."""
        path = self.chance.choice(PATHS)
        is_file = number % 7 == 0
        content = self.content(f"document {number}", "text" if is_file else "note", lengths=self.lengths())
        if is_file:
            self.keep_file(content)
        part_of = self.pick(tx) if self.there and number % 23 == 0 else None
        tags = self.chance.sample(TAGS, self.chance.randint(0, 3))
        author = self.chance.choice(AUTHORS)
        added = tx.documents.add(content, path and path.format(number), tags, part_of, author)
        tx.audit.add([AuditEvent("added", added)], author)
        return added

    def change(self, tx, count):
        """Update, retag, move, replace and delete some documents."""
        for number in range(count):
            chosen = self.pick(tx)
            author = self.chance.choice(AUTHORS)
            match number % 10:
                case 0 | 1 | 2:
                    tx.history.keep(chosen, author)
                    tx.documents.replace(chosen, self.content(f"changed {chosen} {self.chance.random()}"))
                case 3 | 4:
                    tx.history.keep(chosen, author)
                    tx.documents.change_tags(chosen, add=[self.chance.choice(TAGS)], remove=[self.chance.choice(TAGS)])
                case 5 | 6:
                    tx.history.keep(chosen, author)
                    tx.documents.move(chosen, f"/moved/{chosen}")
                case 7:
                    content = self.content(f"in the place of {chosen}", replaces=chosen)
                    self.there.append(tx.documents.add(content, None, ["red"]))
                case _:
                    tx.history.discard(chosen, author)
                    if number % 20 == 19:
                        tx.documents.delete(chosen)
            tx.audit.add([AuditEvent("changed", chosen)], author)

    def pick(self, tx):
        """Return a document that is there."""
        while True:
            place = self.chance.randrange(len(self.there))
            if tx.documents.get(self.there[place]):
                return self.there[place]
            self.there[place] = self.there[-1]
            self.there.pop()

    def queue(self, tx):
        """Leave jobs of every kind: done, failed, running and queued, with texts and with files."""
        for number in range(12):
            (self.settings.staging_dir / f"staged-{number}").write_text(f"a file {number}")
            digest = sha256(f"a file {number}".encode()).hexdigest()
            tx.jobs.add(NewJob("file", staged=f"staged-{number}", filename=f"{number}.txt", content_hash=digest))
            note = NewJob(
                "note", f"title {number}", f"/queued/{number}", ("red",), "text\0 with a NUL", request_hash="r"
            )
            tx.jobs.add(replace(note, idempotency_key=f"key {number}") if number % 2 else note)
        for job in tx.jobs.claim(12)[:8]:
            if job.id % 3:
                tx.jobs.finish(job.id, self.pick(tx), existed=job.id % 2 == 0, omitted={"files": job.id})
            else:
                tx.jobs.fail(job.id, "it cannot be read")
        tx.audit.add([AuditEvent("key added", key="anna")], Author("admin", "cli"))

    def content(self, title, doc_type="note", *, lengths=(30,), replaces=None):
        """Return a content with the given numbers of words in its chunks, and vectors of the words."""
        chunks, vectors, place = [], [], 0
        for number, length in enumerate(lengths):
            chosen = self.chance.choices(range(len(self.words)), k=length)
            text = " ".join(self.words[each] for each in chosen)
            heading = ("Part", f"Section {number // 2}") if number else ()
            place_of = ChunkPosition(number + 1, number + 1, place, place + len(text), heading, 1 if number else None)
            chunks.append(NewChunk(text, " ".join((title, *heading)) if number else title, place_of))
            vectors.append(self.vector(chosen))
            place += len(text)
        digest = sha256("".join(chunk.text for chunk in chunks).encode()).hexdigest()
        own_tags, date = (
            ("garden",) if len(lengths) > 2 else (),
            self.chance.choice((None, "2024-05-01", "5. Mai 2023")),
        )
        given = {"source": "a letter", "filename": f"{title}.txt" if doc_type != "note" else None, "replaces": replaces}
        given["omitted"] = {"files": 2, "formulas": 14} if len(lengths) > 2 else {}
        return Content(doc_type, title, digest, chunks, np.array(vectors), own_tags, date, title_given=True, **given)

    def question(self):
        """Return words to search for, and their vector."""
        chosen = self.chance.choices(range(len(self.words)), k=4)
        return " ".join(self.words[each] for each in chosen), self.vector(chosen)

    def vector(self, chosen):
        """Return the vector of some words."""
        total = self.vectors[chosen].sum(0)
        return total / np.linalg.norm(total)

    def keep_file(self, content):
        """Keep the file that a content came from."""
        path = self.blobs.path(kept_as(content.content_hash))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(chunk.text for chunk in content.chunks))

    def lengths(self):
        """Return the number of words of each chunk of a document. Many documents are short notes."""
        return [self.chance.randint(20, 60) for _ in range(self.chance.choice((1, 1, 1, 2, 4)))]
