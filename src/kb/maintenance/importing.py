"""An export comes into a knowledge base, empty or not."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from kb.api.errors import StoreError
from kb.api.models import NOTE
from kb.documents.originals import Originals
from kb.documents.save import save
from kb.documents.staging import discard, stage
from kb.embed.open import open_embedder
from kb.filesystem import make_folder
from kb.ingest.chunk import Chunker
from kb.maintenance.export import ABOUT, DOCUMENTS, FILES, FORMAT
from kb.maintenance.restore import complete_restore
from kb.store.lock import sole_user
from kb.store.open import database_lock, database_path
from kb.store.rows import Content, Document, NewChunk, Place, VectorSpace
from kb.store.sqlite.store import SqliteStore
from kb.store.sqlite.transfer import add_exact, skip_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from kb.settings import Settings
    from kb.store.sqlite.store import SqliteTransaction

SLICE: Final = 64
"""How many chunks are embedded, and written in one transaction, at least."""


@dataclass(slots=True)
class Imported:
    """How many documents were new, and how many were there with the same content and path, or gave way."""

    added: int = 0
    there: int = 0


@dataclass(frozen=True, slots=True)
class Arriving:
    """A document as an export has it."""

    document: Document
    part_of: int | None
    chunks: tuple[NewChunk, ...]

    def content(self, vectors: NDArray[np.float32]) -> Content:
        """Return what the document holds."""
        document = self.document
        return Content(
            document.doc_type,
            document.title,
            document.content_hash,
            self.chunks,
            vectors,
            document.own_tags,
            document.date,
            document.filename,
            document.title_given,
        )


def import_folder(settings: Settings, folder: Path, on_documents: Callable[[int], None]) -> Imported:
    """Bring an export in; given again after it was cut off, it goes on.

    What is there already, with the same content and path, stays one document and gets the tags of both; what has
    another content at the same path is replaced, as when it is added. All else is new, with its times, and with its id
    where neither that nor a higher one was ever given.

    Args:
        settings: those of the engine, which must not run.
        folder: the export.
        on_documents: is told how many documents are done.

    Raises:
        StartError: the engine runs, the export cannot be read, or the model or the database cannot be used.
    """
    last = _last_document_id(folder)
    path = database_path(settings.database_url, settings.data_dir)
    for each in (settings.data_dir, path.parent, settings.staging_dir, settings.files_dir):
        make_folder(each, "KB_DATA_DIR")
    with sole_user(settings.data_dir / "kb.lock"), sole_user(database_lock(path)):
        complete_restore(settings)
        embedder = open_embedder(settings.model_dir, settings.data_dir, settings.device, settings.precision)
        chunker, arrival = Chunker(embedder), _Arrival(settings, folder)
        with closing(SqliteStore(path, VectorSpace.of(embedder.spec))) as store:
            for part in _slices(_documents(folder)):
                inputs = [chunker.passage(chunk.header, chunk.text) for each in part for chunk in each.chunks]
                vectors = embedder.embed_passages(inputs)
                arrival.keep_originals(part)
                with store.write() as tx:
                    arrival.write(tx, part, vectors)
                on_documents(arrival.imported.added + arrival.imported.there)
            with store.write() as tx:
                skip_ids(tx, last)
    return arrival.imported


class _Arrival:
    """Writes documents, and knows what became of those before."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.imported = Imported()
        self._exported = Originals(folder / FILES, keep=True)
        self._originals = Originals(settings.files_dir, keep=settings.keep_files)
        self._staging = settings.staging_dir
        self._ids: dict[int, int] = {}
        self._new: set[int] = set()

    def keep_originals(self, part: Sequence[Arriving]) -> None:
        """Copy the files that documents came from.

        Raises:
            StoreError: one is not what it was.
        """
        for digest in {each.document.content_hash for each in part if each.document.doc_type != NOTE}:
            if (path := self._exported.path(digest)).exists():
                with path.open("rb") as file:
                    staged, found = stage(file, self._staging)
                try:
                    if found != digest:
                        raise StoreError(f"{path} is not what it was.")
                    self._originals.add(self._staging / staged, digest)
                finally:
                    discard(staged, self._staging)

    def write(self, tx: SqliteTransaction, part: Sequence[Arriving], vectors: NDArray[np.float32]) -> None:
        """Write documents, or find those that are there."""
        done = 0
        for each in part:
            content = each.content(vectors[done : done + len(each.chunks)])
            done += len(each.chunks)
            self._ids[each.document.id] = self._save(tx, each, content)

    def _save(self, tx: SqliteTransaction, each: Arriving, content: Content) -> int:
        document, part_of = each.document, self._ids.get(each.part_of or 0)
        same = tx.documents.with_content(content.content_hash, document.source_path, note=content.doc_type == NOTE)
        there = same or (tx.documents.at_path(document.source_path) if document.source_path else None)
        if there is None or there.id in self._new:
            self.imported.added += 1
            self._new.add(added := add_exact(tx, document, content, part_of))
            return added
        self.imported.there += 1
        return save(tx, content, document.source_path, document.tags, part_of=part_of)[0]


def _last_document_id(folder: Path) -> int:
    try:
        about = json.loads((folder / ABOUT).read_bytes())
        if about["kb-export"] != FORMAT:
            raise StoreError(f"{folder} was exported by a later kb: use that one.")
        return int(about["last_document_id"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder} is no export of kb ({ABOUT}: {error}).") from error


def _documents(folder: Path) -> Iterator[Arriving]:
    """Yield the documents of an export.

    Raises:
        StoreError: a line cannot be read, or a note is not what it was.
    """
    try:
        with (folder / DOCUMENTS).open(encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    yield _document(json.loads(line))
                except (ValueError, KeyError, TypeError) as error:
                    raise StoreError(f"{folder / DOCUMENTS}, line {number}: {error!r}.") from error
    except OSError as error:
        raise StoreError(f"{folder / DOCUMENTS} cannot be read: {error.strerror}.") from error


def _document(fields: dict[str, Any]) -> Arriving:
    part_of, chunks = fields.pop("part_of"), tuple(map(_chunk, fields.pop("chunks")))
    document = Document(**fields | {name: tuple(fields[name]) for name in ("tags", "own_tags")})
    if document.doc_type == NOTE:
        text = "".join(chunk.text for chunk in chunks)
        if sha256(text.encode()).hexdigest() != document.content_hash:
            raise ValueError("the note is not what its content_hash says")
    return Arriving(document, part_of, chunks)


def _chunk(fields: dict[str, Any]) -> NewChunk:
    (first, last), (start, end) = fields["lines"], fields["characters"]
    place = Place(first, last, start, end, tuple(fields["heading"]), fields["page"])
    return NewChunk(fields["text"], fields["header"], place)


def _slices(documents: Iterator[Arriving]) -> Iterator[list[Arriving]]:
    part: list[Arriving] = []
    for each in documents:
        part.append(each)
        if len(part) >= SLICE or sum(len(each.chunks) for each in part) >= SLICE:
            yield part
            part = []
    if part:
        yield part
