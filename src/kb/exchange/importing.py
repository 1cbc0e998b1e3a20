"""Import an export into a database, empty or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from kb.api.errors import StoreError
from kb.backup.swap import complete_restore
from kb.documents.blob_place import blobs_apart
from kb.documents.lookup import existing_version
from kb.documents.originals import Originals
from kb.embed.protocol import Embedder
from kb.exchange.export import DOCUMENTS, VERSIONS
from kb.exchange.export_folder import SLICE, ExportFolder, Imported, slices
from kb.exchange.export_lines import ChunkLine, DocumentLine, VersionLine
from kb.exchange.export_rows import KEYS, PLAIN, VECTORS, exported_lines, exported_vectors, keys_of
from kb.exchange.import_merge import merge_export
from kb.filesystem import make_folder
from kb.index.words.language import guessed
from kb.ingest.chunk import Chunker
from kb.ingest.draft import body_hash_of
from kb.repair.named_model import open_named_model
from kb.running_engine import lock_path
from kb.settings import Settings
from kb.store.default_space import refusal
from kb.store.engine_lock import database_lock, sole_user
from kb.store.open import backend
from kb.store.row_mapping import iso
from kb.store.rows import Content, VectorSpace
from kb.store.sql import export_tables
from kb.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from kb.store.backend import MovedStore, MovedTransaction

    Embed = Callable[[Sequence[ChunkLine]], NDArray[np.float32]]
    """Returns the vectors of the next chunks."""

READY_MADE: Final = 16 * SLICE
"""The minimum number of chunks per transaction if the export has their vectors."""

AT_ONCE: Final = 500
"""The number of other rows per transaction."""


def import_folder(settings: Settings, folder: Path, on_documents: Callable[[int], None]) -> Imported:
    """Import an export; a second call after an interruption continues. All lines are checked before any is written.

    An empty database is refilled exactly and compared with the export at the end. For other databases see
    `merge_export`.

    Args:
        settings: the settings of the engine, which must not run.
        folder: the export.
        on_documents: receives the number of documents done.

    Raises:
        StartError: the engine runs, the export cannot be read, or the model or the database cannot be used.
    """
    export = ExportFolder(folder)
    export.check()
    with _locked(settings):
        embedder, space = _space(settings, export)
        with (
            backend(settings).opened_alone(settings, space) as store,
            blobs_apart(settings, to_write=True) as blobs,
        ):
            originals = Originals(blobs, keep=settings.keep_files)
            if (present := _beginning(store, export)) is not None:
                return _Refill(settings, store, export, originals, on_documents).run(present, embedder)
            if (kind := settings.store_kind).is_shared:
                raise StoreError(f"The database in {kind.title} is not empty. Import into an empty database.")
            embedder = embedder or _embedder_for(settings, space)
            return merge_export(cast("SqliteStore", store), export, embedder, originals, on_documents)


@contextmanager
def _locked(settings: Settings) -> Iterator[None]:
    """Keep engines out of the data folder and the database, and complete an interrupted restore."""
    make_folder(settings.data_dir, "KB_DATA_DIR")
    with ExitStack() as stack:
        stack.enter_context(sole_user(lock_path(settings.data_dir)))
        if not settings.store_kind.is_shared:
            path = settings.database_path
            make_folder(path.parent, "KB_DATA_DIR")
            stack.enter_context(sole_user(database_lock(path)))
        complete_restore(settings)
        for folder in (settings.staging_dir, settings.files_dir):  # a restore may have set them aside
            make_folder(folder, "KB_DATA_DIR")
        yield


def _space(settings: Settings, export: ExportFolder) -> tuple[Embedder | None, VectorSpace]:
    """Return the model for the vectors and its space; no model if the export has vectors that the database accepts."""
    recorded = export.about.vector_space
    if export.has_vectors and recorded and backend(settings).space_in_use(settings) in (None, recorded):
        return None, recorded
    embedder, _ = open_named_model(settings)
    return embedder, VectorSpace.of(embedder.spec, settings.model_dir)


def _embedder_for(settings: Settings, space: VectorSpace) -> Embedder:
    embedder, _ = open_named_model(settings)
    if (named := VectorSpace.of(embedder.spec, settings.model_dir)) != space:
        raise StoreError(refusal("The database", space, named))
    return embedder


def _beginning(store: MovedStore, export: ExportFolder) -> dict[str, int] | None:
    """Return the number of lines of each file that a database has; None if it has, or ever had, other content.

    Raises:
        StoreError: the other content is part of another import.
    """
    with store.read() as tx:
        present, difference = _compared(tx, export)
        given = tx.transfer.given_ids()
        are_its_own = all(given.get(name) in (0, last) for name, last in export.last_ids.items() if name in given)
        if difference is None and are_its_own:
            return present
        tx.transfer.check_whole()
    return None


def _compared(tx: MovedTransaction, export: ExportFolder) -> tuple[dict[str, int], str | None]:
    """Return the number of lines of each file before the first difference, and the place of the difference."""
    present = dict.fromkeys(export.counts, 0)
    for name, lines in exported_lines(tx).items():
        with export.open(name) as file:
            for line in lines:
                if not _covers(line, json.loads(file.readline() or "null")):
                    return present, f"{name}, line {present[name] + 1}"
                present[name] += 1
    return present, None


def _covers(line: Any, exported: Any) -> bool:  # noqa: ANN401 - JSON
    """Return whether a line contains everything in the exported one; it may have more fields."""
    match exported:
        case dict():
            return all(name in line and _covers(line[name], value) for name, value in exported.items())
        case list():
            return len(line) == len(exported) and all(map(_covers, line, exported))
        case str():  # some databases store times with milliseconds
            return line in (exported, f"{exported[:-1]}.000Z")
        case _:
            return bool(line == exported)


class _Refill:
    """Writes an export into an empty database, or continues to."""

    def __init__(
        self,
        settings: Settings,
        store: MovedStore,
        export: ExportFolder,
        originals: Originals,
        on_documents: Callable[[int], None],
    ) -> None:
        self._settings = settings
        self._store = store
        self._export = export
        self._originals = originals
        self._on_documents = on_documents
        self._imported = Imported()

    def run(self, present: dict[str, int], embedder: Embedder | None) -> Imported:
        """Write the missing lines of each file, and compare all of them.

        Raises:
            StoreError: a row is refused, or the database differs from the export.
        """
        self._write_documents(present[DOCUMENTS], embedder)
        self._write_versions(present[VERSIONS])
        self._export.stage_files(self._originals.blobs)
        for name in PLAIN:
            self._write_rows(name, present[name])
        self._finish()
        self._verify()
        with self._store.write() as tx:
            tx.transfer.settle()
        return self._imported

    @property
    def _knows_beginning(self) -> bool:
        """Whether the export records when its history begins. The first format does not."""
        return "history_begins" in self._export.about.model_fields_set

    def _write_documents(self, count: int, embedder: Embedder | None) -> None:
        lines: Iterator[DocumentLine] = self._export.lines(DOCUMENTS)
        before = sum(line.size for line in islice(lines, count))
        self._imported.there = count
        if not count:
            with self._store.write() as tx:
                tx.transfer.begin()
        with ExitStack() as stack:
            embed = self._made_with(embedder) if embedder else self._read_behind(before, stack)
            for part in slices(lines, None if embedder else READY_MADE):
                vectors = embed([chunk for line in part for chunk in line.chunks])
                ends = np.cumsum([line.size for line in part])[:-1]
                self._export.keep_files(self._originals, part)
                with self._store.write() as tx:
                    for line, own in zip(part, np.split(vectors, ends), strict=True):
                        with tx.transfer.translated_errors(f"document {line.id}"):
                            _add_document(tx, line, own)
                self._count(len(part))

    def _write_versions(self, count: int) -> None:
        lines: Iterator[VersionLine] = self._export.lines(VERSIONS)
        self._imported.there += sum(line.deleted is not None for line in islice(lines, count))
        for part in slices(lines, READY_MADE):
            self._export.keep_files(self._originals, part)
            with self._store.write() as tx:
                for line in part:
                    with tx.transfer.translated_errors(f"an earlier version of document {line.id}"):
                        _add_version(tx, line)
            self._count(sum(line.deleted is not None for line in part))

    def _write_rows(self, name: str, count: int) -> None:
        lines = islice(self._export.lines(name), count, None)
        while part := list(islice(lines, AT_ONCE)):
            with self._store.write() as tx, tx.transfer.translated_errors(f"a line of {name}"):
                for line in part:
                    tx.transfer.insert(PLAIN[name], line.model_dump())

    def _made_with(self, embedder: Embedder) -> Embed:
        chunker = Chunker(embedder)
        return lambda chunks: embedder.embed_passages([chunker.passage(chunk.header, chunk.text) for chunk in chunks])

    def _read_behind(self, before: int, stack: ExitStack) -> Embed:
        """Return a reader of the export's vectors, starting after the first `before`."""
        dimensions = self._export.dimensions
        file = stack.enter_context(self._export.open(VECTORS))
        file.seek(4 * dimensions * before)
        return lambda chunks: np.frombuffer(file.read(4 * dimensions * len(chunks)), "<f4").reshape(-1, dimensions)

    def _count(self, added: int) -> None:
        self._imported.added += added
        self._on_documents(self._imported.there + self._imported.added)

    def _finish(self) -> None:
        """Write facts about the whole database; from now on the ids of the export are reserved."""
        about = self._export.about
        with self._store.write() as tx:
            keys = keys_of(self._settings, tx)
            self._imported.keys = sum(keys.add(line.key) for line in self._export.lines(KEYS))
            begins = about.history_begins if self._knows_beginning else iso(tx.documents.now)
            tx.transfer.set_beginning(begins)
            tx.transfer.set_last_ids(self._export.last_ids)
            if self._export.has_vectors:
                tx.transfer.clear(export_tables.PRECISIONS)
                for precision, vectors in about.precisions.items():
                    tx.transfer.insert(export_tables.PRECISIONS, {"precision": precision, "vectors": vectors})
            tx.transfer.finish()

    def _verify(self) -> None:
        """Compare the database with the export, line by line.

        Raises:
            StoreError: they differ.
        """
        about = self._export.about
        with self._store.read() as tx:
            present, difference = _compared(tx, self._export)
            absent = [name for name in present if name != KEYS and present[name] != self._export.counts[name]]
            last_ids = tx.transfer.last_ids()
            begins = tx.transfer.begins() if self._knows_beginning else None
            facts = begins, {name: last_ids[name] for name in self._export.last_ids}
            if difference is None and absent:
                difference = f"{absent[0]}, line {present[absent[0]] + 1}"
            if difference is None and facts != (about.history_begins, self._export.last_ids):
                difference = "kb-export.json, history_begins or last_ids"
            if difference is None and self._export.has_vectors:
                with self._export.open(VECTORS) as file:
                    if any(block != file.read(len(block)) for block in exported_vectors(tx)):
                        difference = VECTORS
        if difference:
            raise StoreError(
                f"After the import, the database differs from the export ({difference}). Import into an empty database."
            )
        self._imported.compared = sum(present.values())


