"""An example of every body, by the name of its model; `tests/http/test_description.py` holds them against it."""

from __future__ import annotations

from typing import Any

PLACE = {"page": None, "heading": ["Harbour"], "line_start": 1, "line_end": 3, "char_start": 0, "char_end": 62}
TEXT = "# Harbour\n\nThe keeper counts the ships and lights the lamp at six."
DOCUMENT = {
    "id": 42,
    "title": "Harbour",
    "source_path": "/home/ada/notes/harbour.md",
    "doc_type": "markdown",
    "content_hash": "1f0e5d6c8c0d4f9a",
    "tags": ["sea", "work"],
    "date": "2025-11-02",
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": None,
}
PASSAGE = {
    "chunk_id": 1042,
    "text": TEXT,
    "truncated": False,
    "highlights": [[15, 21], [33, 38]],
    "place": PLACE,
    "score": 1.21,
    "fts_score": 4.87,
    "vec_score": 0.61,
}
JOB = {
    "id": 7,
    "status": "done",
    "kind": "file",
    "title": None,
    "filename": "harbour.md",
    "source_path": "/home/ada/notes/harbour.md",
    "content_hash": "1f0e5d6c8c0d4f9a",
    "tags": ["sea", "work"],
    "progress": 1.0,
    "document_id": 42,
    "error": None,
    "created_at": "2026-01-31T12:00:00.000Z",
    "started_at": "2026-01-31T12:00:00.010Z",
    "finished_at": "2026-01-31T12:00:00.090Z",
}

EXAMPLES: dict[str, dict[str, Any]] = {
    "SearchRequest": {"query": "when is the lamp lit", "top": 5, "tags": ["sea"]},
    "NoteRequest": {"text": "The lamp is lit at six.", "title": "Lighthouse", "tags": ["sea"]},
    "NoteUpdate": {"text": "The lamp is lit at seven in winter."},
    "Move": {"source_path": "/home/ada/notes/lighthouse.md"},
    "TagChange": {"add": ["winter"], "remove": ["draft"]},
    "SearchReply": {
        "results": [
            PASSAGE
            | {"document_id": 42, "more": []}
            | {name: DOCUMENT[name] for name in DOCUMENT if name not in ("id", "content_hash")}
        ],
        "omitted": 0,
        "pending": 0,
    },
    "Document": DOCUMENT,
    "JobDropped": {"status": "dropped", "job_id": 7, "was": "failed"},
    "DocumentWithChunks": DOCUMENT
    | {"chunks": [{"id": 1042, "index": 0, "text": TEXT, "place": PLACE}], "chunk_count": 1},
    "DocumentList": {"documents": [DOCUMENT], "next_cursor": None},
    "DocumentCount": {"documents": 229},
    "DocumentText": {
        "document_id": 42,
        "title": "Harbour",
        "unit": "lines",
        "start": 3,
        "end": 3,
        "total": 3,
        "text": "The keeper counts the ships and lights the lamp at six.",
    },
    "Deleted": {"status": "deleted", "document_id": 42, "title": "Harbour"},
    "JobAccepted": {"job_id": 7, "status": "queued", "document_id": None, "error": None},
    "Job": JOB,
    "JobList": {"jobs": [JOB], "next_cursor": "7"},
    "TagList": {"tags": [{"tag": "sea", "documents": 3}, {"tag": "work", "documents": 1}]},
    "Status": {
        "version": "3.0.0",
        "schema_version": 3,
        "model": {"name": "all-MiniLM-L6-v2", "dimensions": 384, "window": 256, "precision": "fp32"},
        "device": "cpu",
        "provider": "CPUExecutionProvider",
        "documents": {"markdown": 12, "note": 30},
        "chunks": 96,
        "queue": {"queued": 0, "running": 0, "done": 42, "failed": 0},
        "parser": {"confined": ["files", "network", "processes", "writing"]},
        "database_size": 1421312,
    },
}
