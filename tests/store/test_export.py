"""What is exported comes back as it was, into an empty knowledge base or into one that holds something."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from kb.api.errors import StoreError
from kb.documents.save import save
from kb.ingest.chunk import Chunker
from kb.ingest.draft import draft_note, embed_draft
from kb.maintenance.doctor import verify_data
from kb.maintenance.export import export
from kb.maintenance.importing import import_folder
from kb.settings import Settings
from kb.store.lock import sole_user
from kb.store.rows import NOBODY
from kb.store.sqlite.store import SqliteStore
from tests.store.test_backup import Data
from tests.support.documents import content
from tests.support.spaces import space

LONG = "# Ledgers\n\n" + "\n\n".join(f"## Year {year}\n\n" + "Patient clerks kept them. " * 40 for year in range(5))


class RealData(Data):
    """A data directory whose vectors are the model's."""

    def __init__(self, folder, model_files):
        super().__init__(folder)
        self.settings = Settings(data_dir=folder, model_dir=model_files.onnx.parent)

    def open(self):
        return closing(SqliteStore(self.settings.data_dir / "kb.db", space()))

    def vectors(self):
        with self.open() as store:
            rows = store._writer.execute("SELECT embedding FROM chunks_vec ORDER BY chunk_id").fetchall()
        return np.frombuffer(b"".join(raw for (raw,) in rows), np.float32).reshape(-1, 384)


@pytest.fixture
def data(tmp_path, model_files, embedder):
    """Notes, one of them twice, one changed and one deleted; and a file with another one inside it."""
    data = RealData(tmp_path / "data", model_files)
    with data.open() as store:
        for title, path, text in (
            (None, None, "The lighthouse keeper counts ships."),
            ("Ledgers", "/ledgers", LONG),
            (None, None, "Nothing of this stays."),
            ("Tagged", "/tagged", "日本語 — and «quotes»\n---\nnot: front matter"),
        ):
            made = embed_draft(draft_note(text, title, embedder), embedder, lambda: None)
            with store.write() as tx:
                save(tx, made, path, ["b", "a"] if path else [])
        with store.write() as tx:
            tx.documents.delete(3)
            tx.documents.change_tags(1, add=["later"], remove=[])
        for number, part_of in ((5, None), (6, 5)):
            text = f"what file {number} says"
            kept = data.settings.staging_dir / "kept"
            kept.write_text(text)
            with store.write() as tx:
                vectors = embedder.embed_passages([Chunker(embedder).passage("A file", text)])
                made = content(text, "text", "A file")
                own = {"vectors": vectors, "own_tags": ("own",), "date": "2024-05", "filename": f"{number}.txt"}
                made = replace(made, **own)
                tx.documents.add(made, f"/files/{number}", ["own"], part_of)
                data.originals.add(kept, made.content_hash)
            kept.unlink()
        with store.write() as tx:
            tx.documents.delete(tx.documents.add(replace(made, content_hash="0"), "/last", []))
    return data


def everything(data):
    """The documents with all that an export promises to bring back."""
    with data.open() as store, store.read() as tx:
        parts = dict(tx.connection.execute("SELECT id, part_of FROM documents").fetchall())
        last = tx.connection.execute("SELECT id FROM last_ids WHERE name = 'documents'").get
        chunks = {id_: [(chunk.text, chunk.header, chunk.place) for chunk in tx.documents.chunks(id_)] for id_ in parts}
    documents, texts, files, _ = data.state()
    return documents, texts, files, parts, chunks, last


def test_an_empty_knowledge_base_becomes_equal(data, tmp_path, model_files):
    with data.open():  # as an engine may have it open
        export(data.settings, tmp_path / "export", as_notes=False)
    other = RealData(tmp_path / "other", model_files)
    imported = import_folder(other.settings, tmp_path / "export", lambda _: None)
    assert (imported.added, imported.there) == (5, 0)
    with other.open() as store, store.read() as tx:
        assert tx.history.begins() >= max(each.created_at for each in everything(data)[0].values())
    assert everything(other) == everything(data)
    np.testing.assert_allclose(other.vectors(), data.vectors(), atol=1e-5)
    assert list(verify_data(other.settings)) == []
    export(other.settings, tmp_path / "again", as_notes=False)
    assert (tmp_path / "again" / "documents.jsonl").read_bytes() == (
        tmp_path / "export" / "documents.jsonl"
    ).read_bytes()
    assert not list(tmp_path.rglob("*.part"))


def test_what_is_there_already_stays_one_document(data, tmp_path):
    export(data.settings, tmp_path / "export", as_notes=False)
    before = everything(data)
    imported = import_folder(data.settings, tmp_path / "export", lambda _: None)
    assert (imported.added, imported.there) == (0, 5)
    assert everything(data) == before


