"""Files that an earlier version read otherwise are read again when the engine starts."""

from __future__ import annotations

import httpx2

from tests.support.eventually import eventually
from tests.support.stores import Database

FILE = b"---\ntags: [boat]\nstatus: open\n---\n# Ropes\n\nNew ropes by June.\n"
PLAIN = b"---\n\nA line, and no front matter.\n\n---\n"


def add(engine, name, content):
    form = {"data": {"source_path": f"/vault/{name}"}, "files": {"file": (name, content)}}
    return engine.post("/api/v1/jobs?wait=30", **form).json()["document_id"]


def text_of(engine, document):
    return "".join(chunk["text"] for chunk in engine.get(f"/api/v1/documents/{document}").json()["chunks"])


def test_front_matter_that_was_indexed_leaves_the_passages_and_nothing_else_changes(start_server, tmp_path):
    with start_server(tmp_path, KB_APPS="api") as server, httpx2.Client(base_url=server.url) as engine:
        document, plain = add(engine, "ropes.md", FILE), add(engine, "plain.md", PLAIN)
        before = engine.get(f"/api/v1/documents/{document}").json()
    Database(tmp_path).execute(f"UPDATE chunks SET text = '{FILE.decode()}' WHERE document_id = {document}")
    with start_server(tmp_path, KB_APPS="api") as server, httpx2.Client(base_url=server.url) as engine:
        eventually("it is read again", lambda: text_of(engine, document), lambda text: "status: open" not in text)
        after = engine.get(f"/api/v1/documents/{document}").json()
        assert text_of(engine, document) == "\n\n\n\n# Ropes\n\nNew ropes by June.\n"
        for name in ("id", "title", "tags", "content_hash", "created_at", "updated_at", "source_path"):
            assert after[name] == before[name]
        assert text_of(engine, plain) == PLAIN.decode()
        jobs = engine.get("/api/v1/jobs").json()["jobs"]
    with start_server(tmp_path, KB_APPS="api") as server:
        assert httpx2.get(f"{server.url}/api/v1/jobs").json()["jobs"] == jobs
