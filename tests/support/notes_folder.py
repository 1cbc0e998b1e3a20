"""A notes folder over a store of its own, driven step by step, as the engine's thread does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kb.api.errors import Occupied
from kb.api.folder_models import WatchRecord
from kb.api.note_models import NoteRequest
from kb.blobs.folder import FolderBlobs
from kb.documents.delete import delete
from kb.documents.note_edit import Edit, NoteChange
from kb.documents.originals import Originals
from kb.documents.restore_document import restore
from kb.documents.watched_folders import write
from kb.documents.write_document import move
from kb.documents.write_new_note import NoteIntake
from kb.documents.write_updated_note import update_note
from kb.ingest.vectors_at_once import NoteVectors
from kb.notes_folder import marker
from kb.notes_folder.folder import NotesFolder
from kb.notes_folder.parts import FolderParts
from kb.notes_folder.vault import Vault
from kb.store.rows import Author, Filter, SyncedFolder
from tests.support.note_vectors import at_once

USER = Author("anna")
MOST_STEPS = 12
WATCH = "0" * 32


class KeptFolder:
    """A store, and a notes folder that `settle` brings to rest."""

    def __init__(
        self, store, embedder, root: Path, data: Path, most_characters: int = 100_000, *, with_ids=False, **rules
    ):
        self.store, self.embedder, self.root = store, embedder, root
        self.originals = Originals(FolderBlobs(data), keep=True)
        self.vectors = NoteVectors(embedder, ThreadPoolExecutor(1))
        self.parts = FolderParts(root, store, self.originals, self.vectors, most_characters, with_ids=with_ids, **rules)
        self.folder = self.start()

    def start(self) -> NotesFolder:
        """Return the folder of an engine that starts."""
        if hasattr(self, "folder"):
            self.folder.release()
        self.folder = NotesFolder(self.parts)
        return self.folder

    def settle(self):
        """Let the engine work until it has nothing to do."""
        for _ in range(MOST_STEPS):
            self.folder.step()
            if not self.folder._is_due and not self.waiting():
                break
        return self.folder.status()

    def waiting(self):
        with self.store.read() as tx:
            unwritten = [document_id for document_id, _ in self.parts.files(tx).unwritten()]
            return {*unwritten, *self.parts.files(tx).gone()} - self.folder._outgoing.failed.keys()

    def add(self, text, source_path=None, title=None, tags=()):
        note = NoteRequest(text=text, source_path=source_path, title=title, tags=list(tags))
        return NoteIntake(self.store, self.originals.blobs, self.vectors).add(note, author=USER).document_id

    def edit(self, document_id, text=None, **changes):
        change = NoteChange(Edit(text=text) if text is not None else Edit(), **changes)
        update_note(self.store, at_once(self.embedder), document_id, change, author=USER)

    def move(self, document_id, path):
        move(self.store, document_id, path, USER)

    def delete(self, document_id):
        delete(self.store, self.originals, document_id, USER)

    def restore(self, document_id):
        try:
            restore(self.store, document_id, USER)
        except Occupied:
            return False
        return True

    def note(self, document_id):
        with self.store.read() as tx:
            return tx.documents.get(document_id)

    def text(self, document_id):
        with self.store.read() as tx:
            return "".join(chunk.text for chunk in tx.documents.chunks(document_id))

    def notes(self):
        """Return the text of each note by its id."""
        with self.store.read() as tx:
            found = tx.documents.page(Filter(doc_type="note"), sort="id", limit=100_000, cursor=None)
            return {note.id: "".join(chunk.text for chunk in tx.documents.chunks(note.id)) for note in found}

    def binned(self):
        with self.store.read() as tx:
            return {binned.document.id for binned in tx.history.bin(limit=100_000)}

    def history(self, document_id):
        with self.store.read() as tx:
            return tx.history.versions(document_id, limit=1000)

    def mark(self, text):
        """Write the mark of the folder as another engine does."""
        (self.root / marker.NAME / marker.MARK).write_text(text)

    def file(self, document_id) -> Path:
        with self.store.read() as tx:
            [row] = [row for row in self.parts.files(tx).all() if row.document_id == document_id]
        return self.parts.place(row.path).absolute

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def files(self):
        """Return the content of each visible file by its path."""
        return {
            file.relative_to(self.root).as_posix(): file.read_bytes()
            for file in sorted(self.root.rglob("*"))
            if file.is_file()
            and not file.is_symlink()
            and not any(part.startswith(".") for part in file.relative_to(self.root).parts)
        }


class KeptVault(KeptFolder):
    """A vault that `settle` brings to rest, with the name `vault`."""

    def __init__(self, store, embedder, root, data, most_characters=100_000, **rules):
        rules = {"prefix": "vault/", "all_files": True, "exclude": ()} | rules
        super().__init__(store, embedder, root, data, most_characters, **rules)
        self.register()

    def start(self):
        """Return the vault of an engine that starts."""
        if hasattr(self, "folder"):
            self.folder.release()
        self.folder = Vault(self.parts, WATCH)
        self.folder._read_at = float("inf")
        return self.folder

    def register(self):
        """Say that the engine keeps the vault."""
        folder = SyncedFolder("vault/", "machine", "host", str(self.root), "", "2026-11-29T12:00:00Z", is_kept=True)
        with self.store.write() as tx:
            tx.folders.put(folder)
            write(tx, folder, WatchRecord(id=WATCH, tags=[], delete=True, both=True))

    def at(self, path):
        """Return the document of a file."""
        with self.store.read() as tx:
            return tx.documents.at_path(f"vault/{path}")