def test_a_filled_knowledge_base_keeps_what_it_has_and_gives_new_ids(data, tmp_path, model_files, embedder):
    export(data.settings, tmp_path / "export", as_notes=False)
    other = RealData(tmp_path / "other", model_files)
    with other.open() as store:
        for number in range(7):
            made = embed_draft(draft_note(f"Its own note {number}.", None, embedder), embedder, lambda: None)
            with store.write() as tx:
                save(tx, made, None, [])
    own = everything(other)[0]
    import_folder(other.settings, tmp_path / "export", lambda _: None)
    documents, _, files, parts, *_ = everything(other)
    assert {id_: documents[id_] for id_ in own} == own
    added = [each for id_, each in documents.items() if id_ not in own]
    assert [(each.title, each.tags, each.created_at) for each in added] == [
        (each.title, each.tags, each.created_at) for each in everything(data)[0].values()
    ]
    [whole, inside] = sorted(files)
    assert parts[inside] == whole
    assert list(verify_data(other.settings)) == []


def test_an_import_that_is_given_again_goes_on(data, tmp_path, model_files):
    export(data.settings, tmp_path / "export", as_notes=False)
    lines = (tmp_path / "export" / "documents.jsonl").read_bytes()
    other = RealData(tmp_path / "other", model_files)
    (tmp_path / "export" / "documents.jsonl").write_bytes(b"".join(lines.splitlines(keepends=True)[:2]) + b"{")
    about = json.loads((tmp_path / "export" / "kb-export.json").read_text())
    with pytest.raises(StoreError, match="line 3"):
        import_folder(other.settings, tmp_path / "export", lambda _: None)
    (tmp_path / "export" / "documents.jsonl").write_bytes(lines)
    assert about["last_document_id"] == 7
    import_folder(other.settings, tmp_path / "export", lambda _: None)
    assert everything(other) == everything(data)


@pytest.mark.parametrize("damage", ["note", "file"])
def test_what_is_not_what_it_was_is_refused(data, tmp_path, model_files, damage):
    export(data.settings, tmp_path / "export", as_notes=False)
    if damage == "note":
        path = tmp_path / "export" / "documents.jsonl"
        path.write_text(path.read_text("utf-8").replace("counts ships", "counts sheep"), "utf-8")
    else:
        path = next((tmp_path / "export" / "files").glob("??/*"))
        path.write_bytes(b"something else")
    other = RealData(tmp_path / "other", model_files)
    with pytest.raises(StoreError, match="what"):
        import_folder(other.settings, tmp_path / "export", lambda _: None)


def test_nothing_is_overwritten_and_no_engine_is_imported_under(data, tmp_path):
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "mine").touch()
    with pytest.raises(StoreError, match="holds something"):
        export(data.settings, tmp_path / "export", as_notes=False)
    (tmp_path / "export" / "mine").unlink()
    with pytest.raises(StoreError, match="no export"):
        import_folder(data.settings, tmp_path / "export", lambda _: None)
    export(data.settings, tmp_path / "export", as_notes=False)
    with sole_user(data.settings.data_dir / "kb.lock"), pytest.raises(StoreError, match="Another kb engine"):
        import_folder(data.settings, tmp_path / "export", lambda _: None)


def test_people_get_notes_as_markdown_and_files_under_their_names(data, tmp_path):
    shutil.rmtree(data.originals.path(content("what file 6 says").content_hash).parent)
    export(data.settings, tmp_path / "export", as_notes=True)
    notes = {path.name: path.read_text("utf-8") for path in (tmp_path / "export" / "notes").iterdir()}
    assert sorted(notes) == ["1-The-lighthouse-keeper-counts-ships.md", "2-Ledgers.md", "4-Tagged.md", "6-6.md"]
    front, _, text = notes["4-Tagged.md"][4:].partition("\n---\n\n")
    assert text == "日本語 — and «quotes»\n---\nnot: front matter"
    assert "title: Tagged\ntags:\n- a\n- b\nsource_path: /tagged\n" in front
    files = {path.name: path.read_text() for path in (tmp_path / "export" / "files").iterdir()}
    assert files == {"5-5.txt": "what file 5 says"}
    assert sorted(path.name for path in (tmp_path / "export").iterdir()) == ["files", "notes"]


def test_an_export_removes_nothing_that_is_not_its_own(data, tmp_path):
    other = tmp_path / "out.part" / "photo"
    other.parent.mkdir()
    other.touch()
    with pytest.raises(StoreError, match="there already"):
        export(data.settings, tmp_path / "out", as_notes=False)
    assert other.exists()


def test_files_of_what_is_in_the_bin_are_not_exported(data, tmp_path):
    with data.open() as store, store.write() as tx:
        digest = tx.documents.get(5).content_hash
        tx.history.discard(5, NOBODY)
    assert data.originals.path(digest).exists()
    export(data.settings, tmp_path / "out", as_notes=False)
    assert not list((tmp_path / "out").rglob(digest))
