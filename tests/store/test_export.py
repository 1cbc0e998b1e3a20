"""An export is imported unchanged, into an empty knowledge base or into one with documents."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from kb.api.errors import StoreError
from kb.backup.verify import verify_data
from kb.documents.lookup import existing_version
from kb.documents.restore_document import restore, revert
from kb.documents.write_document import write_document
from kb.exchange import export_folder
from kb.exchange.export import export
from kb.exchange.importing import import_folder
from kb.ingest.chunk import Chunker
from kb.ingest.draft import draft_note, embed_draft
from kb.repair.reindex import reindex
from kb.settings import Settings
from kb.store.engine_lock import sole_user
from kb.store.rows import NOBODY, OPTIONAL_FIELDS, Author, NewJob
from kb.store.sqlite.store import SqliteStore
from tests.store.test_backup import Data
from tests.support.blobs import kept_at
from tests.support.documents import content
from tests.support.rare_cases import mostly_rare
from tests.support.spaces import space

LONG = "# Ledgers\n\n" + "\n\n".join(f"## Year {year}\n\n" + "Patient clerks kept them. " * 40 for year in range(5))


class RealData(Data):
    """A data folder with the model's vectors."""

    def __init__(self, folder, model_files):
        super().__init__(folder)
        self.settings = Settings(data_dir=folder, model_dir=model_files.onnx.parent)

    def open(self):
        return closing(SqliteStore(self.settings.data_dir / "kb.db", space()))

    def vectors(self):
        with self.open() as store:
            rows = store._writer.execute("SELECT embedding FROM chunks_vec ORDER BY chunk_id").fetchall()
        return np.frombuffer(b"".join(raw for (raw,) in rows), np.float32).reshape(-1, 384)


@pytest.fixture(scope="module")
def filled(tmp_path_factory, model_files, embedder):
    """Notes, one of them twice, one changed and one deleted; and a file with another one inside it."""
    data = RealData(tmp_path_factory.mktemp("filled") / "data", model_files)
    with data.open() as store:
        for title, path, text in (
            (None, None, "The lighthouse keeper counts ships."),
            ("Ledgers", "/ledgers", LONG),
            (None, None, "Nothing of this stays."),
            ("Tagged", "/tagged", "日本語 — and «quotes»\n---\nnot: front matter"),
        ):
            made = embed_draft(draft_note(text, title, embedder), embedder, lambda: None)
            with store.write() as tx:
                write_document(tx, made, path, ["b", "a"] if path else [])
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
                own = {
                    "vectors": vectors,
                    "own_tags": ("own",),
                    "date": "2024-05",
                    "filename": f"{number}.txt",
                    "omitted": {"files": number},
                }
                made = replace(made, **own)
                tx.documents.add(made, f"/files/{number}", ["own"], part_of)
                data.originals.add(kept.name, made.content_hash)
            kept.unlink()
        with store.write() as tx:
            tx.documents.delete(tx.documents.add(replace(made, content_hash="0"), "/last", []))
    return data


@pytest.fixture
def data(filled, tmp_path, model_files):
    """A copy of it."""
    shutil.copytree(filled.settings.data_dir, tmp_path / "data")
    return RealData(tmp_path / "data", model_files)


@pytest.fixture(scope="module")
def exported_with_past(filled, tmp_path_factory, model_files, embedder):
    folder = tmp_path_factory.mktemp("past")
    shutil.copytree(filled.settings.data_dir, folder / "data")
    data = RealData(folder / "data", model_files)
    change(data, embedder)
    export(data.settings, folder / "export", as_notes=False)
    return folder / "export"


@pytest.fixture
def exported(exported_with_past, tmp_path):
    """An export of it after changes."""
    return Path(shutil.copytree(exported_with_past, tmp_path / "export"))


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
    assert past(other) == past(data)
    assert everything(other) == everything(data)
    np.testing.assert_allclose(other.vectors(), data.vectors(), atol=1e-5)
    assert list(verify_data(other.settings)) == []
    export(other.settings, tmp_path / "again", as_notes=False)
    assert (tmp_path / "again" / "documents.jsonl").read_bytes() == (
        tmp_path / "export" / "documents.jsonl"
    ).read_bytes()
    assert not list(tmp_path.rglob("*.part"))


