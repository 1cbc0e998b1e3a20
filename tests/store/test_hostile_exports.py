"""An export that somebody changed is refused before anything is written; one that nobody did brings all there was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from hashlib import sha256

import pytest

from kb.access.keyring import FILE, KeyFile
from kb.api.errors import StoreError
from kb.backup.verify import verify_data
from kb.exchange.export import export
from kb.exchange.importing import import_folder
from kb.settings import Settings
from kb.store.rows import Author, NamedKey
from kb.store.sqlite.store import SqliteStore
from tests.support.library import Library
from tests.support.spaces import space

DIMENSIONS = 16
KEY = NamedKey("anna", "write", ("red",), None, "ab" * 32, "2026-01-31T12:00:00.000Z")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The settings of a knowledge base with everything in it."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("library"))
    with closing(SqliteStore(settings.data_dir / "kb.db", space(DIMENSIONS))) as store:
        Library(store, settings, DIMENSIONS).fill(60)
        with store.write() as tx:
            tx.history.keep(1, Author("anna", operation_key="tidy"))
            tx.documents.change_tags(1, add=["tidied"], remove=[])
            tx.folders.leave_out("/letters/draft.md")
    KeyFile(settings.data_dir / FILE).add(KEY)
    return settings


@pytest.fixture(scope="module")
def original(filled, tmp_path_factory):
    """Its export."""
    folder = tmp_path_factory.mktemp("exports") / "export"
    export(filled, folder, as_notes=False, with_vectors=True)
    return folder


@pytest.fixture
def exported(original, tmp_path):
    """A copy of that."""
    return shutil.copytree(original, tmp_path / "export")


@pytest.fixture
def other(tmp_path):
    return Settings(data_dir=tmp_path / "other")


def refused(other, folder):
    """The message about an export that is refused."""
    with pytest.raises(StoreError) as refusal:
        import_folder(other, folder, lambda _: None)
    assert not (other.data_dir / "kb.db").exists()
    return refusal.value.detail


def change_about(folder, **fields):
    path = folder / "kb-export.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | fields), "utf-8")


def change(folder, name, write):
    """Change a file, and the digest so that it fits."""
    write(folder / name)
    files = json.loads((folder / "kb-export.json").read_text("utf-8"))["files"]
    change_about(folder, files=files | {name: sha256((folder / name).read_bytes()).hexdigest()})


def change_line(folder, name, fields):
    def write(path):
        first, *rest = path.read_text("utf-8").splitlines()
        path.write_text("\n".join([json.dumps(json.loads(first) | fields), *rest]) + "\n", "utf-8")

    change(folder, name, write)


def test_all_of_a_knowledge_base_comes_into_an_empty_one_and_is_for_its_owner_alone(exported, other, tmp_path):
    came = import_folder(other, exported, lambda _: None)
    assert came.keys == 1
    assert came.compared > 100
    assert KeyFile(other.data_dir / FILE).all() == [KEY]
    assert list(verify_data(other)) == []
    export(other, tmp_path / "again", as_notes=False, with_vectors=True)
    first, again = (
        json.loads((folder / "kb-export.json").read_text("utf-8")) for folder in (exported, tmp_path / "again")
    )
    assert first | {"made_at": 0} == again | {"made_at": 0}
    assert first["staged"]
    made = [tmp_path / "again", *(tmp_path / "again").rglob("*")]
    assert [path for path in made if path.stat().st_mode & 0o077] == []


@pytest.mark.slow
def test_an_import_that_is_given_again_after_something_else_was_written_brings_together_what_is_there(exported, other):
    import_folder(other, exported, lambda _: None)
    with closing(SqliteStore(other.data_dir / "kb.db", space(DIMENSIONS))) as store, store.write() as tx:
        Library(store, other, DIMENSIONS).add(tx, 1)
    command = [sys.executable, "-m", "kb_cli.main", "import", exported]
    env = os.environ | {"KB_DATA_DIR": str(other.data_dir)}
    imported = subprocess.run(command, env=env, capture_output=True, text=True, check=False)  # it loads a model
    assert imported.returncode == 8
    assert "has vectors of" in imported.stderr, "the model here did not compute them"


WRONG = {
    "a version above all": ("documents.jsonl", {"version": 1 << 40}),
    "a file that waits outside": ("jobs.jsonl", {"staged": "../../keys.json"}),
    "a job that runs": ("jobs.jsonl", {"status": "running"}),
    "a job of no kind": ("jobs.jsonl", {"kind": "shell"}),
    "a limit that limits nothing": ("jobs.jsonl", {"limits": {"tags": []}}),
    "counts that are none": ("jobs.jsonl", {"omitted": {"files": -1}}),
    "a column that no table has": ("audit.jsonl", {"id) VALUES (1); --": 1}),
    "an id that is no number": ("operations.jsonl", {"id": "1"}),
    "a moment that is none": ("audit.jsonl", {"at": "zzz"}),
    "a right that is none": ("keys.jsonl", {"right": "root"}),
    "a key that is no digest": ("keys.jsonl", {"digest": "secret"}),
    "a name of a key that is none": ("keys.jsonl", {"name": "\x1b[31m"}),
    "chunks without ids": (
        "documents.jsonl",
        {
            "doc_type": "text",
            "chunks": [{"text": "", "header": "", "heading": [], "page": 1, "lines": [1, 1], "characters": [0, 1]}],
        },
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_line_that_no_knowledge_base_writes_is_named(exported, other, wrong):
    name, fields = WRONG[wrong]
    change_line(exported, name, fields)
    said = refused(other, exported)
    assert f"{name}, line 1: " in said
    assert "\n" not in said
    assert "\x1b" not in said


@pytest.mark.parametrize("name", ["jobs.jsonl", "keys.jsonl", "vectors", "versions.jsonl"])
def test_a_file_that_is_not_what_it_was_or_not_there_or_a_link_is_refused(exported, other, name):
    path = exported / name
    path.write_bytes(path.read_bytes() + b"\n")
    refused(other, exported)
    path.unlink()
    assert name in refused(other, exported)
    path.symlink_to("/dev/zero")
    assert name in refused(other, exported)


@pytest.mark.parametrize(
    "fields",
    [
        {"staged": {"../keys.json": "ab" * 32}},
        {"staged": {"name": "../../etc/passwd"}},
        {"files": {"../keys.json": "ab" * 32}},
        {"files": {}},
        {"last_ids": {"documents": -1, "chunks": 1, "jobs": 1, "operations": 1, "audit": 1}},
        {"last_ids": {"documents": 1}},
        {"space": {"dimensions": 1 << 40}},
        {"kb-export": 4},
    ],
)
def test_what_an_export_says_of_itself_names_nothing_outside(exported, other, fields):
    change_about(exported, **fields)
    refused(other, exported)


def test_vectors_of_other_chunks_are_refused(exported, other):
    change(exported, "vectors", lambda path: path.write_bytes(path.read_bytes()[:-4]))
    assert "does not have vectors for all" in refused(other, exported)


def change_lines(folder, name, mutate):
    def write(path):
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        mutate(lines)
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")

    change(folder, name, write)


def test_a_document_that_came_inside_itself_is_refused(exported, other):
    def inside_each_other(lines):
        lines[0]["part_of"], lines[1]["part_of"] = lines[1]["id"], lines[0]["id"]

    change_lines(exported, "documents.jsonl", inside_each_other)
    assert "is recorded as part of itself" in refused(other, exported)


def test_a_document_that_was_deleted_with_itself_is_refused(exported, other):
    def inside_itself(lines):
        binned = next(line for line in lines if "deleted" in line)
        binned["deleted"]["part_of"] = binned["id"]

    change_lines(exported, "versions.jsonl", inside_itself)
    assert "is recorded as part of itself" in refused(other, exported)


def test_a_document_whose_former_version_is_its_present_one_is_refused(exported, other):
    former = [json.loads(line) for line in (exported / "versions.jsonl").read_text("utf-8").splitlines()]

    def at_the_beginning(lines):
        line = next(line for line in lines if line["id"] in {version["id"] for version in former})
        line["version"] = 1

    change_lines(exported, "documents.jsonl", at_the_beginning)
    assert "is not an earlier version" in refused(other, exported)


@pytest.mark.parametrize("number", [5000, 1])
def test_a_version_that_held_what_no_earlier_one_did_is_refused(exported, other, number):
    def held_by_another(lines):
        first = next(line for line in lines if line["version"] == 1)
        first |= {"chunks": None, "chunks_of": number}

    change_lines(exported, "versions.jsonl", held_by_another)
    assert "has no chunks" in refused(other, exported)


def test_files_that_are_not_what_they_were_are_refused(exported, other):
    for path in exported.glob("files/*/*"):
        path.write_bytes(b"other")
    with pytest.raises(StoreError, match="was changed or is damaged"):
        import_folder(other, exported, lambda _: None)


def test_ids_that_were_given_above_those_that_an_export_names_are_found_out(exported, other):
    change_about(exported, last_ids={"documents": 1, "chunks": 1, "jobs": 1, "operations": 1, "audit": 1})
    with pytest.raises(StoreError, match="differs from the export"):
        import_folder(other, exported, lambda _: None)
