"""Check a database and its files, and make the repairs that need no backup."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from kb.api.errors import ModelError
from kb.api.status_models import Attention
from kb.attention import Facts, attention, free_space
from kb.backup.record import BackupRecord
from kb.backup.swap import RestoreFolders, complete_restore
from kb.backup.verify import checks_of_data, open_data
from kb.blobs.folder import KeptFiles
from kb.filesystem import is_exposed
from kb.ingest.chunk import Chunker
from kb.repair.named_model import open_named_model
from kb.repair.reindex import reindex
from kb.running_engine import lock_path
from kb.settings import Settings
from kb.store.engine_lock import database_lock, sole_user
from kb.store.rows import VectorSpace
from kb.store.sqlite.integrity_rules import repair_codes, repair_rows
from kb.store.sqlite.vector_space import recorded_space
from kb.store.sqlite.verify import Check, Remedy, Verification

MAX_FAULTS: Final = 20
"""The maximum number of faults reported per check."""

SAMPLE: Final = 16
"""The number of vectors that are recomputed to check that they come from the model."""

SAME: Final = 0.98
"""The least cosine of two vectors of the same text; precisions differ less."""

RESTORE: Final = "interrupted restore"
"""The check for an interrupted restore."""

CUT_OFF: Final = (".new", ".new-journal", ".new-wal", ".new-shm")
"""The endings of files that a reindex writes, after the name of the database."""

Findings = dict[str, tuple[list[str], Remedy]]
"""By name of the check: the faults found, and the remedy."""


def check_data(settings: Settings, on_check: Callable[[str], None] = lambda _: None) -> Findings:
    """Return the faults found. Reads only; safe while an engine runs.

    After an interrupted restore, only that is reported, because the data is partly old or missing.

    Raises:
        StoreError: the database does not exist or cannot be read.
    """
    if faults := list(_unfinished_restore(settings)):
        return {RESTORE: (faults, Remedy.ROWS)}
    results: Findings = {}
    with closing(open_data(settings)) as database:
        for check in [*checks_of_data(database, settings), *_checks_of_place(database, settings)]:
            on_check(check.name)
            results[check.name] = (list(islice(check.find(), MAX_FAULTS)), check.remedy)
    return results


def is_well(results: Findings) -> bool:
    """Return whether nothing but notices was found."""
    return not any(faults for faults, remedy in results.values() if remedy is not Remedy.NOTICE)


def repair(settings: Settings, results: Findings, on_chunks: Callable[[int, int], None]) -> None:
    """Repair the given faults, as far as possible. No text and no kept file is removed.

    Raises:
        StartError: the engine runs, or the model or the database cannot be used.
    """
    needed = {remedy for faults, remedy in results.values() if faults}
    path = settings.database_path
    with ExitStack() as stack:
        for lock in (lock_path(settings.data_dir), database_lock(path)):
            stack.enter_context(sole_user(lock))
        complete_restore(settings)
        if Remedy.FILES in needed:
            repair_files(settings)
        if Remedy.ROWS in needed:
            repair_rows(path)
        if Remedy.CODES in needed:
            repair_codes(path)
    if needed & {Remedy.REBUILD, Remedy.VECTORS}:
        reindex(settings, on_chunks, recompute_all=Remedy.VECTORS in needed)


def _checks_of_place(database: Verification, settings: Settings) -> Sequence[Check]:
    path = settings.database_path
    return [
        Check(RESTORE, partial(_unfinished_restore, settings), Remedy.ROWS),
        Check("model", partial(_foreign_vectors, database, path, settings), Remedy.VECTORS),
        Check("unused files", partial(_strays, settings), Remedy.NOTICE),
        Check("leftovers", partial(_leftovers, path, settings), Remedy.FILES),
        Check("file permissions", partial(_exposed, path, settings), Remedy.FILES),
        Check("folder permissions", partial(_read_only, path, settings), Remedy.OPERATOR),
        *_attention(database, settings),
    ]


def _attention(database: Verification, settings: Settings) -> Iterator[Check]:
    """Yield what `kb.attention` decides about the place, as checks."""
    urgent = [item for item in found_attention(database, settings) if item.is_urgent]
    for name in ("disk space", "newest backup"):
        lines = [f"{item.says}; {item.remedy}" for item in urgent if item.name == name]
        yield Check(name, partial(iter, lines), Remedy.OPERATOR)


def found_attention(database: Verification, settings: Settings) -> list[Attention]:
    """Return what needs attention, as far as that shows without the engine."""
    backups, free = BackupRecord().facts(settings), free_space(settings)
    return attention(Facts(backups=backups, free=free, queue_age=database.queue_age()))


def advice(settings: Settings) -> dict[str, str]:
    """Return the advice that is not urgent, by the name of a check or a name of its own."""
    with closing(open_data(settings)) as database:
        items = found_attention(database, settings)
    return {item.name: f"{item.says}; {item.remedy}" for item in items if not item.is_urgent}


def _foreign_vectors(database: Verification, path: Path, settings: Settings) -> Iterator[str]:
    """Yield vectors that the model would compute differently; without a local model nothing is compared."""
    if not settings.model_dir and not (settings.data_dir / "models").is_dir():
        return
    try:
        embedder, _ = open_named_model(settings)
    except ModelError as error:
        yield f"kb cannot use the model: {error.detail}"
        return
    recorded, space = recorded_space(path), VectorSpace.of(embedder.spec)
    sample = database.sample(SAMPLE)
    if sample and recorded != space:
        yield f"the vectors come from {recorded}, but the model in use is {space}"
    elif sample:
        chunker = Chunker(embedder)
        made = embedder.embed_passages([chunker.passage(header, text) for header, text, _ in sample])
        stored = np.frombuffer(b"".join(raw for *_, raw in sample), np.float32).reshape(made.shape)
        if differing := int((np.sum(made * stored, axis=1) < SAME).sum()):
            yield f"{differing} of {len(sample)} vectors do not match their text"


def _strays(settings: Settings) -> Iterator[str]:
    """Yield the kept files that no document needs. Files are listed first, so that new ones do not count as stray."""
    digests = KeptFiles(settings.files_dir).digests()
    with closing(open_data(settings)) as database:
        needed = {digest for _, digest in database.file_hashes()} | database.pending_hashes()
    if strays := digests - needed:
        yield f"{len(strays)} kept files belong to no document, such as {min(strays)}; the next start removes them"


def _unfinished_restore(settings: Settings) -> Iterator[str]:
    if RestoreFolders.of(settings).are_unpacked:
        yield "a restore was interrupted; the next start of the engine also finishes it"


def _leftovers(path: Path, settings: Settings) -> Iterator[str]:
    yield from (f"{leftover} is left over from an interrupted command" for leftover in _cut_off(path, settings))


def _cut_off(path: Path, settings: Settings) -> list[Path]:
    """Return the leftovers of an interrupted reindex or restore."""
    rebuilt = (path.with_name(f"{path.name}{ending}") for ending in CUT_OFF)
    return [leftover for leftover in (*rebuilt, *RestoreFolders.of(settings).unfinished) if leftover.exists()]


def _exposed(path: Path, settings: Settings) -> Iterator[str]:
    for file in _exposed_files(path, settings):
        yield f"other accounts can read {file}"


def _exposed_files(path: Path, settings: Settings) -> list[Path]:
    logs = (path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm"))
    files = (file for folder in (settings.files_dir, settings.staging_dir) for file in folder.rglob("*"))
    # an extractor's program may make links
    candidates = (path, *logs, *(file for file in files if not file.is_symlink()))
    return [file for file in candidates if file.is_file() and is_exposed(file)]


def _read_only(path: Path, settings: Settings) -> Iterator[str]:
    for location in (settings.data_dir, path.parent, path, settings.files_dir, settings.staging_dir):
        if location.exists() and not os.access(location, os.W_OK):
            yield f"kb cannot write to {location}"


def repair_files(settings: Settings) -> None:
    """Remove leftovers, and hide files that other accounts can read. The caller must hold the data folder's lock."""
    path = settings.database_path
    for leftover in _cut_off(path, settings):
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    for leftover in _exposed_files(path, settings):
        leftover.chmod(0o600)
