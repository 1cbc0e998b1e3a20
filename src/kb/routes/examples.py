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
    "source": None,
    "replaces": None,
    "omitted": {},
    "replaced_by": None,
}
AUTHOR = {"by": "laptop-agent", "client": "kb/3.0.0 claude-code 2.1.0 (mcp)"}
PASSAGE = {
    "chunk_id": 1042,
    "index": 0,
    "text": TEXT,
    "truncated": False,
    "highlights": [[15, 21], [33, 38]],
    "place": PLACE,
    "score": 1.21,
    "fts_score": 4.87,
    "vec_score": 0.61,
    "context_score": None,
    "explanation": None,
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
    "existed": False,
    "omitted": {},
    "error": None,
    "created_at": "2026-01-31T12:00:00.000Z",
    "started_at": "2026-01-31T12:00:00.010Z",
    "finished_at": "2026-01-31T12:00:00.090Z",
}
OPERATION = {
    "number": 57,
    "at": "2026-02-01T09:30:00.000Z",
    "by": None,
    "client": "kb/3.0.0 (cli)",
    "added": 0,
    "changed": 1,
    "deleted": 0,
    "jobs": 0,
}
FOLDER = {"machine": "1d1e51c0", "host": "lamp", "path": "/home/ada/vault", "mounts": "/"}
MINUTE = {"count": 12, "p50_ms": 9.4, "p95_ms": 31.0}
VERSION = {
    "number": 2,
    "at": "2026-02-01T09:30:00.000Z",
    "until": None,
    "by": "5f1c2a90",
    "client": "kb/3.0.0 (mcp)",
    "why": "the timetable changed",
    "title": "Harbour",
    "source_path": "/home/ada/notes/harbour.md",
    "tags": ["sea", "work"],
    "content_hash": "1f0e5d6c8c0d4f9a",
}

KEY = {
    "name": "laptop-agent",
    "right": "write",
    "tags": ["work"],
    "path": "/home/ada/notes/",
    "created_at": "2026-01-31T12:00:00.000Z",
    "used_at": "2026-02-01T08:30:00.000Z",
}
AUDIT_LINE = {
    "id": 1207,
    "at": "2026-01-31T12:00:00.000Z",
    "by": "laptop-agent",
    "client": "kb/3.0.0 (mcp)",
    "action": "update",
    "document_id": 42,
    "job_id": None,
    "key": None,
}

