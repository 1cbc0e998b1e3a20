"""Read an export. Content that kb would not have written is refused before anything is imported."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from io import BytesIO
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from kb.api.errors import StoreError
from kb.api.fields import NOTE
from kb.backup.storage import LARGEST_MANIFEST, stream_digest
from kb.blobs.folder import KeptFiles
from kb.blobs.protocol import Blobs, kept_as, staged_as
from kb.documents.originals import Originals
from kb.documents.staging import discard, stage
from kb.exchange.export import ABOUT, DOCUMENTS, FILES, FORMAT, VERSIONS
from kb.exchange.export_lines import (
    ROW_LINES,
    DocumentLine,
    ExportHeader,
    KeyLine,
    Line,
    StateLine,
    VersionLine,
    wrong_field,
)
from kb.exchange.export_rows import KEYS, PLAIN, VECTORS
from kb.filesystem import open_regular
from kb.index.words.language import guessed
from kb.ingest.draft import body_hash_of
from kb.store.rows import NOBODY, Author, Content, Document, NewChunk, content_fields
from kb.store.sqlite.import_rows import FormerVersion

T = TypeVar("T")

WHOLE: Final = 3
"""The first format that contains everything in a database."""

SLICE: Final = 64
"""The minimum number of chunks that are embedded and written in one transaction."""

LINES: Final[dict[str, type[Line]]] = {DOCUMENTS: DocumentLine, VERSIONS: VersionLine, **ROW_LINES, KEYS: KeyLine}
ORDERS: Final = {
    **{name: (table.columns[0],) for name, table in PLAIN.items()},
    DOCUMENTS: ("id",),
    VERSIONS: ("id", "version"),
    KEYS: ("name",),
}
"""The columns by which the lines of a file ascend."""


@dataclass(slots=True)
class Imported:
    """The result of an import.

    Args:
        added: new documents.
        there: documents that existed, with the same content and path or only the path.
        replaced: existing documents whose content was replaced.
        tagged: existing documents that got new tags.
        keys: new keys with rights.
        compared: lines compared with the database at the end.
    """

    added: int = 0
    there: int = 0
    replaced: int = 0
    tagged: int = 0
    keys: int = 0
    compared: int = 0


@dataclass(frozen=True, slots=True)
class ExportedDocument:
    """A document of an export, with its earlier versions; a document in the bin has only those."""

    document: Document
    part_of: int | None
    chunks: tuple[NewChunk, ...]
    number: int = 1
    author: Author = NOBODY
    former: tuple[FormerVersion, ...] = ()
    message_ids: tuple[str, ...] = ()

    @property
    def binned(self) -> FormerVersion | None:
        """The version in the bin, if the document is there."""
        return next((former for former in self.former if former.binned), None)

    @property
    def size(self) -> int:
        """The number of chunks of all its versions."""
        return len(self.chunks) + sum(len(former.chunks) for former in self.former if former.chunks)

    @property
    def states(self) -> list[Document]:
        """The document and its earlier versions."""
        return [self.document, *(former.version.document for former in self.former)]

    def content(self, vectors: NDArray[np.float32]) -> Content:
        language = guessed([chunk.text for chunk in self.chunks])
        fields = content_fields(self.document) | {"chunks": self.chunks, "vectors": vectors, "language": language}
        body = body_hash_of(self.document.doc_type, self.chunks)
        return Content(**fields, body_hash=body, message_ids=self.message_ids)


class ExportFolder:
    """An export on disk.

    Raises:
        StoreError: the folder is not an export, or one of a later kb.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about = _about(folder)
        self.counts = dict.fromkeys(LINES, 0)

    @property
    def is_whole(self) -> bool:
        """Whether it contains everything in a database, not just documents."""
        return self.about.number >= WHOLE

    @property
    def has_vectors(self) -> bool:
        return VECTORS in self.about.files and self.about.space is not None

    def __iter__(self) -> Iterator[ExportedDocument]:
        """Yield the documents with their earlier versions, and those in the bin, by id. Raises as `check`."""
        path = self.folder / VERSIONS
        former = _read(path, _former) if self._has(VERSIONS) else iter(())
        both = heapq.merge(
            ((line.document.id, 0, line) for line in _read(self.folder / DOCUMENTS, _document)),
            ((line.version.document.id, 1, line) for line in former),
            key=itemgetter(0, 1),
        )
        for document_id, group in groupby(both, key=itemgetter(0)):
            lines = [line for _, _, line in group]
            versions = tuple(line for line in lines if isinstance(line, FormerVersion))
            document, is_binned = lines[0], any(version.binned for version in versions)
            _check_versions(path, versions, document.number if isinstance(document, ExportedDocument) else None)
            if isinstance(document, ExportedDocument) and not is_binned:
                yield replace(document, former=versions)
            elif is_binned and not isinstance(document, ExportedDocument) and versions[-1].binned:
                yield ExportedDocument(versions[-1].version.document, versions[-1].part_of, (), former=versions)
            else:
                where = "both present and" if is_binned else "neither present nor"
                raise StoreError(f"{path}: document {document_id} is {where} in the bin.")

    @property
    def last_ids(self) -> dict[str, int]:
        """The highest id of each kind ever assigned, as far as the export records it."""
        given = self.about.last_ids
        return given.model_dump() if given else {"documents": self.about.last_document_id}

    def lines(self, name: str) -> Iterator[Any]:
        """Yield the parsed lines of a file."""
        return _read(self.folder / name, LINES[name].model_validate_json) if self._has(name) else iter(())

    def open(self, name: str) -> BinaryIO:
        """Open a file. Raises the same errors as `check`."""
        return _opened(self.folder / name) if self._has(name) else BytesIO()

    def _has(self, name: str) -> bool:
        """Return whether the file must exist: earlier formats have fewer files."""
        return self.is_whole or (self.folder / name).exists()

    def check(self) -> None:
        """Validate and count all lines.

        Raises:
            StoreError: a line is invalid, or a file is damaged.
        """
        self._check_parts()
        self._check_files()
        chunks = 0
        for name in LINES:
            key, last = attrgetter(*ORDERS[name]), None
            for line in self.lines(name):
                self.counts[name] += 1
                where = f"{self.folder / name}, line {self.counts[name]}"
                if last is not None and key(line) <= last:
                    raise StoreError(f"{where}: the lines are not in order; this line belongs before the line above.")
                if self.is_whole and name == DOCUMENTS and not all(chunk.id for chunk in line.chunks):
                    raise StoreError(f"{where}: the chunks have no ids.")
                last = key(line)
                chunks += line.size if name == DOCUMENTS else 0
        for name in (*(LINES if self.is_whole else ()), *([VECTORS] if self.has_vectors else ())):
            with self.open(name) as file:
                if stream_digest(file) != self.about.files.get(name):
                    raise StoreError(f"{self.folder / name} was changed or is damaged. Export again.")
        if self.has_vectors and (self.folder / VECTORS).stat().st_size != 4 * chunks * self.dimensions:
            raise StoreError(f"{self.folder / VECTORS} does not have vectors for all {chunks} chunks.")

    def _check_files(self) -> None:
        if (found := len(KeptFiles(self.folder / FILES).digests())) < self.about.kept:
            raise StoreError(
                f"{self.folder / FILES} contains {found} of its {self.about.kept} files, so the copy is incomplete."
                f' Copy the export again. To import it without the others, write {found} as "kept" in {ABOUT}.'
            )

    def _check_parts(self) -> None:
        """Read all documents, and check that none is part of itself, because its deletion would not end."""
        wholes: dict[int, set[int]] = {}
        for document in self:
            last = document.binned.binned if document.binned else None
            came_inside = (document.part_of, last.part_of if last else None)
            wholes[document.document.id] = {whole for whole in came_inside if whole}
        try:
            TopologicalSorter(wholes).prepare()
        except CycleError as error:
            raise StoreError(f"{self.folder}: document {error.args[1][0]} is recorded as part of itself.") from error

    @property
    def dimensions(self) -> int:
        """The length of each vector; 0 without vectors."""
        return self.about.space.dimensions if self.about.space else 0

    def keep_files(self, originals: Originals, documents: Iterable[Document | StateLine]) -> None:
        """Copy the files that documents came from.

        Raises:
            StoreError: a file is damaged.
        """
        exported = KeptFiles(self.folder / FILES)
        for digest in {document.content_hash for document in documents if document.doc_type != NOTE}:
            if originals.blobs.size(kept_as(digest)) is None and (path := exported.path(digest)).exists():
                with _opened(path) as file:
                    staged, original = stage(file, originals.blobs)
                try:
                    if original != digest:
                        raise StoreError(f"{path} was changed or is damaged. Export again.")
                    originals.add(staged, digest)
                finally:
                    discard(staged, originals.blobs)

    def stage_files(self, blobs: Blobs) -> None:
        """Copy the staged files. Raises the same errors as `keep_files`."""
        exported = KeptFiles(self.folder / FILES)
        for name, digest in self.about.staged.items():
            path = exported.path(digest)
            with _opened(path) as file:
                if stream_digest(file) != digest:
                    raise StoreError(f"{path} was changed or is damaged. Export again.")
                file.seek(0)
                blobs.put(staged_as(name), file)


