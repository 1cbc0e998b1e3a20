"""A vault that kb had only read, and now also writes to: its files, notes and other documents stay the same."""

from __future__ import annotations

import io
import random
import shutil
from dataclasses import replace
from hashlib import sha256

import pytest

from kb.api.errors import Invalid
from kb.api.job_models import FileRequest
from kb.documents.delete import delete
from kb.documents.job_queue import submit_file
from kb.documents.watched_folders import watched
from kb.notes_folder import attachments, incoming, outgoing
from kb.store.rows import SyncedFolder, now_iso
from tests.notes_folder.test_attachments import PICTURE
from tests.notes_folder.test_git import Repository
from tests.support.eventually import eventually
from tests.support.notes_folder import KeptVault
from tests.support.workers import working


@pytest.fixture
def new_vault(make_store, embedder, tmp_path, monkeypatch):
    """`new_vault()` is a vault of a folder that may have files already."""
    monkeypatch.setattr(incoming, "DELETE_SECONDS", 0.0)
    monkeypatch.setattr(attachments, "DELETE_SECONDS", 0.0)
    monkeypatch.setattr(attachments, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(outgoing, "QUIET_SECONDS", 0.0)
    (tmp_path / "data" / "staging").mkdir(parents=True)
    (tmp_path / "vault").mkdir()
    with make_store() as store:

        def make(**rules):
            return KeptVault(store, embedder, tmp_path / "vault", tmp_path / "data", **rules)

        yield make


@pytest.fixture
def vault(new_vault):
    return new_vault()


def test_edits_on_both_sides_reach_the_other_one_and_no_file_that_nobody_changed_is_written(vault):
    vault.write("Garden.md", "Plant beans.\n")
    vault.write("deep/Kiln.md", "# The kiln\n\nFire it.\n")
    before = vault.files()
    vault.settle()
    assert vault.files() == before
    garden = vault.at("Garden.md")
    assert (garden.doc_type, garden.title, vault.at("deep/Kiln.md").title) == ("note", "Garden", "The kiln")
    vault.edit(garden.id, "Plant peas.\n")
    vault.settle()
    assert vault.files() == before | {"Garden.md": b"Plant peas.\n"}
    vault.write("Garden.md", "Plant peas and leeks.\n")
    vault.settle()
    assert vault.text(garden.id) == "Plant peas and leeks.\n"
    assert vault.history(garden.id)[0].author.by == "file"


def test_a_new_note_goes_where_its_path_says_and_other_notes_stay_out_of_the_vault(vault):
    vault.settle()
    vault.add("From an agent.", "vault/ideas/one")
    vault.add("Without a path.")
    vault.add("Elsewhere.", "other/two.md")
    vault.settle()
    assert vault.files() == {"ideas/one.md": b"From an agent."}


def test_notes_without_a_path_get_one_in_the_folder_for_new_notes(new_vault):
    vault = new_vault(new_notes="Inbox")
    vault.settle()
    one, twin = vault.add("Call Ada\n\nabout the lease"), vault.add("Call Ada\n\nabout the boat")
    vault.settle()
    vault.settle()
    assert sorted(vault.files()) == ["Inbox/Call Ada 2.md", "Inbox/Call Ada.md"]
    assert {vault.note(one).source_path, vault.note(twin).source_path} == {
        "vault/Inbox/Call Ada.md",
        "vault/Inbox/Call Ada 2.md",
    }


def test_notes_from_before_the_vault_stay_where_they_are(vault):
    older = vault.add("An older note.")
    vault.settle()
    eventually("a millisecond has passed", lambda: now_iso() > vault.note(older).created_at)
    vault.parts = replace(vault.parts, new_notes="Inbox", new_since=now_iso())
    vault.start()
    vault.add("A new note.")
    vault.settle()
    vault.settle()
    assert sorted(vault.files()) == ["Inbox/A new note.md"]
    assert vault.note(older).source_path is None


def test_a_title_follows_the_name_of_the_file_and_only_another_title_is_written(vault):
    file = vault.write("Garden.md", "Plant beans.\n")
    vault.settle()
    garden = vault.at("Garden.md").id
    file.rename(vault.root / "Orchard.md")
    vault.settle()
    assert (vault.note(garden).title, vault.note(garden).source_path) == ("Orchard", "vault/Orchard.md")
    assert vault.files() == {"Orchard.md": b"Plant beans.\n"}
    vault.edit(garden, title="Fruit")
    vault.settle()
    assert vault.files() == {"Orchard.md": b"---\ntitle: Fruit\n---\nPlant beans.\n"}
    vault.move(garden, "vault/fruit/Plums.md")
    vault.settle()
    assert list(vault.files()) == ["fruit/Plums.md"]


@pytest.mark.parametrize(
    "text",
    [
        "---\r\nstatus: open\r\nTitle:  'The kiln'  # mine\r\n---\r\nBricks.\r\n",
        '+++\n# c\ntitle = "The kiln" # mine\n+++\nBricks.\n',
        '{\n  "draft": true,\n  "title": "The kiln"\n}\nBricks.\n',
    ],
    ids=["yaml", "toml", "json"],
)
def test_a_title_that_changes_on_one_side_changes_on_the_other_and_nothing_else_does(vault, text):
    vault.write("Kiln.md", text)
    vault.settle()
    note = vault.at("Kiln.md").id

    def is_called(title):
        vault.settle()
        assert vault.files() == {"Kiln.md": text.replace("The kiln", title).encode()}
        assert (vault.text(note), vault.note(note).title) == (text.replace("The kiln", title), title)

    vault.edit(note, title="My oven")
    is_called("My oven")
    vault.write("Kiln.md", text.replace("The kiln", "By hand"))
    is_called("By hand")
    vault.edit(note, title="By an agent")
    is_called("By an agent")
    vault.edit(note, text.replace("The kiln", "In the text"))
    is_called("In the text")
    vault.edit(note, tags_add=["t"])
    vault.edit(note, tags_remove=["t"])
    is_called("In the text")
    vault.move(note, "vault/deep/Oven.md")
    vault.settle()
    assert vault.files() == {"deep/Oven.md": text.replace("The kiln", "In the text").encode()}


def test_a_file_whose_title_nobody_changed_in_kb_keeps_it(vault):
    files = {
        "a.md": "---\ntitle:\n---\nText a.\n",
        "b.md": "---\ntitle: [x, y]\n---\nText b.\n",
        "c.md": '{"title": "C"}\nText c.\n',
        "d.md": "---\ntitle: D\n---\nText d.\n",
    }
    for path, text in files.items():
        vault.write(path, text)
    vault.settle()
    for path, text in files.items():
        vault.edit(vault.at(path).id, f"{text}More.\n")
        vault.edit(vault.at(path).id, tags_add=["t"])
        vault.edit(vault.at(path).id, tags_remove=["t"])
    vault.settle()
    assert vault.files() == {path: f"{text}More.\n".encode() for path, text in files.items()}


def test_the_titles_of_a_new_note_become_the_one_that_an_agent_gave(vault):
    note = vault.add("---\ntitle: In the text\n---\nBricks.", "vault/x.md", "Given")
    vault.settle()
    assert vault.files() == {"x.md": b"---\ntitle: Given\n---\nBricks."}
    assert vault.note(note).title == "Given"


def test_tags_in_a_text_count_whoever_writes_them_and_no_file_says_them_twice(vault):
    vault.write("a.md", "Beans #green\n")
    vault.settle()
    by_agent, by_hand = vault.add("Peas #green #climbing", "vault/b.md"), vault.at("a.md").id
    vault.settle()
    assert sorted(vault.note(by_agent).tags) == ["climbing", "green"]
    vault.edit(by_hand, "Beans #tall\n")
    vault.edit(by_agent, tags_remove=["green"])
    vault.settle()
    assert (vault.note(by_hand).tags, vault.note(by_agent).tags) == (("tall",), ("climbing",))
    assert vault.files() == {"a.md": b"Beans #tall\n", "b.md": b"Peas #green #climbing"}


def test_edits_of_both_sides_are_merged_and_in_a_conflict_both_texts_stay(vault):
    vault.write("a.md", "one\ntwo\nthree\nfour\n")
    vault.settle()
    note = vault.at("a.md").id
    vault.edit(note, "one\ntwo\nthree\nfour by kb\n")
    vault.write("a.md", "one by hand\ntwo\nthree\nfour\n")
    vault.settle()
    assert vault.text(note) == "one by hand\ntwo\nthree\nfour by kb\n" == vault.files()["a.md"].decode()
    vault.edit(note, "by kb\n")
    vault.write("a.md", "by hand\n")
    vault.settle()
    [conflict] = [path for path in vault.files() if "conflict" in path]
    assert {vault.files()["a.md"], vault.files()[conflict]} == {b"by kb\n", b"by hand\n"}


def test_a_note_moves_within_its_vault_and_not_out_of_it(vault):
    vault.write("a.md", "The text.\n")
    vault.settle()
    note = vault.at("a.md").id
    with vault.store.write() as tx:
        tx.folders.put(SyncedFolder("vault/inner/", "machine", "host", "/elsewhere", "", now_iso()))
    for path in ("elsewhere/a.md", "/a.md", "vaults/a.md", "vault/inner/a.md"):
        with pytest.raises(Invalid, match=f"{path} is outside vault/.* Choose a path that begins with vault/."):
            vault.move(note, path)
    vault.move(note, "vault/deep/b.md")
    vault.settle()
    assert vault.files() == {"deep/b.md": b"The text.\n"}
    other = vault.add("From elsewhere.", "elsewhere/c.md")
    vault.move(other, "vault/c.md")
    vault.settle()
    assert vault.files().keys() == {"c.md", "deep/b.md"}


def test_deleted_notes_and_files_go_to_the_bin_and_come_back(vault):
    for name in "abcdefgh":
        vault.write(f"{name}.md", f"The text of {name}.\n")
    vault.settle()
    one, other = vault.at("a.md").id, vault.at("b.md").id
    vault.delete(one)
    (vault.root / "b.md").unlink()
    vault.settle()
    assert sorted(vault.files()) == ["c.md", "d.md", "e.md", "f.md", "g.md", "h.md"]
    assert vault.binned() == {one, other}
    vault.restore(one)
    vault.write("b.md", "The text of b.\n")
    vault.settle()
    assert (vault.at("a.md").id, vault.at("b.md").id, len(vault.files())) == (one, other, 8)
    for name in "cdefgh":
        (vault.root / f"{name}.md").unlink()
    [reason] = vault.settle().withheld
    assert "6 of 8 documents" in reason
    assert "kb notes delete vault" in reason
    vault.folder.act("restore")
    vault.settle()
    assert len(vault.files()) == 8


def test_what_ignore_files_name_is_neither_read_nor_written_and_known_notes_stay(new_vault):
    vault = new_vault(exclude=("drafts/",))
    vault.write(".kbignore", "private/\n*.log\n")
    vault.write("private/diary.md", "secret")
    vault.write("drafts/x.md", "not yet")
    vault.write("node_modules/p/README.md", "a package")
    vault.write("deep/.gitignore", "out.md\n")
    vault.write("deep/out.md", "generated")
    vault.write("deep/in.md", "in")
    vault.settle()
    assert list(vault.notes().values()) == ["in"]
    known = vault.at("deep/in.md").id
    vault.write("deep/.gitignore", "out.md\nin.md\n")
    vault.add("By an agent.", "vault/private/new.md")
    vault.settle()
    vault.write("private/new.md", "By an agent, and a person.")
    vault.settle()
    assert vault.note(known) is not None
    assert sorted(vault.notes().values()) == ["By an agent, and a person.", "in"]


def test_a_vault_reports_what_it_leaves_out_and_why(new_vault):
    vault = new_vault(exclude=("drafts/",))
    vault.write("plan.md", "A plan.")
    vault.write("drafts/x.md", "not yet")
    vault.write("node_modules/p/README.md", "a package")
    (vault.root / "elsewhere.md").symlink_to(vault.root / "plan.md")
    vault.settle()
    vault.folder._report()
    with vault.store.read() as tx:
        [(_, record)] = watched(tx)
    assert [(each.reason, each.count, each.paths) for each in record.result.left_out] == [
        ("links, which kb doesn't follow in a folder that it also writes to", 1, ["elsewhere.md"]),
        ("skipped by --exclude", 1, []),
        ("skipped by default", 1, []),
    ]


def test_synced_documents_become_notes_with_their_ids_tags_and_history_and_other_files_stay_documents(
    new_vault, embedder, tmp_path
):
    texts = {"Garden.md": "Plant beans #green.\n", "plan.txt": "The plan.", "latin.md": "Caf\xe9".encode("latin-1")}
    vault = new_vault(tags=("synced",))
    for path, text in texts.items():
        vault.write(path, text)
    with working(vault.store, embedder, tmp_path / "data") as worker:
        for path in texts:
            with (vault.root / path).open("rb") as file:
                request = FileRequest(source_path=f"vault/{path}", tags=["synced"])
                submit_file(vault.store, vault.originals.blobs, file, path, request)
        worker.wake()
        eventually("all are read", lambda: all(map(vault.at, texts)))
        ids = {path: vault.at(path).id for path in texts}
        vault.settle()
        vault.settle()
    assert ids == {path: vault.at(path).id for path in texts}
    assert [vault.at(path).doc_type for path in texts] == ["note", "text", "markdown"]
    assert all("synced" in vault.at(path).tags for path in texts)
    assert sorted(vault.at("Garden.md").tags) == ["green", "synced"]
    assert vault.at("Garden.md").title == "Garden"
    assert vault.files()["Garden.md"] == b"Plant beans #green.\n"
    assert vault.files()["latin.md"] == texts["latin.md"]
    assert len(vault.history(ids["Garden.md"])) == 2


def test_a_file_that_somebody_adds_at_the_path_of_a_note_does_not_cost_its_file(vault, embedder, tmp_path):
    vault.write("a.md", "The text.\n")
    vault.settle()
    note = vault.at("a.md").id
    with working(vault.store, embedder, tmp_path / "data") as worker:
        with (vault.root / "a.md").open("rb") as file:
            submit_file(vault.store, vault.originals.blobs, file, "a.md", FileRequest(source_path="vault/a.md"))
        worker.wake()
        eventually("it was read", lambda: vault.at("a.md").doc_type == "markdown")
    vault.settle()
    vault.settle()
    assert vault.files() == {"a.md": b"The text.\n"}
    assert (vault.at("a.md").id, vault.at("a.md").doc_type) == (note, "note")


def test_a_document_that_is_left_out_keeps_its_file(vault):
    vault.write("a.md", "The text.\n")
    vault.settle()
    with vault.store.write() as tx:
        tx.folders.leave_out("vault/a.md")
    vault.delete(vault.at("a.md").id)
    vault.settle()
    vault.start()
    vault.settle()
    assert (vault.files(), vault.notes()) == ({"a.md": b"The text.\n"}, {})


def read_in(vault, embedder, paths):
    """Let kb read these files, and rest."""
    with working(vault.store, embedder, vault.root.parent / "data") as worker:
        vault.settle()
        worker.wake()
        eventually("they are read", lambda: all(map(vault.at, paths)))
    vault.settle()


def test_files_that_are_missing_together_are_withheld_however_many_documents_are_in_the_bin(vault, embedder):
    for number in range(48):
        vault.write(f"{number}.txt", f"The plan {number}.")
    read_in(vault, embedder, [f"{number}.txt" for number in range(48)])
    for number in range(40):
        vault.delete(vault.at(f"{number}.txt").id)
    vault.settle()
    assert len(vault.files()) == 8
    for path in list(vault.files())[:7]:
        (vault.root / path).unlink()
    vault.settle()
    assert sum(bool(vault.at(f"{number}.txt")) for number in range(40, 48)) == 8


def test_a_file_that_was_deleted_by_hand_comes_back_with_its_document_and_an_empty_one_in_its_place_is_none(
    vault, embedder
):
    vault.write("plan.txt", "The plan.")
    vault.write("other.txt", "The other plan.")
    read_in(vault, embedder, ["plan.txt", "other.txt"])
    plan = vault.at("plan.txt").id
    (vault.root / "plan.txt").unlink()
    vault.settle()
    assert vault.at("plan.txt") is None
    vault.write("plan.txt", "")
    vault.settle()
    with vault.store.read() as tx:
        assert not tx.jobs.page(status="queued", limit=9, before=None)
    (vault.root / "plan.txt").unlink()
    vault.settle()
    assert vault.restore(plan)
    vault.settle()
    assert vault.files() == {"plan.txt": b"The plan.", "other.txt": b"The other plan."}


@pytest.mark.parametrize("leave_out", [True, False])
def test_the_file_of_a_deleted_pdf_or_text_stays_if_it_is_left_out_and_comes_back_with_its_document(
    vault, embedder, leave_out
):
    vault.write("plan.txt", "The plan.")
    vault.write("b.md", "The note.")
    read_in(vault, embedder, ["plan.txt"])
    plan, note = vault.at("plan.txt").id, vault.at("b.md").id
    for document_id in (plan, note):
        delete(vault.store, vault.originals, document_id, leave_out=leave_out)
    vault.settle()
    vault.start()
    vault.settle()
    assert bool(vault.files()) == leave_out
    assert (vault.at("plan.txt"), vault.notes()) == (None, {})
    assert vault.restore(plan)
    assert vault.restore(note)
    vault.settle()
    assert vault.files() == {"plan.txt": b"The plan.", "b.md": b"The note."}
    assert (vault.at("plan.txt").id, vault.at("b.md").id) == (plan, note)


def test_a_file_of_which_kb_has_no_copy_outlives_its_document(vault, embedder, monkeypatch):
    vault.write("plan.txt", "The plan.")
    read_in(vault, embedder, ["plan.txt"])
    monkeypatch.setattr(type(vault.originals), "has", lambda *_: False)
    vault.delete(vault.at("plan.txt").id)
    vault.settle()
    vault.start()
    vault.settle()
    assert (vault.files(), vault.at("plan.txt")) == ({"plan.txt": b"The plan."}, None)


def test_nothing_is_read_or_written_by_the_next_start(vault, monkeypatch):
    for name in "abc":
        vault.write(f"{name}.md", name)
    vault.write("plan.txt", "plan")
    vault.settle()
    before = sha256(repr(sorted(vault.files().items())).encode()).hexdigest()
    from kb.notes_folder import disk

    vault.start()
    monkeypatch.setattr(disk, "read", None)
    monkeypatch.setattr(disk, "file_digest_at", None)
    assert vault.settle().problems == []
    assert before == sha256(repr(sorted(vault.files().items())).encode()).hexdigest()


def test_a_vault_that_kb_is_told_to_keep_no_longer_keeps_its_files(vault):
    vault.write("a.md", "The text.\n")
    vault.write("plan.txt", "The plan.")
    vault.settle()
    with vault.store.write() as tx:
        tx.folders.set_watch("vault/", None)
    vault.settle()  # the thread may not have heard of it
    vault.start()
    vault.settle()
    assert sorted(vault.files()) == ["a.md", "plan.txt"]
    assert len(vault.notes()) == 1


def test_a_vault_that_moves_to_another_place_keeps_its_notes(vault, tmp_path):
    vault.write("a.md", "The text.\n")
    vault.settle()
    note = vault.at("a.md").id
    vault.edit(note, tags_add=["mine"])
    vault.parts = replace(vault.parts, root=vault.root.rename(tmp_path / "elsewhere"))
    vault.root = vault.parts.root
    vault.start()
    vault.settle()
    assert (vault.at("a.md").id, len(vault.notes()), vault.binned()) == (note, 1, set())
    assert vault.files() == {"a.md": b"---\ntags: [mine]\n---\nThe text.\n"}


def test_a_vault_on_a_missing_disk_says_so_and_loses_nothing(vault):
    vault.write("a.md", "The text.\n")
    vault.settle()
    away = vault.root.rename(vault.root.with_name("away"))
    assert "does not exist" in vault.settle().stopped
    vault.root.mkdir()
    assert "is not the folder that kb used before" in vault.settle().stopped
    shutil.rmtree(vault.root)
    away.rename(vault.root)
    assert (vault.settle().stopped, len(vault.notes())) == (None, 1)


def test_a_picture_that_is_added_to_a_note_in_kb_is_written_to_the_vault(vault, embedder, tmp_path):
    vault.write("a.md", "![[attachments/plan.txt]]\n")
    vault.settle()
    with working(vault.store, embedder, tmp_path / "data") as worker:
        content, request = io.BytesIO(b"The plan."), FileRequest(source_path="vault/attachments/plan.txt")
        submit_file(vault.store, vault.originals.blobs, content, "plan.txt", request)
        worker.wake()
        eventually("it is read", lambda: vault.at("attachments/plan.txt"))
        vault.settle()
    assert vault.files()["attachments/plan.txt"] == b"The plan."
    vault.delete(vault.at("attachments/plan.txt").id)
    vault.settle()
    assert list(vault.files()) == ["a.md"]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_in_a_repository_with_two_branches_git_shows_only_what_a_person_or_an_agent_changed(vault, embedder, tmp_path):
    for number in range(70):
        picture = f"![[pictures/{number}.png]]\n" if number % 7 == 0 else ""
        vault.write(f"{'letters/' if number % 3 else ''}Letter {number}.md", f"To Ada #post\n\n{picture}{number}\n")
        if picture:
            vault.write(f"pictures/{number}.png", PICTURE + bytes([number]))
    vault.write(".gitignore", ".obsidian/\n")
    repository, chance = Repository(vault.root), random.Random(1)

    def changed():
        lines = repository("status", "--porcelain", "-uall", "-z").split("\0")
        return {line[3:] for line in lines if line}

    def some_note():
        return chance.choice([path for path in sorted(vault.files()) if path.endswith(".md")])

    repository.commit("main")
    repository("branch", "draft")
    with working(vault.store, embedder, tmp_path / "data"):
        vault.settle()
        assert (len(vault.notes()), changed()) == (70, set())
        for turn in range(12):
            repository("checkout", "-q", chance.choice(["main", "draft"]))
            vault.settle()
            assert changed() == set(), f"after a checkout, in turn {turn}"
            notes = len(vault.notes())
            by_agent, by_hand = some_note(), some_note()
            note = vault.at(by_agent).id
            chance.choice([
                lambda note=note, turn=turn: vault.edit(note, f"{vault.text(note)}agent {turn}\n"),
                lambda note=note, turn=turn: vault.edit(note, tags_add=[f"tag{turn}"]),
            ])()  # fmt: skip
            vault.settle()
            vault.write(by_hand, f"hand {turn}\n{vault.files()[by_hand].decode()}")
            vault.settle()
            assert changed() == {by_agent, by_hand}, f"in turn {turn}"
            assert len(vault.notes()) == notes
            repository.commit(f"turn {turn}")
    assert not [path for path in vault.files() if "conflict" in path]