def _add_document(tx: MovedTransaction, line: DocumentLine, vectors: NDArray[np.float32]) -> None:
    """Write a document with its ids. Earlier formats have no chunk ids, and some of them no languages."""
    says_language = "language" in line.model_fields_set
    language = line.language if says_language else guessed([chunk.text for chunk in line.chunks])
    chunks = [chunk.row() for chunk in line.chunks]
    ids = [chunk.id for chunk in line.chunks if chunk.id]
    tx.transfer.insert(export_tables.DOCUMENTS, dict(line) | {"language": language})
    content = Content(
        line.doc_type,
        line.title,
        line.content_hash,
        chunks,
        vectors,
        language=language,
        body_hash=body_hash_of(line.doc_type, chunks),
        message_ids=line.message_ids,
    )
    tx.documents.add_chunks(line.id, content, ids if len(ids) == len(chunks) else None)
    tx.documents.add_tags(line.id, line.tags)


def _add_version(tx: MovedTransaction, line: VersionLine) -> None:
    """Write an earlier version, and its entry in the bin; it may share its content with a version before it."""
    content_id = existing_version(tx, line.id, line.chunks_of).content_id if line.chunks_of else None
    tx.transfer.insert(export_tables.VERSIONS, dict(line) | {"content_id": content_id})
    if line.chunks is not None:
        new_ids = repeat(0) if all(chunk.id for chunk in line.chunks) else tx.documents.new_chunk_ids(line.size)
        numbered_chunks = zip(line.chunks, new_ids, strict=False)
        tx.documents.keep_content(
            line.id, [chunk.former(index, new) for index, (chunk, new) in enumerate(numbered_chunks)]
        )
    if line.deleted:
        tx.transfer.insert(export_tables.BIN, dict(line.deleted) | {"id": line.id, "version": line.version})
