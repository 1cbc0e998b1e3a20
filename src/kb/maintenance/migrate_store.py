"""A whole database is taken over by another one, of the same kind or not."""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kb.api.errors import StoreError
from kb.blobs.protocol import Blobs, kept_names, staged_as
from kb.blobs.scratch import Blocks
from kb.documents.blob_place import blobs_apart
from kb.filesystem import make_folder
from kb.maintenance.comparison import differences
from kb.maintenance.restoring import finish_restore
from kb.store.open import database_path, is_postgres, open_destination, open_origin
from kb.store.transfer import AUDIT, JOBS, OPERATIONS, Destination, Origin, State, Table, Whole, check_arrived

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kb.settings import Settings
    from kb.store.protocol import Transaction

    Show = Callable[[str, int, int], None]
    """Is told what is being done, how much of it is done, and of how much."""

BATCH: Final = 500
"""How many documents are looked at together."""

ROWS: Final = {"jobs": 50, "operations": 1000, "audit": 1000}
"""How many rows of a table; a job may have a long text."""

WRITTEN: Final = 8 << 20
"""About how many bytes are written together at least, unless there are less."""


@dataclass(slots=True)
class Migrated:
    """What came of it.

    Args:
        documents: how many there are, those in the bin too.
        written: how many of them were not there, or had changed.
        removed: how many were there and are no more.
        files: how many files there are.
        absent: how many files documents and jobs name that neither has.
        differences: what is not as in the source.
    """

    documents: int = 0
    written: int = 0
    removed: int = 0
    files: int = 0
    absent: int = 0
    differences: list[str] = field(default_factory=list)


def migrate_store(source: Settings, target: Settings, show: Show, *, verify_only: bool) -> Migrated:
    """Take over what the source holds at one moment, and compare both.

    A restore of either that was cut off is finished first. Given again after it was cut off, it goes on; after it was
    whole, it takes over what has changed since, until an engine uses the target.

    Args:
        source: the settings of an engine, which may run.
        target: those of another one with the same data directory, which must not.
        show: is told how far it is.
        verify_only: compare, and copy nothing.

    Raises:
        StartError: a database cannot be used, or the target holds something of elsewhere.
    """
    if source.database == target.database:
        raise StoreError("Source and target are the same database.")
    for settings, option in ((source, "--from"), (target, "--to")):
        if not is_postgres(settings.database_url):
            database_path(settings.database_url, settings.data_dir, option)
        finish_restore(settings)
    migrated = Migrated()
    with open_origin(source.database_url, source.data_dir) as origin:
        check_arrived(origin.arrival())
        migrated.documents = origin.count()
        if verify_only:
            _compare(migrated, origin, source, target, show)
            return migrated
        with open_destination(target.database_url, target.data_dir, origin.space) as destination:
            destination.begin(source.database, origin.facts().last_ids)
            # First: those that wait go with their jobs.
            with _files(source) as files, _files(target, to_write=True) as copies:
                copy_files(names_of(origin.tx), files, copies, show)
            _copy_documents(migrated, origin, destination, show)
            for table in (JOBS, OPERATIONS, AUDIT):
                _copy_rows(origin, destination, table, show)
            show("finishing", 0, 0)
            destination.complete(origin.facts())
            _compare(migrated, origin, source, target, show)
            if not migrated.differences:
                destination.finish()
    return migrated


def copy_files(names: Sequence[str], files: Blobs, copies: Blobs, show: Show) -> None:
    """Bring over the files of these names, as far as they are there."""
    for number, name in enumerate(names, start=1):
        if copies.size(name) is None:
            # It may not have been kept, or what needed it went after that moment.
            with suppress(FileNotFoundError), closing(files.open(name)) as found:
                copies.put(name, Blocks(found.blocks))
        show("copying files", number, len(names))


def names_of(tx: Transaction) -> list[str]:
    """Return the names of the files that documents came from, and of those that wait for a job."""
    kept, staged = kept_names(tx.documents.file_hashes()), map(staged_as, tx.jobs.staged())
    return [*sorted(kept), *sorted(staged)]


@contextmanager
def _files(settings: Settings, *, to_write: bool = False) -> Iterator[Blobs]:
    for folder in (settings.files_dir, settings.staging_dir):
        make_folder(folder, "KB_DATA_DIR")
    folder = settings.files_dir.parent
    with blobs_apart(settings.database_url, settings.blob_url, folder, to_write=to_write) as blobs:
        yield blobs


def _compare(migrated: Migrated, origin: Origin, source: Settings, target: Settings, show: Show) -> None:
    with open_origin(target.database_url, target.data_dir) as copy, _files(source) as files, _files(target) as copies:
        found = list(differences(origin, copy, lambda done: show("comparing documents", done, migrated.documents)))
        show("comparing words", 0, 0)
        missing = _missing_files(migrated, names_of(origin.tx), files, copies)
        migrated.differences = [*found, *copy.full_text_faults(), *missing]


def _missing_files(migrated: Migrated, names: Iterable[str], files: Blobs, copies: Blobs) -> Iterator[str]:
    """Yield what is to be said of files that the source has and the target has not; count the rest."""
    for name in names:
        size, copied = files.size(name), copies.size(name)
        if size is not None:
            migrated.files += 1
            if copied != size:
                yield f"file {name}: the target has none of that size"
        elif copied is None:
            migrated.absent += 1


def _copy_documents(migrated: Migrated, origin: Origin, destination: Destination, show: Show) -> None:
    after, done = 0, 0
    while True:
        ids = origin.ids(after, BATCH)
        upto = ids[-1] if len(ids) == BATCH else ALL
        states, there = origin.states(after, upto), destination.origin.states(after, upto)
        changed = {id_: state for id_, state in states.items() if there.get(id_) != state}
        migrated.written += len(changed)
        migrated.removed += len(there.keys() - states.keys())
        if gone := there.keys() - states.keys():
            destination.write(gone, [])
        for part in _slices(changed):
            wholes = [Whole(id_, state, origin.held(id_)) for id_, state in part]
            destination.write([id_ for id_, _ in part if id_ in there], wholes)
            show("copying documents", done := done + len(part), migrated.documents)
        done += len(states) - len(changed)
        show("copying documents", done, migrated.documents)
        if upto == ALL:
            return
        after = upto


def _copy_rows(origin: Origin, destination: Destination, table: Table, show: Show) -> None:
    after, done = 0, 0
    while True:
        keys = origin.keys(table, after, ROWS[table.name])
        upto = keys[-1] if len(keys) == ROWS[table.name] else ALL
        rows, there = origin.rows(table, after, upto), destination.origin.rows(table, after, upto)
        changed = [row for key, row in rows.items() if there.get(key) != row]
        gone = [key for key in there if there[key] != rows.get(key)]
        if gone or changed:
            destination.write_rows(table, gone, changed)
        show(f"copying {table.name}", done := done + len(rows), 0)
        if upto == ALL:
            return
        after = upto


ALL: Final = 1 << 62
"""Above every id."""


def _slices(changed: dict[int, State]) -> Iterator[list[tuple[int, State]]]:
    part: list[tuple[int, State]] = []
    size = 0
    for id_, state in changed.items():
        part.append((id_, state))
        size += state.size
        if size >= WRITTEN:
            yield part
            part, size = [], 0
    if part:
        yield part