def links_of(data):
    """By the title of each document, the titles of those that it links to."""
    with data.open() as store, store.read() as tx:
        ids = [id_ for (id_,) in tx.connection.execute("SELECT id FROM documents ORDER BY id").fetchall()]
        documents = [tx.documents.get(id_) for id_ in ids]
        return {each.title: [link.title for link in tx.links.outgoing(each)] for each in documents}


@pytest.mark.parametrize("is_filled", [False, True], ids=["into an empty one", "into a filled one"])
def test_links_and_the_ids_of_mails_come_along(tmp_path, model_files, embedder, is_filled):
    data, other = (RealData(tmp_path / name, model_files) for name in ("data", "other"))
    one = {"vectors": np.full((1, 384), 384**-0.5, np.float32)}
    with data.open() as store, store.write() as tx:
        tx.documents.add(replace(content("to [[Keys]] and [[None]]", "markdown", "Kiln"), **one), "/v/Kiln.md", [])
        tx.documents.add(replace(content("to [[kiln]]", "markdown", "Keys"), **one), "/v/Keys.md", [])
        for name, ids in (("First", ("a@x",)), ("Second", ("b@x", "a@x"))):
            made = replace(content(name, "eml", name), **one, message_ids=ids)
            tx.documents.add(made, f"/v/{name}.eml", [])
    expected = {"Kiln": ["Keys", None], "Keys": ["Kiln"], "First": [], "Second": ["First"]}
    assert links_of(data) == expected
    if is_filled:
        with other.open() as store, store.write() as tx:
            tx.documents.add(replace(content("an own note"), **one), None, [])
        expected = {"A title": [], **expected}
    export(data.settings, tmp_path / "export", as_notes=False)
    import_folder(other.settings, tmp_path / "export", lambda _: None)
    assert links_of(other) == expected
    assert list(verify_data(other.settings)) == []


def test_links_that_are_damaged_are_read_again_after_a_rebuild(tmp_path, model_files):
    data = RealData(tmp_path / "data", model_files)
    one = {"vectors": np.full((1, 384), 384**-0.5, np.float32)}
    with data.open() as store:
        with store.write() as tx:
            tx.documents.add(replace(content("to [[Keys]]", "markdown", "Kiln"), **one), "/v/Kiln.md", [])
            tx.documents.add(replace(content("to [[kiln]]", "markdown", "Keys"), **one), "/v/Keys.md", [])
        before = links_of(data)
        with store.write() as tx:
            tx.connection.execute("DELETE FROM links")
            tx.connection.execute("UPDATE link_names SET link_key = link_key || '?'")
    assert links_of(data) != before
    reindex(data.settings, lambda *_: None, recompute_all=False)
    with data.open() as store, store.write() as tx:
        assert not tx.links.is_complete
        while tx.documents.link_older(10):
            pass
    assert links_of(data) == before
    assert list(verify_data(data.settings)) == []


def test_what_is_there_already_stays_one_document(data, tmp_path):
    export(data.settings, tmp_path / "export", as_notes=False)
    before = everything(data)
    imported = import_folder(data.settings, tmp_path / "export", lambda _: None)
    assert (imported.added, imported.there) == (0, 5)
    assert everything(data) == before


@pytest.mark.parametrize("count", [2, 3])
def test_documents_that_hold_the_same_come_over_each_by_itself_and_once(tmp_path, model_files, embedder, count):
    data, other = (RealData(tmp_path / name, model_files) for name in ("data", "other"))
    made = embed_draft(draft_note("The same again.", None, embedder), embedder)
    with data.open() as store, store.write() as tx:
        for _ in range(count):
            tx.documents.add(made, None, [])
    export(data.settings, tmp_path / "export", as_notes=False)
    for expected in ((count, 0), (0, count)):
        imported = import_folder(other.settings, tmp_path / "export", lambda _: None)
        assert (imported.added, imported.there) == expected
        assert everything(other) == everything(data)


def test_a_filled_knowledge_base_keeps_what_it_has_and_gives_new_ids(data, tmp_path, model_files, embedder):
    export(data.settings, tmp_path / "export", as_notes=False)
    other = RealData(tmp_path / "other", model_files)
    with other.open() as store:
        for number in range(7):
            made = embed_draft(draft_note(f"Its own note {number}.", None, embedder), embedder, lambda: None)
            with store.write() as tx:
                write_document(tx, made, None, [])
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


