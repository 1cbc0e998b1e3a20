"""Export everything to files that other programs can read; docs/export.md describes them.

kb-export.json     the format's number, the highest ids assigned, and the SHA-256 of each of these:
documents.jsonl    one document per line, with its chunks
versions.jsonl     one earlier version per line, with its chunks, also of documents in the bin
jobs.jsonl …       one row per line: jobs, operations, the audit log, synced folders, files left out of syncs, keys
vectors            on request: the vector of each chunk
files/ab/abcd…     the files that documents came from, and staged files, by the SHA-256 of their content
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kb import __version__
from kb.api.errors import StoreError
from kb.api.fields import NOTE
from kb.backup.make import Copier
from kb.backup.storage import PART, BackupManifest, copy, discarded_unless_finished
from kb.backup.swap import finish_restore
from kb.blobs.folder import KeptFiles
from kb.blobs.protocol import Blobs, Readable, kept_as, staged_as
from kb.blobs.scratch import Blocks
from kb.documents.blob_place import blobs_apart
from kb.exchange.export_names import Tree
from kb.exchange.export_rows import KEYS, VECTORS, exported_lines, exported_vectors, key_lines, keys_of
from kb.filesystem import sync
from kb.markdown.note_file import note_file
from kb.settings import Settings
from kb.store.open import backend
from kb.store.rows import Document
from kb.store.sql.export_tables import DOCUMENTS as DOCUMENT_TABLE
from kb.store.sql.export_tables import PRECISIONS
from kb.store.sqlite import opening
from kb.store.sqlite.backup import Snapshot

if TYPE_CHECKING:
    from kb.store.backend import MovedTransaction

FORMAT: Final = 3
ABOUT: Final = "kb-export.json"
DOCUMENTS: Final = "documents.jsonl"
VERSIONS: Final = "versions.jsonl"
FILES: Final = "files"
NOTES: Final = "notes"
ORIGINALS: Final = "originals.part"
"""The folder for files by their hashes until each gets its name."""
LONGEST_NAME: Final = 80
LONGEST_STEM: Final = 200
LONGEST_SUFFIX: Final = 30
"""In bytes: a file name may have 255, which include the id."""
UNREADABLE: Final = re.compile(r"[^\w.-]+")
"""Characters replaced in file names."""


@dataclass(slots=True)
class Exported:
    """The contents of an export.

    Args:
        documents: documents, without those in the bin.
        files: files that documents came from.
        staged: the name and SHA-256 of each staged file.
        missing: the files that could not be copied because they are damaged or missing.
    """

    documents: int = 0
    files: int = 0
    staged: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def export(settings: Settings, target: Path, *, as_notes: bool, with_vectors: bool = False) -> Exported:
    """Write everything to the folder `target`, in its state at one point in time.

    Args:
        settings: the settings of the engine, which may run.
        target: a folder that does not exist or is empty.
        as_notes: write only current documents, for people and other programs: notes as Markdown with front matter, and
            files under their names.
        with_vectors: also write the vectors, so that an import need not recompute them.

    Raises:
        StoreError: the database cannot be read or holds half an import, or the folder cannot be written or is not
            empty.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StoreError(f"{target} is not empty. Choose another folder.")
    finish_restore(settings)
    try:
        with discarded_unless_finished(_ExportWriter(target)) as writer:
            with _taken(settings, writer) as (tx, exported):
                tx.transfer.check_whole()
                writer.keep_files({*tx.documents.file_hashes(), *(() if as_notes else exported.staged.values())})
                exported.files = len(writer.originals.digests() & tx.documents.file_hashes())
                exported.documents = sum(tx.counts().documents.values())
                if as_notes:
                    _write_notes(tx, writer.folder)
                else:
                    _write_lines(settings, tx, exported, writer.folder, with_vectors=with_vectors)
            writer.finish()
    except OSError as error:
        raise StoreError(f"kb cannot write the export {target}: {error.strerror or error}.") from error
    return exported


@contextmanager
def _taken(settings: Settings, writer: _ExportWriter) -> Iterator[tuple[MovedTransaction, Exported]]:
    """Yield a snapshot of the database, with its files copied."""
    if settings.store_kind.is_shared:
        with backend(settings).moment(settings) as tx, blobs_apart(settings) as blobs:
            yield tx, _copy_files(tx, blobs, writer)
        return
    with closing(Snapshot(settings.database_path)) as moment:
        manifest: BackupManifest = Copier(settings, moment, writer, lambda: None).copy()
    with opening.moment(writer.database) as tx:
        yield tx, Exported(staged=manifest.staged, missing=manifest.missing)


def _copy_files(tx: MovedTransaction, blobs: Blobs, writer: _ExportWriter) -> Exported:
    """Copy the files of a snapshot, as far as they were kept."""
    exported = Exported()
    for digest in tx.documents.file_hashes():
        with suppress(FileNotFoundError), closing(blobs.open(kept_as(digest))) as blob:
            if writer.put(Blocks(blob.blocks)) != digest:
                exported.missing.append(kept_as(digest))
    for name in sorted(tx.jobs.staged()):
        with suppress(FileNotFoundError), closing(blobs.open(staged_as(name))) as blob:
            exported.staged[name] = writer.put(Blocks(blob.blocks))
    return exported


