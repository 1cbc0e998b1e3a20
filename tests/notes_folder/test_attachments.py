"""Pictures and other files of notes, in kb and in the notes folder, over a real store and worker."""

from __future__ import annotations

import base64
import io
import sys
from dataclasses import replace

import pytest

from kb.api.job_models import FileRequest
from kb.documents.delete import delete
from kb.documents.job_queue import submit_file
from kb.notes_folder import attachments, incoming, outgoing
from tests.support.eventually import eventually
from tests.support.notes_folder import USER, KeptFolder
from tests.support.workers import working

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def kept(monkeypatch, make_store, embedder, tmp_path):
    monkeypatch.setattr(incoming, "DELETE_SECONDS", 0.0)
    monkeypatch.setattr(attachments, "DELETE_SECONDS", 0.0)
    monkeypatch.setattr(outgoing, "QUIET_SECONDS", 0.0)
    (tmp_path / "data" / "staging").mkdir(parents=True)
    with make_store() as store, working(store, embedder, tmp_path / "data") as worker:
        kept = KeptFolder(store, embedder, tmp_path / "notes", tmp_path / "data")
        kept.parts = replace(kept.parts, wake=worker.wake)
        kept.start()
        yield kept


def document_at(kept, path):
    with kept.store.read() as tx:
        return tx.documents.at_path(path)


def taken(kept, path):
    """Return the document of a file of the folder, as soon as it is there."""

    def look():
        kept.settle()
        return document_at(kept, path)

    document = eventually(f"{path} is a document", look)
    kept.settle()
    return document


def attach(kept, path, content):
    """Add a file as the editor of the web interface does."""
    name = path.rpartition("/")[2]
    submit_file(kept.store, kept.originals.blobs, io.BytesIO(content), name, FileRequest(source_path=path), author=USER)
    kept.parts.wake()
    return eventually("the file is a document", lambda: document_at(kept, path))


def test_a_picture_chosen_in_the_editor_is_written_where_the_text_says(kept):
    picture = attach(kept, "attachments/depot-5559114a.png", PICTURE)
    kept.add("The depot: ![[attachments/depot-5559114a.png]]", source_path="letters/depot.md")
    kept.settle()
    file = kept.root / "attachments" / "depot-5559114a.png"
    assert file.read_bytes() == PICTURE
    kept.start()
    kept.settle()
    assert document_at(kept, "attachments/depot-5559114a.png") == picture
    delete(kept.store, kept.originals, picture.id, USER)
    kept.settle()
    assert not file.parent.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell who has a file open")
def test_the_file_of_a_deleted_picture_goes_after_a_program_has_closed_it(kept):
    picture = attach(kept, "attachments/x.png", PICTURE)
    kept.settle()
    with (kept.root / "attachments" / "x.png").open("rb+"):
        delete(kept.store, kept.originals, picture.id, USER)
        [problem] = kept.settle().problems
        assert (problem.path, "has it open" in problem.reason) == ("attachments/x.png", True)
    kept.settle()
    assert not (kept.root / "attachments").exists()
    assert document_at(kept, "attachments/x.png") is None


def test_a_picture_that_a_note_in_the_folder_shows_is_a_document_and_the_note_links_to_it(kept):
    kept.write("letters/scan41.png", PICTURE)
    kept.write("letters/other.png", PICTURE + b"x")
    kept.write("letters/pic.md", "The letter: ![[scan41.png]]\n")
    picture = taken(kept, "letters/scan41.png")
    [note] = kept.notes()
    with kept.store.read() as tx:
        [link] = tx.links.outgoing(tx.documents.get(note))
    assert (link.document_id, picture.doc_type) == (picture.id, "image")
    assert document_at(kept, "letters/other.png") is None, "no note shows it"
    kept.write("letters/pic.md", "The letter: ![[scan41.png]], ![](other.png)\n")
    assert taken(kept, "letters/other.png")


def test_a_changed_renamed_and_deleted_file_follows_the_rules_of_files(kept):
    kept.write("a.md", "![[plan.txt]] [[b]]")
    kept.write("plan.txt", "The first plan.")
    plan = taken(kept, "plan.txt")
    (kept.root / "plan.txt").write_text("The second plan.")
    eventually(
        "the new text", lambda: kept.settle() and document_at(kept, "plan.txt").content_hash != plan.content_hash
    )
    kept.settle()
    (kept.root / "plan.txt").rename(kept.root / "old plan.txt")
    kept.write("a.md", "![[old plan.txt]]")
    kept.settle()
    renamed = taken(kept, "old plan.txt")
    assert (renamed.id, renamed.title) == (plan.id, "old plan")
    (kept.root / "old plan.txt").unlink()
    kept.write("b.md", "another file, so that the folder is not empty")
    kept.settle()
    assert kept.binned() == {plan.id}


def test_many_files_that_are_gone_delete_nothing_until_somebody_decides(kept):
    names = [f"{number}.txt" for number in range(7)]
    kept.write("a.md", " ".join(f"[[{name}]]" for name in names))
    for name in names:
        kept.write(name, f"The file {name}.")
    for name in names:
        taken(kept, name)
    for name in names:
        (kept.root / name).unlink()
    status = kept.settle()
    assert "7 of 7 documents would be deleted" in status.withheld[0]
    assert all(document_at(kept, name) for name in names)
    kept.folder.act("restore")
    kept.settle()
    assert all((kept.root / name).read_text() == f"The file {name}." for name in names)


def test_a_link_or_a_pipe_is_no_attachment(kept, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    kept.write("a.md", "![[secret.txt]]")
    (kept.root / "secret.txt").symlink_to(tmp_path / "secret.txt")
    for _ in range(3):
        kept.settle()
    assert document_at(kept, "secret.txt") is None