def test_an_import_that_is_given_again_goes_on(data, tmp_path, model_files, monkeypatch):
    monkeypatch.setattr(export_folder, "SLICE", 1)
    export(data.settings, tmp_path / "export", as_notes=False)
    other = RealData(tmp_path / "other", model_files)

    def cut_off(done):
        assert done < 2

    with pytest.raises(AssertionError):
        import_folder(other.settings, tmp_path / "export", cut_off)
    assert 0 < len(everything(other)[0]) < 5
    about = json.loads((tmp_path / "export" / "kb-export.json").read_text())
    assert about["last_document_id"] == 7
    import_folder(other.settings, tmp_path / "export", lambda _: None)
    assert everything(other) == everything(data)


def rewrite(path, number, **fields):
    """Give a line of an export other fields, and the export a digest that fits."""
    lines = path.read_text("utf-8").splitlines()
    lines[number - 1] = json.dumps(json.loads(lines[number - 1]) | fields)
    write_lines(path, lines)


def write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    header = path.with_name("kb-export.json")
    about = json.loads(header.read_text("utf-8"))
    about["files"][path.name] = sha256(path.read_bytes()).hexdigest()
    header.write_text(json.dumps(about), "utf-8")


def refused(other, exported):
    """The message about a refused export. Nothing is written."""
    with pytest.raises(StoreError) as refusal:
        import_folder(other.settings, exported, lambda _: None)
    assert not (other.settings.data_dir / "kb.db").exists()
    return str(refusal.value)


@pytest.mark.parametrize("steps", mostly_rare([1, 2, 3, 4, 5]))
def test_an_import_that_was_cut_off_anywhere_brings_back_history_and_links_when_it_is_given_again(
    tmp_path, model_files, embedder, monkeypatch, steps
):
    monkeypatch.setattr(export_folder, "SLICE", 1)
    data, other = (RealData(tmp_path / name, model_files) for name in ("data", "other"))
    with data.open() as store:
        for number in range(1, 6):
            write(store, embedder, f"Note {number}.", f"/{number}")
        for number, replaced in {1: 4, 2: 1, 4: 3}.items():
            write(store, embedder, f"Note {number} said again.", f"/{number}", replaces=replaced)
        with store.write() as tx:
            tx.history.discard(3, NOBODY)
    export(data.settings, tmp_path / "export", as_notes=False)

    def cut_off(done):
        if done == steps:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_folder(other.settings, tmp_path / "export", cut_off)
    import_folder(other.settings, tmp_path / "export", lambda _: None)
    assert everything(other) == everything(data)
    assert past(other) == past(data)
    full, at_once = (RealData(tmp_path / name, model_files) for name in ("full", "at once"))
    for each in (full, at_once):
        with each.open() as store:
            write(store, embedder, "It was here before.", "/own")
    with pytest.raises(KeyboardInterrupt):
        import_folder(full.settings, tmp_path / "export", cut_off)
    for each in (full, at_once):
        import_folder(each.settings, tmp_path / "export", lambda _: None)
    assert links(full) == links(at_once)


def links(data):
    """The path that each document replaces, by its path."""
    documents = data.state()[0]
    paths = {id_: each.source_path for id_, each in documents.items()}
    return {each.source_path: paths.get(each.replaces, each.replaces) for each in documents.values()}


@pytest.mark.parametrize("name", ["documents.jsonl", "versions.jsonl"])
@pytest.mark.parametrize("content_hash", ["./../keys.json", "./../../../etc/passwd", "0" * 63, "A" * 64, 5, None])
def test_an_export_whose_hash_is_a_path_is_refused_as_a_whole(exported, tmp_path, model_files, name, content_hash):
    path = exported / name
    last = len(path.read_text("utf-8").splitlines())
    rewrite(path, last, content_hash=content_hash)
    said = refused(RealData(tmp_path / "other", model_files), tmp_path / "export")
    assert f"{name}, line {last}" in said
    assert "content_hash" in said