class Sized(Protocol):
    """Something with a number of chunks."""

    @property
    def size(self) -> int: ...


S = TypeVar("S", bound=Sized)


def slices(lines: Iterable[S], least: int | None = None) -> Iterator[list[S]]:
    """Yield lines in groups of at least `least` (default `SLICE`) chunks; a line without chunks counts as one."""
    part: list[S] = []
    size = 0
    for line in lines:
        part.append(line)
        size += max(line.size, 1)
        if size >= (least or SLICE):
            yield part
            part, size = [], 0
    if part:
        yield part


def _opened(path: Path) -> BinaryIO:
    try:
        return open_regular(path)
    except OSError as error:
        raise StoreError(f"kb cannot read {path}: {error.strerror or error}.") from error


def _about(folder: Path) -> ExportHeader:
    """Return the header of an export.

    Raises:
        StoreError: the folder is not an export, or one of a later kb.
    """
    try:
        with open_regular(folder / ABOUT) as file:
            about = ExportHeader.model_validate_json(file.read(LARGEST_MANIFEST))
        if about.number not in range(1, FORMAT + 1):
            raise StoreError(f"A newer version of kb exported {folder}. Import it with that version.")
        if about.number >= WHOLE and not (about.last_ids and about.space):
            raise StoreError(f"{folder} is not a kb export ({ABOUT}: it lacks last_ids or space).")
    except FileNotFoundError:
        raise StoreError(
            f"{folder} is not an export that 'kb import' reads, because it has no {ABOUT}. To add the files in it, also"
            f" files from 'kb export --plain', run 'kb add {folder}'."
        ) from None
    except ValidationError as error:
        raise StoreError(f"{folder} is not a kb export ({ABOUT}: {wrong_field(error)}).") from error
    except OSError as error:
        raise StoreError(f"{folder} is not a kb export ({ABOUT}: {error}).") from error
    return about


