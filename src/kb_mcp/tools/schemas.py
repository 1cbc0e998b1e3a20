"""Output schemas of the tools, as short as they can be: each client pays for them in every conversation."""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]


def _answer(**types: str) -> Schema:
    return {"type": "object", "properties": {name: {"type": each} for name, each in types.items()}}


SEARCH_RESULTS: Final = _answer(results="array")
DOCUMENT_LIST: Final = _answer(documents="array", total="integer")
JOB_ACCEPTED: Final = _answer(job_id="integer", document_id="integer")
UPLOAD_STARTED: Final = _answer(upload_id="string", upload_url="string")
UPLOAD_PROGRESS: Final = _answer(received="integer")
DOCUMENT: Final = _answer(id="integer", tags="array")
CHUNKS_OR_DOCUMENTS: Final = _answer(tags="array", chunks="array", documents="array")
DELETED: Final = _answer(title="string")
HISTORY: Final = _answer(versions="array", text="string", id="integer")
STATUS: Final = _answer(documents="object")
JOB_LIST: Final = _answer(jobs="array")
