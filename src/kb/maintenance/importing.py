"""An export comes into a knowledge base, empty or not."""

from __future__ import annotations

import heapq
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

import numpy as np
from pydantic import ValidationError

from kb.api.errors import StoreError
from kb.api.models import NOTE
from kb.blobs.folder import FolderBlobs, KeptFiles
from kb.documents.originals import Originals
from kb.documents.replacement import rival_successors
from kb.documents.save import merge
from kb.documents.staging import discard, stage
from kb.filesystem import make_folder, open_regular
from kb.ingest.chunk import Chunker
from kb.lexical.language import guessed
from kb.maintenance.export import ABOUT, DOCUMENTS, FILES, FORMAT, VERSIONS
from kb.maintenance.export_lines import DocumentLine, ExportHeader, VersionLine, wrong_field
from kb.maintenance.named_model import open_named_model
from kb.maintenance.restoring import complete_restore
from kb.running import lock_of
from kb.store.lock import sole_user
from kb.store.open import database_lock, database_path
from kb.store.rows import NOBODY, Author, Content, Document, NewChunk, VectorSpace
from kb.store.sqlite.store import SqliteStore, SqliteTransaction
from kb.store.sqlite.transfer import (
    FormerVersion,
    add_binned,
    add_exact,
    add_former_content,
    add_version,
    begin_history,
    find_binned,
    find_same,
    is_cut_off,
    is_new,
    set_replaced,
    skip_ids,
    translated_errors,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from kb.settings import Settings

T = TypeVar("T")

NOT_THERE: Final = 0
"""The id of no document."""
SLICE: Final = 64
"""How many chunks are embedded, and written in one transaction, at least."""


@dataclass(slots=True)
class Imported:
    """What came of it.

    Args:
        added: how many documents were new.
        there: how many were there, with the same content and path or with the path.
        replaced: how many of those held something else.
        tagged: how many of those got tags that they had not.
    """

    added: int = 0
    there: int = 0
    replaced: int = 0
    tagged: int = 0


@dataclass(frozen=True, slots=True)
class Arriving:
    """A document as an export has it, and what it was; one in the bin is no more than that."""

    document: Document
    part_of: int | None
    chunks: tuple[NewChunk, ...]
    number: int = 1
    author: Author = NOBODY
    former: tuple[FormerVersion, ...] = ()

    @property
    def binned(self) -> FormerVersion | None:
        """The version in the bin, if the document is there."""
        return next((former for former in self.former if former.binned), None)

    @property
    def size(self) -> int:
        """How many chunks it has and had."""
        return len(self.chunks) + sum(len(former.chunks) for former in self.former if former.chunks)

    def content(self, vectors: NDArray[np.float32]) -> Content:
        """Return what the document holds."""
        document = self.document
        return Content(
            doc_type=document.doc_type,
            title=document.title,
            content_hash=document.content_hash,
            chunks=self.chunks,
            vectors=vectors,
            own_tags=document.own_tags,
            date=document.date,
            filename=document.filename,
            title_given=document.title_given,
            source=document.source,
            replaces=document.replaces,
            omitted=document.omitted,
            language=guessed([chunk.text for chunk in self.chunks]),
        )


def import_folder(settings: Settings, folder: Path, on_documents: Callable[[int], None]) -> Imported:
    """Bring an export in; given again after it was cut off, it goes on.

    What is there already, with the same content and path, stays one document and gets the tags of both; what has
    another content at the same path is replaced, as when it is added. No two of the export become one. All else is
    new, with its times, and with its id where neither that nor a higher one was ever given. Each line is checked before
    anything is written.

    Args:
        settings: those of the engine, which must not run.
        folder: the export.
        on_documents: is told how many documents are done.

    Raises:
        StartError: the engine runs, the export cannot be read, or the model or the database cannot be used.
    """
    about = _about(folder)
    for _ in _with_versions(folder):  # nothing is written of an export that does not hold together
        pass
    path = database_path(settings.database_url, settings.data_dir)
    for each in (settings.data_dir, path.parent):
        make_folder(each, "KB_DATA_DIR")
    with sole_user(lock_of(settings.data_dir)), sole_user(database_lock(path)):
        complete_restore(settings)
        for each in (settings.staging_dir, settings.files_dir):  # a restore may have set them aside
            make_folder(each, "KB_DATA_DIR")
        embedder, _ = open_named_model(settings)
        chunker, arrival = Chunker(embedder), _Arrival(settings, folder)
        space = VectorSpace.of(embedder.spec, settings.model_dir)
        with translated_errors(), closing(SqliteStore(path, space)) as store:
            with store.read() as tx:
                arrival.is_into_new = is_new(tx) or is_cut_off(tx, _made(folder))
            for part in _slices(_with_versions(folder)):
                inputs = [chunker.passage(chunk.header, chunk.text) for each in part for chunk in each.chunks]
                vectors = embedder.embed_passages(inputs)
                arrival.keep_originals(part)
                with store.write() as tx:
                    arrival.write(tx, part, vectors)
                    arrival.begin_history(tx, about)
                on_documents(arrival.imported.added + arrival.imported.there)
            with store.write() as tx:
                arrival.link(tx)
                skip_ids(tx, about.last_document_id)
                arrival.begin_history(tx, about)
    return arrival.imported


class _Arrival:
    """Writes documents, and knows what became of those before."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.imported = Imported()
        self._exported = KeptFiles(folder / FILES)
        self._blobs = FolderBlobs(settings.files_dir.parent)
        self._originals = Originals(self._blobs, keep=settings.keep_files)
        self.is_into_new = False
        self._ids: dict[int, int] = {}
        self._met: set[int] = set()
        self._in_bin: set[int] = set()
        self._unlinked: dict[int, int] = {}
        self._linked: set[int] = set()

    def keep_originals(self, part: Sequence[Arriving]) -> None:
        """Copy the files that documents came from.

        Raises:
            StoreError: one is not what it was.
        """
        documents = [
            state for each in part for state in (each.document, *(former.version.document for former in each.former))
        ]
        for digest in {document.content_hash for document in documents if document.doc_type != NOTE}:
            if (path := self._exported.path(digest)).exists():
                with _opened(path) as file:
                    staged, found = stage(file, self._blobs)
                try:
                    if found != digest:
                        raise StoreError(f"{path} is not what it was.")
                    self._originals.add(staged, digest)
                finally:
                    discard(staged, self._blobs)

    def write(self, tx: SqliteTransaction, part: Sequence[Arriving], vectors: NDArray[np.float32]) -> None:
        """Write documents, or find those that are there."""
        ends = np.cumsum([len(each.chunks) for each in part])[:-1]
        for each, own in zip(part, np.split(vectors, ends), strict=True):
            content = replace(each.content(own), replaces=self._became(each.document.replaces))
            document_id = self._discarded(tx, each) if each.binned else self._save(tx, each, content)
            if document_id is not None:
                self._add_versions(tx, each, document_id)

    def begin_history(self, tx: SqliteTransaction, about: ExportHeader) -> None:
        """Say from when on every former version is there, if those of the export are all that there are."""
        if self.is_into_new and "history_begins" in about.model_fields_set:
            begin_history(tx, about.history_begins)

    def link(self, tx: SqliteTransaction) -> None:
        """Let documents replace what came after them."""
        for document_id, exported in self._unlinked.items():
            replaces = self._became(exported)
            if replaces and self._may_link(tx, document_id, replaces):
                set_replaced(tx, document_id, replaces)
                self._linked.add(document_id)

    def _may_link(self, tx: SqliteTransaction, document_id: int, replaces: int) -> bool:
        """Return whether a document may replace another: not one that is behind it, or replaced, by a link of here."""
        behind = tx.documents.successors([document_id]).get(document_id, [])
        in_the_way = rival_successors(tx, document_id, replaces).union({replaces}.intersection(behind))
        return in_the_way.issubset(self._linked)

    def _discarded(self, tx: SqliteTransaction, each: Arriving) -> int | None:
        """Write what is known of a document in the bin; return its id if it was not there."""
        assert each.binned  # noqa: S101 - the caller saw to it
        assert each.binned.binned  # noqa: S101 - likewise
        there = next((id_ for id_ in find_binned(tx, each.binned) if id_ not in self._in_bin), None)
        if there is None:
            self.imported.added += 1
            became = add_binned(tx, each.binned, self._became(each.binned.binned.part_of))
        else:
            self.imported.there += 1
            became = there
        self._ids[each.document.id] = became
        self._in_bin.add(became)
        return became if there is None else None

    def _add_versions(self, tx: SqliteTransaction, each: Arriving, document_id: int) -> None:
        contents = dict[int, int]()
        for former in each.former:
            number = former.version.number
            if former.chunks is not None:
                contents[number] = add_former_content(tx, document_id, former.chunks)
            content_id = contents.get(number if former.chunks_of is None else former.chunks_of)
            replaces = self._became(former.version.document.replaces)
            add_version(tx, document_id, former, self._became(former.part_of), content_id, replaces)

    def _became(self, exported: int | None) -> int | None:
        """Return what became of a document."""
        return self._ids.get(exported, exported if self.is_into_new else None) if exported else None

    def _save(self, tx: SqliteTransaction, each: Arriving, content: Content) -> int | None:
        """Write a document, or find the one that is there; return its id if it is new."""
        document, part_of = each.document, self._ids.get(each.part_of or 0)
        if same := [found for found in find_same(tx, document) if found.id not in self._met]:
            there = min(same, key=partial(_unlikeness, document))
            self._merge(tx, document, content, there, [*document.tags, *there.tags], is_same=True)
            return None
        at_path = tx.documents.at_path(document.source_path) if document.source_path else None
        if at_path is None or at_path.id in self._met:
            self.imported.added += 1
            placed = self._placed(tx, NOT_THERE, content)
            added = add_exact(tx, document, placed, part_of, each.number, each.author)
            self._met.add(added)
            self._ids[document.id] = added
            self._link_later(added, document, placed)
            return added
        self.imported.replaced += 1
        self._merge(tx, document, content, at_path, document.tags, is_same=False)
        return None

    def _placed(self, tx: SqliteTransaction, document_id: int, content: Content) -> Content:
        """Return content that replaces something only where what is here already lets it."""
        if content.replaces is None or self._may_link(tx, document_id, content.replaces):
            return content
        return replace(content, replaces=None)

    def _link_later(self, document_id: int, document: Document, content: Content) -> None:
        """Remember what it replaces, if that comes after it; or that its link is the one of the export."""
        if content.replaces is not None:
            self._linked.add(document_id)
        elif document.replaces:
            self._unlinked[document_id] = document.replaces

    def _merge(
        self,
        tx: SqliteTransaction,
        document: Document,
        content: Content,
        there: Document,
        tags: Sequence[str],
        *,
        is_same: bool,
    ) -> None:
        self.imported.there += 1
        self.imported.tagged += not set(document.tags).issubset(there.tags)
        self._met.add(there.id)
        self._ids[document.id] = there.id
        placed = self._placed(tx, there.id, content)
        merge(tx, there, placed, tags, is_same=is_same)
        if there.replaces is None or placed.replaces is not None:
            self._link_later(there.id, document, placed)


def _opened(path: Path) -> BinaryIO:
    try:
        return open_regular(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}.") from error


def _unlikeness(document: Document, there: Document) -> tuple[bool, bool, int]:
    """Return what is the least for the one, of those with the same content, that the document most likely is."""
    return there.created_at != document.created_at, not set(document.tags).issubset(there.tags), there.id


def _about(folder: Path) -> ExportHeader:
    """Return what an export says of itself.

    Raises:
        StoreError: it is none, or of a later kb.
    """
    try:
        about = ExportHeader.model_validate_json((folder / ABOUT).read_bytes())
        if about.number not in range(1, FORMAT + 1):
            raise StoreError(f"{folder} was exported by a later kb: use that one.")
    except FileNotFoundError:
        raise StoreError(
            f"{folder} is no export of kb that 'kb import' takes, as no {ABOUT} is in it: 'kb add {folder}' adds its"
            " files, those of 'kb export --plain', too."
        ) from None
    except ValidationError as error:
        raise StoreError(f"{folder} is no export of kb ({ABOUT}: {wrong_field(error)}).") from error
    except OSError as error:
        raise StoreError(f"{folder} is no export of kb ({ABOUT}: {error}).") from error
    return about


def _with_versions(folder: Path) -> Iterator[Arriving]:
    """Yield the documents of an export with what they were, and those in the bin, by ascending id."""
    documents = _read(folder / DOCUMENTS, _document)
    former = _read(folder / VERSIONS, _former) if (folder / VERSIONS).exists() else iter(())
    both = heapq.merge(
        ((each.document.id, 0, each) for each in documents),
        ((each.version.document.id, 1, each) for each in former),
        key=itemgetter(0, 1),
    )
    for document_id, group in groupby(both, key=itemgetter(0)):
        arriving = [each for _, _, each in group]
        versions = tuple(each for each in arriving if isinstance(each, FormerVersion))
        if isinstance(arriving[0], Arriving):
            yield replace(arriving[0], former=versions)
        elif versions[-1].binned:
            yield Arriving(versions[-1].version.document, versions[-1].part_of, (), former=versions)
        else:
            raise StoreError(f"{folder / VERSIONS}: document {document_id} is neither there nor in the bin.")


def _made(folder: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the id of each document of an export, the hash of what it holds and when it was made, by ascending id."""
    for each in _with_versions(folder):
        yield each.document.id, each.document.content_hash, each.document.created_at


def _read(path: Path, parse: Callable[[bytes], T]) -> Iterator[T]:
    """Yield what the lines of a file are.

    Raises:
        StoreError: a line cannot be read, or a note is not what it was.
    """
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    yield parse(line)
                except ValidationError as error:
                    raise StoreError(f"{path}, line {number}: {wrong_field(error)}.") from error
                except ValueError as error:
                    raise StoreError(f"{path}, line {number}: {error}.") from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from error


def _document(line: bytes) -> Arriving:
    read = DocumentLine.model_validate_json(line)
    document, chunks = read.document, tuple(chunk.row() for chunk in read.chunks)
    _check_note(document, chunks)
    return Arriving(document, read.part_of, chunks, read.version, read.author)


def _former(line: bytes) -> FormerVersion:
    read = VersionLine.model_validate_json(line)
    held = None if read.chunks is None else tuple(chunk.row() for chunk in read.chunks)
    if held is not None:
        _check_note(read.document, held)
    return FormerVersion(read.former, read.part_of, held, read.chunks_of, read.binned)


def _check_note(document: Document, chunks: Sequence[NewChunk]) -> None:
    text = "".join(chunk.text for chunk in chunks)
    if document.doc_type == NOTE and sha256(text.encode()).hexdigest() != document.content_hash:
        raise ValueError("the note is not what its content_hash says")


def _slices(documents: Iterator[Arriving]) -> Iterator[list[Arriving]]:
    part: list[Arriving] = []
    for each in documents:
        part.append(each)
        if len(part) >= SLICE or sum(each.size for each in part) >= SLICE:
            yield part
            part = []
    if part:
        yield part