def _read(path: Path, parse: Callable[[bytes], T]) -> Iterator[T]:
    """Yield the parsed lines of a file.

    Raises:
        StoreError: a line is invalid, or a note does not match its hash.
    """
    try:
        with open_regular(path) as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    yield parse(line)
                except ValidationError as error:
                    raise StoreError(f"{path}, line {number}: {wrong_field(error)}.") from error
                except ValueError as error:
                    raise StoreError(f"{path}, line {number}: {error}.") from error
    except OSError as error:
        raise StoreError(f"kb cannot read {path}: {error.strerror or error}.") from error


def _document(line: bytes) -> ExportedDocument:
    read = DocumentLine.model_validate_json(line)
    document, chunks = read.document, tuple(chunk.row() for chunk in read.chunks)
    _check_note(document, chunks)
    return ExportedDocument(document, read.part_of, chunks, read.version, read.author, message_ids=read.message_ids)


def _former(line: bytes) -> FormerVersion:
    read = VersionLine.model_validate_json(line)
    chunks = None if read.chunks is None else tuple(chunk.row() for chunk in read.chunks)
    if chunks is not None:
        _check_note(read.document, chunks)
    return FormerVersion(read.former, read.part_of, chunks, read.chunks_of, read.binned)


def _check_versions(path: Path, versions: Sequence[FormerVersion], number: int | None) -> None:
    """Check that earlier versions have lower numbers than the document, and content.

    Raises:
        StoreError: a number is too high, or a content is missing.
    """
    holders: set[int] = set()
    for former in versions:
        where = f"{path}: version {former.version.number} of document {former.version.document.id}"
        if number is not None and former.version.number >= number:
            raise StoreError(f"{where} is not an earlier version: the document has version {number}.")
        if former.chunks is not None:
            holders.add(former.version.number)
        elif former.chunks_of is not None and former.chunks_of not in holders:
            raise StoreError(f"{where}: its content is missing, because version {former.chunks_of} has no chunks.")


def _check_note(document: Document, chunks: Sequence[NewChunk]) -> None:
    text = "".join(chunk.text for chunk in chunks)
    if document.doc_type == NOTE and sha256(text.encode()).hexdigest() != document.content_hash:
        raise ValueError("the text of the note does not match its content_hash")
