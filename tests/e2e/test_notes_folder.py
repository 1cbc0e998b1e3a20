"""The notes folder of a real engine: files and notes in step, within seconds, after a stop and after a kill."""

from __future__ import annotations

import shutil
import sys

import httpx2
import pytest

from tests.conftest import without_settings
from tests.support.eventually import eventually
from tests.support.fork_server import run

FOUND_SECONDS = 2.0


class Engine:
    """The API of an engine with a notes folder."""

    def __init__(self, server):
        self.server = server
        self.http = httpx2.Client(base_url=f"{server.url}/api/v1")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.close()

    def add(self, text, **fields):
        return self.http.post("/jobs", json={"text": text, **fields}).raise_for_status().json()["document_id"]

    def text(self, document_id):
        answer = self.http.get(f"/documents/{document_id}")
        return None if answer.status_code == 404 else "".join(chunk["text"] for chunk in answer.json()["chunks"])

    def by_path(self, path):
        page = self.http.get("/documents", params={"source_path": path}).json()["documents"]
        return page[0]["id"] if page else None

    def folder(self):
        return self.http.get("/status").json()["notes_folder"]

    def at_rest(self, files):
        eventually(
            "all notes are written", self.folder, lambda folder: (folder["files"], folder["waiting"]) == (files, 0)
        )


@pytest.mark.slow
@pytest.mark.sqlite
def test_notes_and_files_are_in_step_while_the_engine_runs_and_after_a_kill(start_server, tmp_path):
    notes = tmp_path / "notes"
    with start_server(tmp_path / "data", KB_NOTES_DIR=str(notes)) as server, Engine(server) as engine:
        kiln = engine.add("The kiln needs bricks.\n", source_path="projects/kiln.md", tags=["work"])
        file = notes / "projects" / "kiln.md"
        eventually("the note has a file", file.exists)
        engine.at_rest(1)
        file.write_text(file.read_text().replace("bricks", "fire bricks"))
        eventually(
            "the edit is in the note", lambda: engine.text(kiln), lambda text: text == "The kiln needs fire bricks.\n"
        )
        (notes / "new.md").write_text("Written by hand.")
        new = eventually("the new file is a note", lambda: engine.by_path("new.md"))
        assert (notes / "new.md").read_text() == "Written by hand."
        (notes / "new.md").rename(notes / "old.md")
        eventually("the note has moved", lambda: engine.by_path("old.md"), lambda moved: moved == new)
        server.kill()
    file.write_text(file.read_text().replace("fire", "red"))
    (notes / "old.md").unlink()
    with start_server(tmp_path / "data", KB_NOTES_DIR=str(notes)) as server, Engine(server) as engine:
        eventually(
            "the edit is in the note", lambda: engine.text(kiln), lambda text: text == "The kiln needs red bricks.\n"
        )
        eventually("the deleted file's note is in the bin", lambda: engine.text(new), lambda text: text is None)
        engine.http.delete(f"/documents/{kiln}").raise_for_status()
        eventually("the deleted note's file is gone", file.exists, lambda there: not there)
        eventually("its empty folder is gone", (notes / "projects").exists, lambda there: not there)


@pytest.mark.slow
@pytest.mark.sqlite
def test_many_missing_files_wait_for_a_decision_in_every_surface(start_server, tmp_path):
    notes = tmp_path / "notes"
    with (
        start_server(tmp_path / "data", KB_NOTES_DIR=str(notes), KB_APPS="api,web") as server,
        Engine(server) as engine,
    ):
        for number in range(8):
            engine.add(f"Note {number}.", source_path=f"n/{number}.md")
        engine.at_rest(8)
        shutil.rmtree(notes / "n")
        (notes / "keep.md").write_text("One note is left.")
        [reason] = eventually("kb asks", lambda: engine.folder()["withheld"])
        assert "8 documents stay" in reason or "8 of" in reason
        kb = [sys.executable, "-m", "kb_cli"]
        environment = without_settings() | {"KB_ENGINE_URL": server.url, "HOME": str(tmp_path)}
        shown = run([*kb, "notes"], env=environment)
        assert shown.returncode == 1
        assert "run 'kb notes delete'" in shown.stdout
        assert "run 'kb notes delete'" in run([*kb, "status"], env=environment).stdout
        page = httpx2.get(f"{server.url}/overview").text
        assert "Write the files again" in page
        assert reason.replace("'", "&#39;") in page
        assert run([*kb, "notes", "restore"], env=environment).returncode == 0
        engine.at_rest(9)
        shutil.rmtree(notes / "n")
        eventually("kb asks again", lambda: engine.folder()["withheld"])
        assert run([*kb, "notes", "delete", "--yes"], env=environment).returncode == 0
        eventually(
            "the notes are in the bin", lambda: engine.http.get("/bin").json()["documents"], lambda bin_: len(bin_) == 8
        )


def test_a_notes_folder_that_holds_the_data_folder_stops_the_start(start_server, tmp_path):
    with pytest.raises(Exception, match="KB_NOTES_DIR: KB_DATA_DIR is"), start_server(tmp_path / "data", KB_NOTES_DIR=str(tmp_path)):  # fmt: skip
        pass
