"""What was changed since a moment is taken back: every document becomes again what it was then."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from kb.api.errors import KbError, NotFound, NotInBin, Stopped
from kb.documents.delete import delete
from kb.documents.lookup import check_moment
from kb.documents.restore import is_same_content, restore, revert
from kb.store.rows import NOBODY

if TYPE_CHECKING:
    from collections.abc import Callable

    from kb.documents.originals import Originals
    from kb.embed.protocol import Embedder
    from kb.store.protocol import Store, Transaction
    from kb.store.rows import Author, Binned, Document, Version

UndoAction = Literal["delete", "restore", "revert", "retag"]

ORDER: dict[UndoAction, int] = {"delete": 0, "restore": 1, "revert": 2, "retag": 2}
"""What was added goes first: it may stand where something else stood."""

ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class Step:
    """What is done to take back the changes of a document: `version` is what it becomes again.

    `skipped` says why nothing is done.
    """

    document_id: int
    title: str
    action: UndoAction
    version: int | None = None
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class Past:
    """What is known of a document: its versions, newest first, and its place in the bin."""

    versions: list[Version]
    binned: Binned | None

    @property
    def newest(self) -> Document:
        """The document as it stands, or stood when it was deleted."""
        return self.versions[0].document


def undo(
    store: Store,
    embedder: Embedder,
    originals: Originals,
    since: datetime,
    key: str | None = None,
    author: Author = NOBODY,
    checkpoint: Callable[[], None] = lambda: None,
) -> list[Step]:
    """Take back what was changed after a moment, or of that what a key changed; return what was done.

    Each document is taken back in a transaction of its own; those that cannot be are skipped. Done again, the same
    finds nothing that is left to do.

    Raises:
        Invalid, HistoryGone: it is not known how things stood at that moment.
    """
    author = replace(author, why=author.why or f"undo since {since.isoformat()}")

    def done(step: Step) -> Step:
        try:
            # What came inside another document has gone, or come back, with it.
            with suppress(NotFound, NotInBin):
                if step.action == "delete":
                    delete(store, originals, step.document_id, author)
                if step.action == "restore":
                    restore(store, embedder, step.document_id, author, checkpoint)
            if step.version is not None:
                revert(store, embedder, originals, step.document_id, step.version, None, author, checkpoint)
        except Stopped:
            raise
        except KbError as error:
            return replace(step, skipped=error.detail)
        return step

    return [step if step.skipped else done(step) for step in plan(store, since, key)]


def plan(store: Store, since: datetime, key: str | None = None) -> list[Step]:
    """Return what `undo` would do, in its order."""
    with store.read() as tx:
        check_moment(tx, since, "since")
        steps = [_step(tx, document_id, since, key) for document_id in tx.history.changed_since(since)]
    return sorted(filter(None, steps), key=lambda step: ORDER[step.action])


def _step(tx: Transaction, document_id: int, since: datetime, key: str | None) -> Step | None:
    past = Past(tx.history.versions(document_id, limit=ALL), tx.history.binned(document_id))
    authors = _authors(past, since)
    if key is not None:
        while authors and authors[-1].by != key:
            authors.pop()
        if not authors:
            return None
    step = _back(past, past.versions[0].number + bool(past.binned) - len(authors), since)
    if step and step.action == "delete" and not tx.history.has_bin:
        return replace(step, skipped="There is no bin (KB_BIN_DAYS=0): it would be gone for good.")
    if step and key is not None and any(each.by != key for each in authors):
        return replace(step, skipped="Someone else changed it afterwards.")
    return step


def _authors(past: Past, since: datetime) -> list[Author]:
    """Return who made the changes after a moment, the last one first: each made a version, but a deletion."""
    deleted = [past.binned.author] if past.binned and _is_after(past.binned.deleted_at, since) else []
    return deleted + [version.author for version in past.versions if _is_after(version.at, since)]


def _back(past: Past, number: int, since: datetime) -> Step | None:
    """Return the step back to a version; to none if it is 0, or was in the bin at that moment."""
    newest = past.newest
    step = Step(newest.id, newest.title, "delete")
    target = next((version for version in past.versions if version.number == number), None)
    if number == 0 or (target and target.until and not _is_after(target.until, since)):
        return None if past.binned else step
    if target is None:
        return replace(step, action="revert", skipped=f"Version {number} is not kept any more.")
    is_same = is_same_content(newest, target.document)
    is_changed = not is_same or set(newest.tags) != set(target.document.tags)
    version = number if is_changed else None
    if past.binned:
        return replace(step, action="restore", version=version)
    return replace(step, action="retag" if is_same else "revert", version=version) if is_changed else None


def _is_after(stamp: str, since: datetime) -> bool:
    return datetime.fromisoformat(stamp) > since
