"""Whether a change of a note repeats one, because its sender missed the first answer."""

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise, takewhile
from typing import Final

from kb import clock
from kb.api.errors import AlreadyMade, KeyReused
from kb.api.fields import NOTE
from kb.documents.note_edit import NoteChange
from kb.store.protocol import Transaction
from kb.store.rows import Author, Document, NewJob, Version

REPEATED_SECONDS: Final = 600
"""For how long the same edit by the same author counts as a repeated one."""

LOOKED_AT: Final = 100
"""How many of a note's last versions may be that edit."""


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
