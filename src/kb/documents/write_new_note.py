"""Store a new note within its request, so that searches by words find it as soon as the sender has the answer."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, NamedTuple

from kb.api.errors import ModelChanged
from kb.api.fields import NOTE
from kb.api.job_models import JobAccepted
from kb.api.note_models import Alike, NoteRequest
from kb.blobs.protocol import Blobs
from kb.documents.job_queue import check_replaced, note_job, receipt, receipt_again, submit_note
from kb.documents.lookup import existing_job
from kb.documents.similar_notes import MOST_ALIKE, find_alike, says_nothing_new
from kb.documents.vectors_by_job import add_vectors
from kb.documents.write_document import known_note, write_document
from kb.embed.protocol import Likeness
from kb.formats.text.base64_data import without_embedded
from kb.ingest.active_model import again_if_model_changed
from kb.ingest.draft import Draft, draft_note
from kb.ingest.vectors_at_once import NoteVectors
from kb.store.protocol import Store, Transaction
from kb.store.rows import NOBODY, Author, Content, Document, Filter, Job, NewJob, optional_fields

NEWEST: Final = 100
"""How many notes that arrived while one was prepared are compared with it."""


class Ready(NamedTuple):
    """A note to store; without `has_vectors`, its vectors are zeros until its job makes them.

    `likeness` is the scale of its model's cosines.
    """

    job: NewJob
    content: Content
    has_vectors: bool
    likeness: Likeness = Likeness()

    def alike(self, tx: Transaction, among: Sequence[int] | None = None) -> tuple[list[Alike], Alike | None]:
        """Return the similar notes and the nearest one, without those that this note replaces; only some of `among`."""
        occupant = tx.documents.at_path(self.job.source_path) if self.job.source_path else None
        besides = {self.job.replaces, occupant.id if occupant else None}
        likeness = self.likeness if self.has_vectors else None
        return find_alike(tx, self.content, likeness=likeness, besides=besides, among=among)

    def refused(self, tx: Transaction, alike: list[Alike], nearest: Alike | None) -> JobAccepted | None:
        """Return the answer for a note that says nothing new; None if it does, or ends another fact or itself."""
        if self.job.replaces or self.job.valid_until:
            return None
        known = known_note(tx, self.content, self.job.source_path, self.job.tags)
        near = alike or list(filter(None, [nearest]))
        if known is None and not says_nothing_new(tx, self.content, near):
            return None
        return JobAccepted(
            job_id=None,
            status="done",
            stored=False,
            document_id=known.id if known else None,
            existed=known is not None,
            alike=[note for note in near if known is None or note.document_id != known.id],
        )


@dataclass(frozen=True, slots=True)
class NoteIntake:
    """Stores new notes.

    Args:
        blobs: the place of staged files.
        vectors: makes the vectors.
        checkpoint: is called regularly and may stop the work by raising an error.
    """

    store: Store
    blobs: Blobs
    vectors: NoteVectors
    checkpoint: Callable[[], None] = lambda: None

    def add(self, note: NoteRequest, idempotency_key: str | None = None, author: Author = NOBODY) -> JobAccepted:
        """Store a note, or queue it if only the worker can make a document of it.

        That is so for a note with embedded base64 pictures, for a note whose path an earlier job is about to write, and
        while this engine has not loaded the model in use.

        Raises:
            KeyReused: the key was used for another request.
            NotFound, NotANote: the document to replace does not exist, or is not a note.
            AlreadyReplaced: another note replaces that note.
            Forbidden: the key may not write there.
            DiskFull, FilesUnavailable: nothing can be kept now.
        """
        job = note_job(note, idempotency_key, author)
        shown = without_embedded(note.text)
        if shown == note.text:
            with suppress(ModelChanged):
                return self._stored(job, time.monotonic(), if_new=note.if_new)
        if note.if_new and (answer := self._refused(job, shown)):
            return answer
        return submit_note(self.store, self.blobs, note, idempotency_key, author)

    def _refused(self, job: NewJob, text: str) -> JobAccepted | None:
        """Return the answer for a queued note if its words say nothing new; otherwise None."""
        draft = draft_note(text, job.title, self.vectors.embedder, job.content_hash, self.checkpoint)
        ready = Ready(job, draft, has_vectors=False)
        with self.store.read() as tx:
            return None if with_key(tx, job) else ready.refused(tx, *ready.alike(tx))

    @again_if_model_changed
    def _stored(self, job: NewJob, arrived: float, *, if_new: bool) -> JobAccepted:
        with self.store.read() as tx:
            if before := with_key(tx, job):
                return receipt_again(before, job)
        draft = draft_note(job.text or "", job.title, self.vectors.embedder, job.content_hash, self.checkpoint)
        likeness = self.vectors.embedder.current.spec.likeness
        ready = Ready(job, *self.vectors.content(_with_fields(draft, job), arrived), likeness)
        with self.store.read() as tx:
            alike, nearest = ready.alike(tx)
            if if_new and (answer := ready.refused(tx, alike, nearest)):
                return answer
            newest = _notes(tx, 1)
        with self.store.write(self.checkpoint, urgent=True) as tx:
            if before := with_key(tx, job):
                return receipt_again(before, job)
            if if_new:
                # A search would take long, and other writes wait.
                late, nearest_late = ready.alike(tx, _notes_since(tx, newest))
                if answer := ready.refused(tx, late, nearest_late):
                    return answer
                alike = [*late, *(note for note in alike if note not in late)][:MOST_ALIKE]
            check_replaced(tx, job)
            stored = _write(tx, ready)
        others = [note for note in alike if note.document_id != stored.document_id]
        is_other = nearest is not None and nearest.document_id != stored.document_id
        return receipt(stored, others, nearest if is_other and not others else None)


def _write(tx: Transaction, ready: Ready) -> Job:
    """Write a note, its job and its words; return the job.

    An earlier job for the same path comes first: then the note is queued after it.
    """
    job, content, has_vectors, _ = ready
    queued = existing_job(tx, tx.jobs.add(job))
    if job.source_path is not None and tx.jobs.awaits(job.source_path, before=queued.id):
        return queued
    document_id, existed = write_document(tx, content, job.source_path, queued.tags, author=job.author)
    if job.source_path or not existed:
        tx.history.discard_parts(document_id, keep=(), author=job.author)
    if existed and has_vectors:
        add_vectors(tx, document_id, content)
    is_complete = (has_vectors and not existed) or tx.documents.has_vectors(document_id)
    end = tx.jobs.finish if is_complete else tx.jobs.set_document
    end(queued.id, document_id, existed=existed, omitted=content.omitted)
    return existing_job(tx, queued.id)


def _notes(tx: Transaction, most: int) -> list[Document]:
    """Return the notes that were changed or added last."""
    return tx.documents.page(Filter(doc_type=NOTE), sort="recent", limit=most, cursor=None)


def _notes_since(tx: Transaction, newest: Sequence[Document]) -> list[int]:
    """Return the ids of the notes changed or added after the newest one of an earlier transaction."""
    known = {(note.id, note.updated_at) for note in newest}
    return [note.id for note in takewhile(lambda note: (note.id, note.updated_at) not in known, _notes(tx, NEWEST))]


def with_key(tx: Transaction, job: NewJob) -> Job | None:
    return tx.jobs.with_key(job.idempotency_key) if job.idempotency_key else None


def _with_fields(draft: Draft, job: NewJob) -> Draft:
    return replace(draft, replaces=job.replaces, **optional_fields(job))