WRONG = {
    "a moment": {"created_at": "zzz"},
    "a moment of no calendar": {"created_at": "2026-02-30T00:00:00.000Z"},
    "a moment of another zone": {"updated_at": "2026-01-31T12:00:00+01:00"},
    "a type": {"doc_type": "<b>x"},
    "no type": {"doc_type": ""},
    "a tag": {"tags": ["fine", "\x1b[31mred"]},
    "an empty tag": {"own_tags": ["  "]},
    "no list": {"tags": "work"},
    "a title": {"title": None},
    "an id": {"id": 1 << 70},
    "a field": {"other": 1},
    "a page": {
        "chunks": [{"text": "", "header": "", "heading": [], "page": -1, "lines": [1, 1], "characters": [0, 1]}]
    },
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["documents.jsonl", "versions.jsonl"])
def test_a_line_with_a_field_that_no_knowledge_base_has_is_refused_and_named(
    exported, tmp_path, model_files, name, wrong
):
    rewrite(exported / name, 2, **WRONG[wrong])
    said = refused(RealData(tmp_path / "other", model_files), tmp_path / "export")
    [field] = WRONG[wrong]
    assert f"{name}, line 2: {field}" in said
    assert ("newer version" in said) is (wrong == "a field")
    assert "\n" not in said
    assert "\x1b" not in said


@pytest.mark.parametrize("fields", [{"until": None}, {"deleted": {"at": "zzz", "part_of": None}}])
def test_a_version_without_the_moment_of_its_end_is_refused_and_named(exported, tmp_path, model_files, fields):
    rewrite(exported / "versions.jsonl", 3, **fields)
    said = refused(RealData(tmp_path / "other", model_files), tmp_path / "export")
    assert f"line 3: {next(iter(fields))}" in said


def test_what_a_table_does_not_take_is_told_in_a_line(exported, tmp_path, model_files):
    [chunk] = json.loads((tmp_path / "export" / "documents.jsonl").read_text("utf-8").splitlines()[0])["chunks"]
    rewrite(tmp_path / "export" / "documents.jsonl", 2, chunks=[chunk], doc_type="text")
    with pytest.raises(StoreError, match="refused document 4: UNIQUE"):
        import_folder(RealData(tmp_path / "other", model_files).settings, tmp_path / "export", lambda _: None)


def test_an_export_with_a_line_twice_is_refused(exported, tmp_path, model_files):
    path = exported / "versions.jsonl"
    first, *rest = path.read_text("utf-8").splitlines()
    write_lines(path, [first, first, *rest])
    assert "versions.jsonl, line 2: the lines are not in order" in refused(
        RealData(tmp_path / "other", model_files), tmp_path / "export"
    )


def test_an_export_of_which_somebody_changed_a_file_is_refused(data, tmp_path, model_files):
    export(data.settings, tmp_path / "export", as_notes=False)
    path = tmp_path / "export" / "documents.jsonl"
    path.write_text(path.read_text("utf-8").replace('"date": null', '"date": "2024"', 1), "utf-8")
    assert "documents.jsonl was changed or is damaged" in refused(
        RealData(tmp_path / "other", model_files), tmp_path / "export"
    )


def test_an_export_of_format_2_comes_back_as_it_was(tmp_path, model_files, embedder):
    other = RealData(tmp_path / "other", model_files)
    exported = Path(__file__).parents[1] / "support" / "export_v2"
    imported = import_folder(other.settings, exported, lambda _: None)
    assert (imported.added, imported.there) == (5, 0)
    export(other.settings, tmp_path / "again", as_notes=False)
    for name in ("documents.jsonl", "versions.jsonl"):
        lines, again = (
            [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]
            for folder in (exported, tmp_path / "again")
        )
        for line, written in zip(lines, again, strict=True):
            assert [chunk | {"id": None} for chunk in written.pop("chunks") or ()] == [
                chunk | {"id": None} for chunk in line.pop("chunks") or ()
            ]
            written.pop("operation")
            written.get("deleted", {}).pop("operation", None)
            assert written == dict.fromkeys(OPTIONAL_FIELDS) | line
    assert list(verify_data(other.settings)) == []


def test_an_export_from_before_an_optional_field_existed_is_imported(data, tmp_path, model_files, embedder):
    change(data, embedder)
    with data.open() as store, store.write() as tx:
        job_id = tx.jobs.add(NewJob("note", "Waiting", None, (), text="Not read yet."))
    export(data.settings, tmp_path / "export", as_notes=False)
    for name in ("documents.jsonl", "versions.jsonl", "jobs.jsonl"):
        path = tmp_path / "export" / name
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        assert lines
        for line in lines:
            for field in OPTIONAL_FIELDS:
                assert line.pop(field) is None
        write_lines(path, [json.dumps(line) for line in lines])
    other = RealData(tmp_path / "other", model_files)
    import_folder(other.settings, tmp_path / "export", lambda _: None)
    assert everything(other) == everything(data)
    with other.open() as store, store.read() as tx:
        assert tx.jobs.get(job_id).source is None


