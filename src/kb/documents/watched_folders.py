"""Synced folders that a program on their machine watches.

The records of what to watch are on that machine: an engine cannot make a program read a folder. The engine keeps the
reports of the program, and requests to sync now.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from pydantic import ValidationError

from kb.api.errors import FolderTaken, NotFound
from kb.api.folder_models import FolderWatch, SyncedFolder, WatchRecord, WatchReport, WatchRequest, WatchState
from kb.store import rows
from kb.store.protocol import Transaction

NOTED: Final = timedelta(seconds=60)
"""How often kb writes that a program was seen."""

LOST: Final = timedelta(seconds=180)
"""A program that was not seen for this long has stopped."""


def shown(folder: rows.SyncedFolder) -> SyncedFolder:
    record = read(folder)
    watch = FolderWatch(**dict(record), state=state_of(record)) if record else None
    return SyncedFolder.model_validate(replace(folder, watch=None)).model_copy(update={"watch": watch})


def read(folder: rows.SyncedFolder) -> WatchRecord | None:
    """Return the watch of a folder, or None if there is none, or if a later version of kb wrote it in another form."""
    with suppress(ValidationError):
        return WatchRecord.model_validate_json(folder.watch) if folder.watch else None
    return None


def state_of(watch: WatchRecord) -> WatchState:
    """Return the state of a watch."""
    if watch.seen_at is None:
        return "new"
    if age(watch.seen_at) > LOST:
        return "stopped"
    if watch.is_syncing:
        return "syncing"
    return "failing" if watch.error else "watching"


def age(stamp: str) -> timedelta:
    """Return the time since `stamp`."""
    return datetime.fromisoformat(rows.now_iso()) - datetime.fromisoformat(stamp)


def watched(tx: Transaction) -> Iterator[tuple[rows.SyncedFolder, WatchRecord]]:
    for folder in tx.folders.all():
        if record := read(folder):
            yield folder, record


def find(tx: Transaction, watch_id: str) -> tuple[rows.SyncedFolder, WatchRecord]:
    """Return a watched folder.

    Raises:
        NotFound: nothing watches under this id, or the folder is outside the caller's limit.
    """
    for folder, record in watched(tx):
        if record.id == watch_id:
            return folder, record
    raise NotFound(f"No folder is watched under the id {watch_id}.")


def write(tx: Transaction, folder: rows.SyncedFolder, record: WatchRecord) -> rows.SyncedFolder:
    """Write the watch of a folder, and return the folder."""
    changed = replace(folder, watch=record.model_dump_json(exclude_defaults=True))
    tx.folders.set_watch(folder.prefix, changed.watch, is_kept=folder.is_kept)
    return changed


def begin(tx: Transaction, watch_id: str, request: WatchRequest) -> rows.SyncedFolder:
    """Record that a machine watches a folder; earlier reports of the same watch stay.

    Raises:
        NotFound: the folder is not registered.
        FolderTaken: another machine has it.
    """
    folder = next((folder for folder in tx.folders.all() if folder.prefix == request.prefix), None)
    if folder is None:
        raise NotFound(f"No folder is registered as {request.prefix}. Register it first.")
    if folder.machine != request.machine:
        raise FolderTaken(f"{folder.prefix.rstrip('/')!r} is already the name of {folder.path} on {folder.host}.")
    before = read(folder)
    if before is None or before.id != watch_id:
        before = WatchRecord(id=watch_id, tags=[], delete=False)
    for other, record in watched(tx):
        if record.id == watch_id and other.prefix != folder.prefix:  # it had another name
            tx.folders.set_watch(other.prefix, None)
    options = request.model_dump(include={"tags", "delete", "both", "exclude", "new_notes"})
    options["kept_since"] = (before.kept_since or rows.now_iso()) if request.both else None
    return write(tx, replace(folder, is_kept=request.both), before.model_copy(update=options))


def end(tx: Transaction, watch_id: str) -> rows.SyncedFolder:
    """Record that nothing watches a folder any more. Raises the same errors as `find`."""
    folder, _ = find(tx, watch_id)
    tx.folders.set_watch(folder.prefix, None)
    return replace(folder, watch=None)


def ask(tx: Transaction, watch_id: str) -> rows.SyncedFolder:
    """Record a request to sync a folder now. Raises the same errors as `find`."""
    folder, record = find(tx, watch_id)
    return write(tx, folder, record.model_copy(update={"asked_at": rows.now_iso()}))


def report(tx: Transaction, watch_id: str, outcome: WatchReport) -> rows.SyncedFolder:
    """Record the end of a round. Raises the same errors as `find`."""
    folder, record = find(tx, watch_id)
    now = rows.now_iso()
    changes: dict[str, object] = {"seen_at": now, "is_syncing": False, "error": outcome.error}
    if outcome.answers == record.asked_at:
        changes["asked_at"] = None
    if outcome.result:
        changes |= {"synced_at": now, "result": outcome.result}
    changes["failing_since"] = (record.failing_since or now) if outcome.error else None
    return write(tx, folder, record.model_copy(update=changes))


def is_noted(record: WatchRecord, *, is_syncing: bool) -> bool:
    """Return whether kb has recently written this state."""
    return record.is_syncing == is_syncing and record.seen_at is not None and age(record.seen_at) < NOTED


def note(tx: Transaction, watch_id: str, *, is_syncing: bool) -> None:
    """Record that a program watches a folder now. Raises the same errors as `find`."""
    folder, record = find(tx, watch_id)
    write(tx, folder, record.model_copy(update={"seen_at": rows.now_iso(), "is_syncing": is_syncing}))