class _ExportWriter:
    """Collects files and the copy of the database in a folder that gets its final name at the end."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self.folder = target.with_name(f"{target.name}{PART}")
        if self.folder.exists():
            raise StoreError(f"{self.folder} already exists. If it is left over from an interrupted export, remove it.")
        self.folder.mkdir(parents=True, mode=0o700)
        self.originals = KeptFiles(self.folder / FILES)
        self.database = self.folder / "kb.db"

    def has(self, digest: str) -> bool:
        """Return whether a copy of the file exists."""
        return self.originals.has(digest)

    def put(self, file: Readable) -> str:
        """Keep a file; return its SHA-256."""
        part = self.folder / "file.part"
        digest = copy(file, part)
        target = self.originals.path(digest)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part.replace(target)
        return digest

    def keep_files(self, needed: set[str]) -> None:
        """Remove all files but these."""
        for digest in self.originals.digests() - needed:
            self.originals.path(digest).unlink()

    def finish(self) -> None:
        """Give the export its final name, once it is on disk."""
        for ending in ("", "-wal", "-shm", "-journal"):
            self.database.with_name(f"{self.database.name}{ending}").unlink(missing_ok=True)
        for path in (*self.folder.rglob("*"), self.folder):
            sync(path)
        if self._target.exists():
            self._target.rmdir()
        self.folder.rename(self._target)
        sync(self._target.parent)

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _write_lines(
    settings: Settings, tx: MovedTransaction, exported: Exported, folder: Path, *, with_vectors: bool
) -> None:
    lines = exported_lines(tx) | {KEYS: key_lines(keys_of(settings, tx))}
    digests = {name: _write(folder / name, map(_dumped, of_file)) for name, of_file in lines.items()}
    if with_vectors:
        digests[VECTORS] = _write(folder / VECTORS, exported_vectors(tx))
    last_ids = tx.transfer.last_ids()
    about = {
        "kb-export": FORMAT,
        "made_at": datetime.now(UTC).isoformat(),
        "kb": __version__,
        "last_document_id": last_ids["documents"],
        "history_begins": tx.transfer.begins(),
        "last_ids": last_ids,
        "space": {name: value for name, value in asdict(tx.space).items() if name != "folder"},
        "precisions": {line["precision"]: line["vectors"] for line in tx.transfer.rows(PRECISIONS)},
        "staged": exported.staged,
        "kept": len(KeptFiles(folder / FILES).digests()),
        "files": digests,
    }
    (folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    for path in folder.rglob("*"):  # some files contain digests of keys
        path.chmod(0o700 if path.is_dir() else 0o600)


def _dumped(line: dict[str, Any]) -> bytes:
    return f"{json.dumps(line, ensure_ascii=False)}\n".encode()


def _write(path: Path, blocks: Iterable[bytes]) -> str:
    """Write a file; return its SHA-256."""
    digest = sha256()
    with path.open("wb") as file:
        for block in blocks:
            digest.update(block)
            file.write(block)
    return digest.hexdigest()


def _write_notes(tx: MovedTransaction, folder: Path) -> None:
    """Write notes, and the text of files that were not kept, as Markdown; and each kept file under its name."""
    (folder / FILES).mkdir(exist_ok=True)
    (folder / FILES).rename(folder / ORIGINALS)
    originals = KeptFiles(folder / ORIGINALS)
    for name in (FILES, NOTES):
        (folder / name).mkdir()
    paths = [(_is_file(document, originals), document.source_path or "") for document in _documents(tx)]
    files, notes = (Tree(path for is_file, path in paths if is_file is is_original) for is_original in (True, False))
    for document in _documents(tx):
        path = document.source_path
        if _is_file(document, originals):
            own = _name(document, Path(document.filename or "").suffix)
            target = _made(folder / FILES / (files.place(path, document.id) if path else own))
            shutil.copyfile(originals.path(document.content_hash), target)
        else:
            around, slash, _ = (path or "").rpartition("/")
            target = _made(folder / NOTES / notes.place(f"{around}{slash}{_name(document, '.md')}", document.id))
            text = "".join(chunk.text for chunk in tx.documents.chunks(document.id))
            target.write_text(note_file(asdict(document), text), "utf-8", newline="\n")
    shutil.rmtree(folder / ORIGINALS)


def _documents(tx: MovedTransaction) -> Iterator[Document]:
    for line in tx.transfer.rows(DOCUMENT_TABLE):
        if document := tx.documents.get(line["id"]):
            yield document


def _is_file(document: Document, originals: KeptFiles) -> bool:
    """Return whether a document is exported as a file, not as a note."""
    return document.doc_type != NOTE and originals.has(document.content_hash)


def _made(target: Path) -> Path:
    """Create the folder of a path; return the path."""
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _name(document: Document, suffix: str) -> str:
    stem = Path(document.filename or "").stem or document.title
    readable = UNREADABLE.sub("-", stem).strip("-.")[:LONGEST_NAME]
    return f"{document.id}-{_cut(readable, LONGEST_STEM)}{_cut(suffix, LONGEST_SUFFIX)}"


def _cut(text: str, size: int) -> str:
    """Return as many characters as fit in `size` bytes."""
    return text.encode()[:size].decode(errors="ignore")
