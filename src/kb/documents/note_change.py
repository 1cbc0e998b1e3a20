"""A change of a note, and whether a call repeats it because its sender missed the first answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final

from kb import clock
from kb.api.errors import AlreadyMade, Invalid
from kb.documents.edit import Edit
from kb.store.protocol import Transaction
from kb.store.rows import Author, Document, Version

REPEATED_SECONDS: Final = 600
"""For how long the same change by the same author counts as a repeated one."""

NO_EDIT: Final = Edit()


@dataclass(frozen=True, slots=True)
class NoteChange:
    """The changes to a note; its `content_hash` must be one of `if_match`. `once` refuses a repeated edit."""

    edit: Edit = NO_EDIT
    title: str | None = None
    tags_add: Sequence[str] = ()
    tags_remove: Sequence[str] = ()
    if_match: Collection[str] | None = None
    once: bool = False

    def makes(self, note: Document, former: str) -> bool:
        """Return whether the change makes a note from its former text."""
        try:
            text = self.edit.apply(former)
        except Invalid:
            return False
        removed = set(self.tags_remove).difference(self.tags_add)
        has_tags = set(self.tags_add) <= set(note.tags) and removed.isdisjoint(note.tags)
        return has_tags and self.title in (None, note.title) and _sha256(text) == note.content_hash


def is_repeated(tx: Transaction, note: Document, change: NoteChange, author: Author) -> bool:
    """Return whether the last change of a note was the same one, from the version that `if_match` names (RFC 9110).

    Raises:
        AlreadyMade: without `if_match`, the author has just made it, and it is to be made `once`.
    """
    is_edit = change.edit != NO_EDIT and change.edit.rests_on_text
    is_other_version = change.if_match is not None and note.content_hash not in change.if_match
    if not (is_other_version or (change.once and is_edit and change.if_match is None)):
        return False
    last, *earlier = tx.history.versions(note.id, limit=2)
    if not earlier or not _may_repeat(change, author, last, earlier[0].document):
        return False
    if not change.makes(note, "".join(chunk.text for chunk in tx.history.chunks(earlier[0]))):
        return False
    if change.if_match is None:
        raise AlreadyMade(
            f"Note {note.id} already has this change, made {_age(last):.0f} seconds ago. To make it again, pass"
            f" if_match={note.content_hash[:8]}."
        )
    return True


def _may_repeat(change: NoteChange, author: Author, last: Version, former: Document) -> bool:
    if change.if_match is not None:
        return former.content_hash in change.if_match
    is_own = (last.author.by, last.author.client) == (author.by, author.client)
    return is_own and _age(last) <= REPEATED_SECONDS


def _age(version: Version) -> float:
    """Return the seconds since a version was made."""
    return (clock.own.now() - datetime.fromisoformat(version.at)).total_seconds()


def _sha256(text: str) -> str:
    return sha256(text.encode()).hexdigest()