@pytest.mark.parametrize("fields", [{"last_document_id": "7"}, {"history_begins": "zzz"}, {"kb-export": None}])
def test_an_export_that_says_nonsense_of_itself_is_refused(data, tmp_path, model_files, fields):
    export(data.settings, tmp_path / "export", as_notes=False)
    path = tmp_path / "export" / "kb-export.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    assert next(iter(fields)) in refused(RealData(tmp_path / "other", model_files), tmp_path / "export")


def test_what_a_note_says_of_its_tags_comes_along_whatever_it_is(tmp_path, model_files, embedder):
    data, other = (RealData(tmp_path / name, model_files) for name in ("data", "other"))
    with data.open() as store:
        write(store, embedder, '---\ntags: ["Berlin, Mitte", "\\e[31mred", " é "]\n---\nThe office.', "/office")
    export(data.settings, tmp_path / "export", as_notes=False)
    import_folder(other.settings, tmp_path / "export", lambda _: None)
    assert everything(other)[0][1].own_tags == ("Berlin", "Mitte", "é")


def test_a_line_that_is_cut_off_is_named_and_nothing_is_written(data, tmp_path, model_files):
    export(data.settings, tmp_path / "export", as_notes=False)
    path = tmp_path / "export" / "documents.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]) + b"{")
    assert "line 3" in refused(RealData(tmp_path / "other", model_files), tmp_path / "export")


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
    with pytest.raises(StoreError, match="is not empty"):
        export(data.settings, tmp_path / "export", as_notes=False)
    (tmp_path / "export" / "mine").unlink()
    with pytest.raises(StoreError, match=f"not an export .*'kb add {tmp_path / 'export'}'"):
        import_folder(data.settings, tmp_path / "export", lambda _: None)
    export(data.settings, tmp_path / "export", as_notes=False)
    with sole_user(data.settings.data_dir / "kb.lock"), pytest.raises(StoreError, match="Another kb engine"):
        import_folder(data.settings, tmp_path / "export", lambda _: None)


def test_people_get_notes_as_markdown_and_files_under_their_names(data, tmp_path):
    shutil.rmtree(kept_at(data.originals, content("what file 6 says").content_hash).parent)
    export(data.settings, tmp_path / "export", as_notes=True)
    notes = written_below(tmp_path / "export" / "notes")
    assert sorted(notes) == ["1-The-lighthouse-keeper-counts-ships.md", "2-Ledgers.md", "4-Tagged.md", "files/6-6.md"]
    front, _, text = notes["4-Tagged.md"][4:].partition("\n---\n\n")
    assert text == "日本語 — and «quotes»\n---\nnot: front matter"
    assert "title: Tagged\ntags:\n- a\n- b\nsource_path: /tagged\n" in front
    assert written_below(tmp_path / "export" / "files") == {"files/5": "what file 5 says"}
    assert sorted(path.name for path in (tmp_path / "export").iterdir()) == ["files", "notes"]


def written_below(folder):
    """The contents of the files below a folder, by relative path."""
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


def test_names_of_any_letters_and_length_become_names_of_files(tmp_path, model_files, embedder):
    data = RealData(tmp_path / "data", model_files)
    made = embed_draft(draft_note("Said.", "\U0001d400" * 500, embedder), embedder)
    with data.open() as store:
        with store.write() as tx:
            tx.documents.add(made, None, [])
        text = data.add_file(store, "read", filename=f"{'ж' * 300}.{'日' * 200}", vectors=made.vectors)
        with store.write() as tx:
            tx.documents.move(text, None)
    export(data.settings, tmp_path / "export", as_notes=True)
    [note] = (tmp_path / "export" / "notes").iterdir()
    [file] = (tmp_path / "export" / "files").iterdir()
    assert note.name == f"1-{chr(0x1D400) * 50}.md"
    assert file.name == f"{text}-{'ж' * 80}.{'日' * 9}"


def test_an_export_removes_nothing_that_is_not_its_own(data, tmp_path):
    other = tmp_path / "out.part" / "photo"
    other.parent.mkdir()
    other.touch()
    with pytest.raises(StoreError, match="already exists"):
        export(data.settings, tmp_path / "out", as_notes=False)
    assert other.exists()


def change(data, embedder):
    """Give documents a past: changed texts, tags and paths, one back from the bin and two in it."""
    author = Author("mallory", "cli/1", "by mistake")
    with data.open() as store:
        for text in ("It counts ships and gulls.", "It counts nothing."):
            made = embed_draft(draft_note(text, None, embedder), embedder)
            with store.write() as tx:
                tx.history.keep(1, author)
                tx.documents.replace(1, made)
        with store.write() as tx:
            tx.history.keep(4, author)
            tx.documents.change_tags(4, add=["c"], remove=["a"])
        with store.write() as tx:
            tx.history.keep(4, NOBODY)
            tx.documents.move(4, "/elsewhere")
        for id_ in (2, 5):
            with store.write() as tx:
                tx.history.discard(id_, author)
        restore(store, 2, author)
        with store.write() as tx:
            tx.history.discard(2, author)


def past(data):
    """The earlier versions and the bin."""
    with data.open() as store, store.read() as tx:
        return past_in(tx)


def past_in(tx):
    """The earlier versions and the bin, in a transaction."""
    ids = {id_ for (id_,) in tx.connection.execute("SELECT document_id FROM versions")}
    versions = {
        (id_, version.number): (
            replace(version, content_id=None),
            version.content_id is None,
            [(chunk.text, chunk.header, chunk.place) for chunk in tx.history.chunks(version)],
        )
        for id_ in ids
        for version in tx.history.versions(id_, limit=99)
    }
    shared = tx.connection.execute("SELECT count(*) FROM former_contents").get
    return versions, tx.history.bin(limit=99), tx.history.begins(), tx.history.counts().versions, shared


def test_former_versions_and_the_bin_come_back_version_by_version(data, tmp_path, model_files, embedder):
    change(data, embedder)
    export(data.settings, tmp_path / "export", as_notes=False)
    other = RealData(tmp_path / "other", model_files)
    imported = import_folder(other.settings, tmp_path / "export", lambda _: None)
    assert (imported.added, imported.there) == (5, 0)
    assert everything(other) == everything(data)
    assert past(other) == past(data)
    assert list(verify_data(other.settings)) == []
    export(other.settings, tmp_path / "again", as_notes=False)
    for name in ("documents.jsonl", "versions.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "export" / name).read_bytes()
    files = [sorted(path.name for path in (tmp_path / each / "files").rglob("*")) for each in ("again", "export")]
    assert files[0] == files[1]
    with other.open() as store:
        restore(store, 5, NOBODY)
        revert(store, other.originals, 1, 1)
        with store.read() as tx:
            assert tx.documents.chunks(1)[0].text == "The lighthouse keeper counts ships."
            assert tx.documents.get(6).source_path == "/files/6"


@pytest.mark.parametrize("paths", [("/mail#a", "/mail#b"), (None, None)])
def test_documents_in_the_bin_that_held_the_same_come_over_each_by_itself_and_once(
    tmp_path, model_files, embedder, paths
):
    data, other = (RealData(tmp_path / name, model_files) for name in ("data", "other"))
    made = embed_draft(draft_note("The same again.", None, embedder), embedder)
    with data.open() as store, store.write() as tx:
        whole = tx.documents.add(embed_draft(draft_note("A mail.", None, embedder), embedder), "/mail", [])
        ids = [whole, *(tx.documents.add(made, path, [], whole) for path in paths)]
        for document_id in reversed(ids):
            tx.history.discard(document_id, NOBODY)
    export(data.settings, tmp_path / "export", as_notes=False)
    for expected in ((3, 0), (0, 3)):
        imported = import_folder(other.settings, tmp_path / "export", lambda _: None)
        assert (imported.added, imported.there) == expected
        assert past(other) == past(data)


def test_an_export_without_versions_and_one_that_is_given_again_are_taken(data, tmp_path, model_files, embedder):
    change(data, embedder)
    export(data.settings, tmp_path / "export", as_notes=False)
    other = RealData(tmp_path / "other", model_files)
    import_folder(other.settings, tmp_path / "export", lambda _: None)
    before = everything(other), past(other)[0]
    again = import_folder(other.settings, tmp_path / "export", lambda _: None)
    assert (again.added, again.there) == (0, 5)
    assert (everything(other), past(other)[0]) == before
    old = tmp_path / "old"
    shutil.copytree(tmp_path / "export", old)
    (old / "versions.jsonl").unlink()
    about = json.loads((old / "kb-export.json").read_text()) | {"kb-export": 1}
    del about["history_begins"]
    (old / "kb-export.json").write_text(json.dumps(about))
    lines = [json.loads(line) for line in (old / "documents.jsonl").read_text("utf-8").splitlines()]
    for line in lines:
        for name in ("version", "by", "client", "why"):
            del line[name]
    (old / "documents.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    third = RealData(tmp_path / "third", model_files)
    assert import_folder(third.settings, old, lambda _: None).added == 2
    assert list(verify_data(third.settings)) == []


def test_what_replaces_what_and_comes_from_where_comes_along(tmp_path, model_files, embedder):
    data, empty, full = (RealData(tmp_path / name, model_files) for name in ("data", "empty", "full"))
    links = {1: None, 2: 4, 3: 1, 4: None, 5: 3}
    with data.open() as store:
        for number in links:
            write(store, embedder, f"Note {number}.", f"/{number}")
        for number, replaced in links.items():
            write(
                store, embedder, f"Note {number} said again.", f"/{number}", source=f"Ada {number}", replaces=replaced
            )
        with store.write() as tx:
            tx.history.discard(3, NOBODY)
    with full.open() as store:
        write(store, embedder, "Was here before.", "/before")
    export(data.settings, tmp_path / "export", as_notes=False)
    for other, shift in ((empty, 0), (full, 5)):
        import_folder(other.settings, tmp_path / "export", lambda _: None)
        with other.open() as store, store.read() as tx:
            ids = {number: tx.documents.at_path(f"/{number}").id for number in (1, 2, 4, 5)}
            assert shift or set(ids.values()) == {1, 2, 4, 5}
            assert tx.documents.successors(ids.values()) == {ids[1]: [ids[5]], ids[4]: [ids[2]]}
            assert {tx.documents.get(each).source for each in ids.values()} == {"Ada 1", "Ada 2", "Ada 4", "Ada 5"}
            [binned] = tx.history.bin(limit=9)
            assert (binned.document.replaces, tx.documents.get(ids[5]).replaces) == (ids[1], binned.document.id)
            assert existing_version(tx, binned.document.id, 1).document.replaces is None
        assert list(verify_data(other.settings)) == []


def test_what_replaces_what_here_holds_against_an_export_that_has_it_the_other_way_round(
    tmp_path, model_files, embedder
):
    for name, pairs in (("later", {"/x": "/y"}), ("earlier", {"/y": "/x"})):
        data, other = (RealData(tmp_path / name / side, model_files) for side in ("there", "here"))
        with_links(data, embedder, ["/x", "/y"], pairs)
        with_links(other, embedder, ["/x", "/y"], {replaced: by for by, replaced in pairs.items()})
        before = links(other)
        export(data.settings, tmp_path / name / "export", as_notes=False)
        for _ in range(2):
            import_folder(other.settings, tmp_path / name / "export", lambda _: None)
            assert links(other) == before


def test_an_import_puts_no_second_note_in_the_place_of_one(tmp_path, model_files, embedder):
    for name, first, second in (("later", "/a", "/old"), ("earlier", "/old", "/a")):
        data, other = (RealData(tmp_path / name / side, model_files) for side in ("there", "here"))
        with_links(data, embedder, [first, second], {"/a": "/old"})
        with_links(other, embedder, ["/old", "/b"], {"/b": "/old"})
        export(data.settings, tmp_path / name / "export", as_notes=False)
        for _ in range(2):
            import_folder(other.settings, tmp_path / name / "export", lambda _: None)
            assert links(other) == {"/old": None, "/b": "/old", "/a": None}


def test_a_note_with_another_text_here_replaces_what_comes_after_it_in_the_export(tmp_path, model_files, embedder):
    data, other = (RealData(tmp_path / side, model_files) for side in ("there", "here"))
    with_links(data, embedder, ["/x", "/y"], {"/x": "/y"})
    with other.open() as store:
        write(store, embedder, "Another text.", "/x")
    export(data.settings, tmp_path / "export", as_notes=False)
    import_folder(other.settings, tmp_path / "export", lambda _: None)
    assert links(other) == {"/x": "/y", "/y": None}


def with_links(data, embedder, paths, pairs):
    """Write a note at each path, and let some of them replace others."""
    with data.open() as store:
        for path in paths:
            write(store, embedder, f"Note {path}.", path)
        with store.read() as tx:
            ids = {path: tx.documents.at_path(path).id for path in paths}
        for path, replaced in pairs.items():
            write(store, embedder, f"Note {path}.", path, replaces=ids[replaced])


def write(store, embedder, text, path, **origin):
    made = replace(embed_draft(draft_note(text, None, embedder), embedder), **origin)
    with store.write() as tx:
        write_document(tx, made, path, [])


def add_equal(data, embedder, *tags):
    """Notes that hold the same, each with a tag."""
    made = embed_draft(draft_note("The same again.", None, embedder), embedder)
    with data.open() as store:
        for tag in tags:
            with store.write() as tx:
                tx.documents.add(made, None, [tag])


def tags_of(data):
    return [each.tags for _, each in sorted(data.state()[0].items())]


def test_documents_that_hold_the_same_keep_each_its_own_tags_however_often_they_come(
    tmp_path, model_files, embedder, monkeypatch
):
    monkeypatch.setattr(export_folder, "SLICE", 1)
    data, other = (RealData(tmp_path / name, model_files) for name in ("data", "other"))
    add_equal(data, embedder, "a", "b", "c")
    export(data.settings, tmp_path / "export", as_notes=False)

    def cut_off(done):
        assert done < 1

    with pytest.raises(AssertionError):
        import_folder(other.settings, tmp_path / "export", cut_off)
    for added, there in ((2, 1), (0, 3)):
        came = import_folder(other.settings, tmp_path / "export", lambda _: None)
        assert (came.added, came.there, came.tagged) == (added, there, 0)
        assert everything(other) == everything(data)


def test_what_is_there_with_other_tags_has_both_afterwards_and_the_summary_says_so(tmp_path, model_files, embedder):
    data, other = (RealData(tmp_path / name, model_files) for name in ("data", "other"))
    add_equal(data, embedder, "a", "b")
    add_equal(other, embedder, "own")
    export(data.settings, tmp_path / "export", as_notes=False)
    came = import_folder(other.settings, tmp_path / "export", lambda _: None)
    assert (came.added, came.there, came.tagged, came.replaced) == (1, 1, 1, 0)
    assert tags_of(other) == [("a", "own"), ("b",)]
    again = import_folder(other.settings, tmp_path / "export", lambda _: None)
    assert (again.added, again.there, again.tagged) == (0, 2, 0)
    assert tags_of(other) == [("a", "own"), ("b",)]


def test_a_tag_that_what_is_there_asked_for_itself_stays_beside_those_of_the_export(tmp_path, model_files, embedder):
    data, other = (RealData(tmp_path / name, model_files) for name in ("data", "other"))
    made = embed_draft(draft_note("The same again.", None, embedder), embedder)
    for each, title, own in ((data, "Theirs", "theirs"), (other, "Ours", "ours")):
        with each.open() as store, store.write() as tx:
            tx.documents.add(replace(made, title=title, title_given=True, own_tags=(own,)), "/same", [own])
    export(data.settings, tmp_path / "export", as_notes=False)
    assert import_folder(other.settings, tmp_path / "export", lambda _: None).tagged == 1
    assert tags_of(other) == [("ours", "theirs")]


def test_documents_of_one_path_come_over_each_by_itself_where_an_import_was_cut_off(
    tmp_path, model_files, embedder, monkeypatch
):
    monkeypatch.setattr(export_folder, "SLICE", 1)
    data, other = (RealData(tmp_path / name, model_files) for name in ("data", "other"))
    with data.open() as store, store.write() as tx:
        for text in ("The first.", "The second."):
            tx.documents.add(embed_draft(draft_note(text, None, embedder), embedder), "/shared", [])
    export(data.settings, tmp_path / "export", as_notes=False)

    def cut_off(done):
        assert done < 1

    with pytest.raises(AssertionError):
        import_folder(other.settings, tmp_path / "export", cut_off)
    came = import_folder(other.settings, tmp_path / "export", lambda _: None)
    assert (came.added, came.there, came.replaced) == (1, 1, 0)
    assert everything(other) == everything(data)
