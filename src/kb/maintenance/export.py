"""Everything in files that other programs read; docs/operations.md describes them.

kb-export.json     the format's number, and the highest id that a document was given
documents.jsonl    a document a line, with its chunks
versions.jsonl     a former version a line, with its chunks, also of documents in the bin
files/ab/abcd…     the files that documents came from, by the SHA-256 of their content
"""

from __future__ import annotations

import json
import re
import shutil
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import yaml

from kb import __version__
from kb.api.errors import StoreError
from kb.api.models import NOTE
from kb.blobs.folder import KeptFiles
from kb.filesystem import sync
from kb.maintenance.archive import PART, Manifest, copy, discarded_unless_finished
from kb.maintenance.backup import Copier
from kb.maintenance.plain_names import Tree
from kb.maintenance.restoring import finish_restore
from kb.store.open import database_path
from kb.store.sqlite.backup import Moment
from kb.store.sqlite.transfer import (
    FormerVersion,
    Leaving,
    history_begins,
    last_document_id,
    leaving,
    leaving_files,
    leaving_versions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from kb.settings import Settings
    from kb.store.rows import Author, Chunk, Document, NewChunk

FORMAT: Final = 2
ABOUT: Final = "kb-export.json"
DOCUMENTS: Final = "documents.jsonl"
VERSIONS: Final = "versions.jsonl"
FILES: Final = "files"
NOTES: Final = "notes"
ORIGINALS: Final = "originals.part"
"""Where the files are by their hashes until each has its name."""
LONGEST_NAME: Final = 80
LONGEST_STEM: Final = 200
LONGEST_SUFFIX: Final = 30
"""In bytes: a name of a file has 255 at most, and those of the id are among them."""
UNREADABLE: Final = re.compile(r"[^\w.-]+")
"""What stands in no name of a file."""


def export(settings: Settings, target: Path, *, as_notes: bool) -> Manifest:
    """Write everything to the folder `target`, as it is at one moment, former versions and the bin too; no jobs.

    Args:
        settings: those of the engine, which may run.
        target: a folder that is not there or empty.
        as_notes: write what stands, notes as Markdown with front matter and files under their names, for people and
            other programs.

    Raises:
        StoreError: the database cannot be read, or the folder cannot be written or holds something.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StoreError(f"{target} holds something already: name another folder.")
    finish_restore(settings)
    path = database_path(settings.database_url, settings.data_dir)
    try:
        with closing(Moment(path)) as moment, discarded_unless_finished(_ExportWriter(target, as_notes)) as writer:
            manifest = Copier(settings, moment, writer, lambda: None).copy()
            writer.finish(manifest)
    except OSError as error:
        raise StoreError(f"The export {target} cannot be written: {error.strerror or error}.") from error
    return manifest


class _ExportWriter:
    """Collects a moment's files and database, and writes the export from them."""

    def __init__(self, target: Path, as_notes: bool) -> None:
        self._target = target
        self._part = target.with_name(f"{target.name}{PART}")
        if self._part.exists():
            raise StoreError(f"{self._part} is there already: remove it, if it is of an export that was cut off.")
        self._part.mkdir(parents=True, mode=0o700)
        self._originals = KeptFiles(self._part / FILES)
        self._write: Callable[[Path, Path], None] = _write_notes if as_notes else _write_lines
        self.database = self._part / "kb.db"

    def has(self, digest: str) -> bool:
        """Return whether the file is there."""
        return self._originals.has(digest)

    def put(self, file: BinaryIO) -> str:
        """Keep a file; return its SHA-256."""
        part = self._part / "file.part"
        digest = copy(file, part)
        target = self._originals.path(digest)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part.replace(target)
        return digest

    def finish(self, manifest: Manifest) -> Path:
        """Write the documents; other files, such as those of jobs, are no part of an export."""
        for digest in self._originals.digests() - (set(manifest.originals) & leaving_files(self.database)):
            self._originals.path(digest).unlink()
        self._write(self.database, self._part)
        for ending in ("", "-wal", "-shm", "-journal"):
            self.database.with_name(f"{self.database.name}{ending}").unlink(missing_ok=True)
        for path in (*self._part.rglob("*"), self._part):
            sync(path)
        if self._target.exists():
            self._target.rmdir()
        self._part.rename(self._target)
        sync(self._target.parent)
        return self._target

    def discard(self) -> None:
        """Remove what is not finished."""
        shutil.rmtree(self._part, ignore_errors=True)


def _write_lines(database: Path, folder: Path) -> None:
    about = {
        "kb-export": FORMAT,
        "made_at": datetime.now(UTC).isoformat(),
        "kb": __version__,
        "last_document_id": last_document_id(database),
        "history_begins": history_begins(database),
    }
    (folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    with (folder / DOCUMENTS).open("w", encoding="utf-8", newline="\n") as lines:
        for each in leaving(database):
            lines.write(json.dumps(_line(each), ensure_ascii=False) + "\n")
    with (folder / VERSIONS).open("w", encoding="utf-8", newline="\n") as lines:
        for former in leaving_versions(database):
            lines.write(json.dumps(_version_line(former), ensure_ascii=False) + "\n")


def _line(each: Leaving) -> dict[str, Any]:
    version = {"version": each.version.number, **_author(each.version.author)}
    return _fields(each.document) | {"part_of": each.part_of} | version | {"chunks": list(map(_chunk, each.chunks))}


def _version_line(former: FormerVersion) -> dict[str, Any]:
    """Return a former version; the last one of a document in the bin says when it was deleted, and by whom."""
    version, binned = former.version, former.binned
    fields = {"version": version.number, **_author(version.author), "until": version.until}
    chunks = None if former.chunks is None else list(map(_chunk, former.chunks))
    deleted = (
        {"deleted": {"at": binned.deleted_at, "part_of": binned.part_of, **_author(binned.author)}} if binned else {}
    )
    held = {"chunks": chunks, "chunks_of": former.chunks_of}
    return _fields(version.document) | {"part_of": former.part_of} | fields | deleted | held


def _fields(document: Document) -> dict[str, Any]:
    return {
        "id": document.id,
        "doc_type": document.doc_type,
        "title": document.title,
        "title_given": document.title_given,
        "source_path": document.source_path,
        "filename": document.filename,
        "content_hash": document.content_hash,
        "date": document.date,
        "created_at": document.created_at,
        "updated_at": document.updated_at,
        "tags": list(document.tags),
        "own_tags": list(document.own_tags),
        "source": document.source,
        "replaces": document.replaces,
        "omitted": dict(document.omitted),
        "language": document.language,
    }


def _author(author: Author) -> dict[str, str | None]:
    return {"by": author.by, "client": author.client, "why": author.why}


def _chunk(chunk: Chunk | NewChunk) -> dict[str, Any]:
    return {
        "text": chunk.text,
        "header": chunk.header,
        "heading": list(chunk.place.heading),
        "page": chunk.place.page,
        "lines": [chunk.place.line_start, chunk.place.line_end],
        "characters": [chunk.place.char_start, chunk.place.char_end],
    }


def _write_notes(database: Path, folder: Path) -> None:
    """Write each note, and the text of each file that was not kept, as Markdown; and each file under its name."""
    (folder / FILES).mkdir(exist_ok=True)
    (folder / FILES).rename(folder / ORIGINALS)
    kept = KeptFiles(folder / ORIGINALS)
    for name in (FILES, NOTES):
        (folder / name).mkdir()
    paths = [(_is_file(each, kept), each.document.source_path or "") for each in leaving(database)]
    files, notes = (Tree(path for is_file, path in paths if is_file is wanted) for wanted in (True, False))
    for each in leaving(database):
        document, path = each.document, each.document.source_path
        if _is_file(each, kept):
            own = _name(each, Path(document.filename or "").suffix)
            target = _made(folder / FILES / (files.place(path, document.id) if path else own))
            shutil.copyfile(kept.path(document.content_hash), target)
        else:
            around, slash, _ = (path or "").rpartition("/")
            target = _made(folder / NOTES / notes.place(f"{around}{slash}{_name(each, '.md')}", document.id))
            target.write_text(_markdown(each), "utf-8", newline="\n")
    shutil.rmtree(folder / ORIGINALS)


def _is_file(each: Leaving, kept: KeptFiles) -> bool:
    """Return whether a document leaves as a file, and not as a note."""
    return each.document.doc_type != NOTE and kept.has(each.document.content_hash)


def _made(target: Path) -> Path:
    """Return where a file is written, with its folder made."""
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _name(each: Leaving, suffix: str) -> str:
    stem = Path(each.document.filename or "").stem or each.document.title
    readable = UNREADABLE.sub("-", stem).strip("-.")[:LONGEST_NAME]
    return f"{each.document.id}-{_cut(readable, LONGEST_STEM)}{_cut(suffix, LONGEST_SUFFIX)}"


def _cut(text: str, size: int) -> str:
    """Return the characters that fit in so many bytes."""
    return text.encode()[:size].decode(errors="ignore")


def _markdown(each: Leaving) -> str:
    document = each.document
    front = {
        "title": document.title,
        "tags": list(document.tags),
        "date": document.date,
        "source_path": document.source_path,
        "source": document.source,
        "replaces": document.replaces,
        "created": document.created_at,
        "updated": document.updated_at,
    }
    given = {name: value for name, value in front.items() if value}
    header = yaml.safe_dump(given, allow_unicode=True, sort_keys=False)
    return f"---\n{header}---\n\n{''.join(chunk.text for chunk in each.chunks)}"