EXAMPLES: dict[str, dict[str, Any]] = {
    "KeyRequest": {"name": "laptop-agent", "right": "write", "tags": ["work"], "path": "/home/ada/notes/"},
    "RotateRequest": {"grace_minutes": 60},
    "DigestRequest": {"digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
    "KeyRights": {name: KEY[name] for name in ("name", "right", "tags", "path")},
    "Key": KEY,
    "NewKey": {**KEY, "key": "kb_0dLx3b1kN0b8uU7S4bQ2cW6m9p5r1t3v7y8z0A2C4E6"},
    "KeyList": {"keys": [KEY]},
    "AuditList": {"lines": [AUDIT_LINE], "next_cursor": "1207"},
    "SearchRequest": {"query": "when is the lamp lit", "top": 5, "tags": ["sea"]},
    "NoteRequest": {"text": "The lamp is lit at six.", "title": "Lighthouse", "tags": ["sea"], "source": "the keeper"},
    "NoteUpdate": {"old": "at six", "new": "at seven in winter", "tags_add": ["winter"]},
    "Move": {"source_path": "/home/ada/notes/lighthouse.md"},
    "TagChange": {"add": ["winter"], "remove": ["draft"]},
    "Revert": {"version": 1},
    "UndoRequest": {"operation": 57, "dry_run": True},
    "Operation": OPERATION,
    "OperationList": {"operations": [OPERATION], "next_cursor": "57"},
    "FolderClaim": {"prefix": "vault/", **FOLDER, "take_over": False},
    "SyncedFolder": {"prefix": "vault/", **FOLDER, "at": "2026-02-01T09:30:00.000Z"},
    "SyncedFolders": {
        "folders": [{"prefix": "vault/", **FOLDER, "at": "2026-02-01T09:30:00.000Z"}],
        "left_out": ["vault/old.md"],
    },
    "VersionList": {"document_id": 42, "deleted_at": None, "versions": [VERSION], "next_cursor": "2"},
    "VersionText": VERSION | {"document_id": 42, "text": TEXT},
    "VersionDiff": {
        "document_id": 42,
        "start": 1,
        "end": 2,
        "changes": [
            {"kind": "equal", "text": "The lamp is lit at "},
            {"kind": "delete", "text": "six"},
            {"kind": "insert", "text": "seven"},
            {"kind": "equal", "text": "."},
        ],
    },
    "BinList": {
        "documents": [
            DOCUMENT
            | {
                "deleted_at": "2026-02-01T09:30:00.000Z",
                "by": "5f1c2a90",
                "client": "kb/3.0.0 (cli)",
                "why": None,
                "expires_at": "2026-03-03T09:30:00.000Z",
            }
        ],
        "next_cursor": None,
    },
    "Undone": {
        "dry_run": True,
        "operation": OPERATION,
        "added": 0,
        "changed": 1,
        "deleted": 0,
        "jobs": 0,
        "steps": [{"document_id": 42, "title": "Harbour", "action": "revert", "version": 1, "skipped": None}],
    },
    "SearchReply": {
        "results": [
            PASSAGE
            | {"document_id": 42, "more": [], **AUTHOR}
            | {name: DOCUMENT[name] for name in DOCUMENT if name not in ("id", "content_hash", "replaces", "omitted")}
        ],
        "omitted": 0,
        "pending": 0,
        "unknown": [],
    },
    "Document": DOCUMENT,
    "JobDropped": {"status": "dropped", "job_id": 7, "was": "failed"},
    "DocumentWithChunks": DOCUMENT
    | {"chunks": [{"id": 1042, "index": 0, "text": TEXT, "place": PLACE}], "chunk_count": 1, **AUTHOR, "part_of": None},
    "DocumentList": {"documents": [DOCUMENT], "next_cursor": None, "total": None},
    "DocumentPages": {"document_id": 42, "pages": 12},
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
    "JobAccepted": {
        "job_id": 7,
        "status": "queued",
        "document_id": None,
        "existed": False,
        "omitted": {},
        "error": None,
    },
    "Job": JOB,
    "JobList": {"jobs": [JOB], "next_cursor": "7"},
    "TagList": {"tags": [{"tag": "sea", "documents": 3}, {"tag": "work", "documents": 1}]},
    "ReembedRequest": {"action": "start"},
    "DocumentMap": {
        "documents": [
            {"id": 42, "title": "Harbour", "doc_type": "markdown", "tags": [0, 1], "x": -0.1372, "y": 0.8041},
        ],
        "total": 42,
        "tags": [{"tag": "sea", "documents": 3}, {"tag": "work", "documents": 1}],
        "is_current": True,
    },
    "MaintenanceRequest": {"action": "back-up"},
    "Maintenance": {
        "backup_dir": "/backups",
        "backup_hours": 24.0,
        "backup_keep": 7,
        "backups": [
            {
                "name": "2026-02-01T09-30-00.000000Z",
                "made_at": "2026-02-01T09:30:00.000000+00:00",
                "version": "3.0.0",
                "documents": 42,
                "files": 12,
                "seal": "sealed",
                "fault": None,
            }
        ],
        "tasks": [
            {
                "action": "examine",
                "begun_at": "2026-02-01T09:30:00.000Z",
                "ended_at": "2026-02-01T09:30:07.120Z",
                "step": None,
                "faults": [],
                "findings": [
                    {
                        "check": "leftovers",
                        "faults": ["/data/kb.db.new was cut off"],
                        "remedy": "kb doctor --fix removes or changes it",
                        "is_notice": False,
                        "is_mendable": True,
                    }
                ],
                "error": None,
            }
        ],
    },
    "Storage": {"database": 81_920_000, "originals": 402_000_000, "backups": None},
    "Activity": {
        "searches": MINUTE | {"minutes": [MINUTE]},
        "ingestions": {"count": 0, "p50_ms": None, "p95_ms": None, "minutes": []},
    },
    "Reembedding": {
        "in_use": "all-MiniLM-L6-v2 in fp32 (weights 53aa51172d14)",
        "wanted": "all-MiniLM-L6-v2 in int8 (weights 53aa51172d14)",
        "other": "all-MiniLM-L6-v2 in int8 (weights 53aa51172d14)",
        "state": "building",
        "done": 640,
        "total": 9600,
        "error": None,
    },
    "Status": {
        "version": "3.0.0",
        "schema_version": 3,
        "full_text": "BM25 over FTS5, in memory",
        "model": {"name": "all-MiniLM-L6-v2", "dimensions": 384, "window": 256, "precision": "int8"},
        "device": "cpu",
        "provider": "CPUExecutionProvider",
        "documents": {"markdown": 12, "note": 30},
        "languages": {"en": 38, "de": 4},
        "top_tags": [{"tag": "boat", "documents": 17}],
        "chunks": 96,
        "precisions": {"int8": 90, "fp32": 14},
        "queue": {"queued": 0, "running": 0, "done": 42, "failed": 0},
        "parser": {"confined": ["files", "network", "processes", "writing"], "extracts": [".jpg", ".pdf", ".png"]},
        "history": {"versions": 12, "size": 18230, "begins": None, "bin": 1},
        "database_size": 1421312,
        "replica": None,
    },
}
