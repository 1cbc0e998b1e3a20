"""A change of a note, and whether a call repeats it because its sender missed the first answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import pairwise, takewhile
from typing import Final

from kb import clock
from kb.api.errors import AlreadyMade, Invalid, KeyReused
from kb.api.fields import NOTE
from kb.documents.edit import Edit
from kb.store.protocol import Transaction
from kb.store.rows import Author, Document, NewJob, Version

REPEATED_SECONDS: Final = 600
"""For how long the same edit by the same author counts as a repeated one."""

LOOKED_AT: Final = 100
"""How many of a note's last versions may be that edit."""

NO_EDIT: Final = Edit()

NO_TITLE: Final = ""
"""Takes the title that somebody gave a note away, so that its text says it again."""


@dataclass(frozen=True, slots=True)
class NoteChange:
    """The changes to a note; its `content_hash` must be one of `if_match`.

    With `inline_tags`, the note also gets the #tags that only its new text has.
    `once` refuses an edit that its author has just made. A change with an `idempotency_key` is made once;
    `request_hash` is the hash of the whole call.
    """

    edit: Edit = NO_EDIT
    title: str | None = None
    tags_add: Sequence[str] = ()
    tags_remove: Sequence[str] = ()
    if_match: Collection[str] | None = None
    inline_tags: bool = False
    once: bool = False
    idempotency_key: str | None = None
    request_hash: str | None = None

    def makes(self, note: Document, former: str) -> bool:
        """Return whether the change makes a note from its earlier text."""
        try:
            text = self.edit.apply(former)
        except Invalid:
            return False
        removed = set(self.tags_remove).difference(self.tags_add)
        has_tags = set(self.tags_add) <= set(note.tags) and removed.isdisjoint(note.tags)
        return has_tags and self.title in (None, note.title) and _sha256(text) == note.content_hash


def is_repeated(tx: Transaction, note: Document, text: str, change: NoteChange, author: Author) -> bool:
    """Return whether a note has a change already: by its key, or from the version that `if_match` names (RFC 9110).

    Raises:
        AlreadyMade: without those, the author has just made it, its words are still there, and it has `once`.
        KeyReused: its key was used for another call.
    """
    if change.idempotency_key and (job := tx.jobs.with_key(change.idempotency_key)):
        if job.request_hash != change.request_hash:
            raise KeyReused
        return True
    if change.if_match is not None:
        is_other_version = note.content_hash not in change.if_match
        return is_other_version and any(
            former.document.content_hash in change.if_match and _made(tx, change, version, former)
            for version, former in pairwise(tx.history.versions(note.id, limit=2))
        )
    if change.once and change.edit.is_in(text):
        for version, former in _recent(tx, note, author):
            if _made(tx, change, version, former):
                raise AlreadyMade(
                    f"Note {note.id} already has this change, made {_age(version):.0f} seconds ago. To make it again,"
                    f" pass if_match={note.content_hash[:8]}."
                )
    return False


def keep_key(tx: Transaction, note: Document, change: NoteChange, author: Author) -> None:
    """Remember a change by its key, if it has one, for as long as the keys of new notes: as a job that is done."""
    if change.idempotency_key:
        key, request_hash = change.idempotency_key, change.request_hash
        job = NewJob(NOTE, note.title, idempotency_key=key, request_hash=request_hash, author=author)
        tx.jobs.finish(tx.jobs.add(job), note.id)


def _recent(tx: Transaction, note: Document, author: Author) -> Iterator[tuple[Version, Version]]:
    """Yield the versions that an author has just made, each with the one before it."""
    versions = pairwise(tx.history.versions(note.id, limit=LOOKED_AT))
    for version, former in takewhile(lambda pair: _age(pair[0]) <= REPEATED_SECONDS, versions):
        if (version.author.by, version.author.client) == (author.by, author.client):
            yield version, former


def _made(tx: Transaction, change: NoteChange, version: Version, former: Version) -> bool:
    return change.makes(version.document, "".join(chunk.text for chunk in tx.history.chunks(former)))


def _age(version: Version) -> float:
    """Return the seconds since a version was made."""
    return (clock.own.now() - datetime.fromisoformat(version.at)).total_seconds()


def _sha256(text: str) -> str:
    return sha256(text.encode()).hexdigest()
