"""Documents and folders by a path or a file's name that is nearly right."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Final

from starlette.concurrency import run_in_threadpool

from kb.api.errors import Invalid, NotFound
from kb.api.models import NOTE
from kb.client.client import JSON, EngineClient

MOST_NAMED: Final = 3
MOST_READ: Final = 500
"""Among how many documents, or jobs, is looked: those that came or changed last."""

MAX_COMPARED: Final = 100
"""How much of a path is compared letter by letter, from its end."""

NEAR: Final = 0.6


async def check_path(engine: EngineClient, source_path: str, *, is_note: bool) -> None:
    """Refuse a path at which what is added would take the place of a document of the other kind.

    Raises:
        Invalid: it names that document.
    """
    for holder in (await engine.documents(source_path=source_path, limit=1))["documents"]:
        number, doc_type = holder["id"], holder["doc_type"]
        if is_note and doc_type != NOTE:
            what = f"source_path: document {number}, of type {doc_type}, has this path"
            raise Invalid(f"{what}; use source for where you have it from.")
        if doc_type == NOTE and not is_note:
            raise Invalid(f"source_path: note {number} has this path; change it with kb_update_note, or give another.")


async def documents_called(engine: EngineClient, name: str) -> list[JSON]:
    """Return the documents of a path, or else those whose path ends in it, or whose file had that name."""
    if exact := (await engine.documents(source_path=name, limit=MOST_NAMED))["documents"]:
        return list(exact)
    if not name.strip("/ "):
        return []
    ending = f"/{name.strip('/')}"
    for part in (ending, ending[1:]):
        pages = engine.document_pages(MOST_READ, source_part=part, sort="recent")
        holding = [document async for page in pages for document in page["documents"]]
        documents = [
            document for document in holding if f"/{document['source_path']}".casefold().endswith(ending.casefold())
        ]
        if documents:
            return documents[:MOST_NAMED]
    return await _uploaded_as(engine, name)


async def same_path(engine: EngineClient, prefix: str) -> str:
    """Return the path that differs from a prefix in its case alone; the same one if there is none."""
    if (await engine.documents(source_prefix=prefix, limit=1))["documents"]:
        return prefix
    return next((path for path in await _paths(engine) if _folded(path) == _folded(prefix)), prefix)


async def nearest_paths(engine: EngineClient, path: str) -> list[str]:
    """Return the folders and the paths that are most like a path, the nearest first."""
    folded = {_folded(known_path)[-MAX_COMPARED:]: known_path for known_path in reversed(await _paths(engine))}
    near = await run_in_threadpool(get_close_matches, _folded(path)[-MAX_COMPARED:], folded, MOST_NAMED, NEAR)
    return [folded[known_path] for known_path in near]


async def _paths(engine: EngineClient) -> list[str]:
    pages = engine.document_pages(MOST_READ, sort="recent")
    files = [
        document["source_path"] async for page in pages for document in page["documents"] if document["source_path"]
    ]
    return [*dict.fromkeys([*_folders(files), *files])]


def _folders(files: Iterable[str]) -> list[str]:
    return [f"{folder}/" for file in files for folder in PurePosixPath(file).parents if folder.name]


async def _uploaded_as(engine: EngineClient, name: str) -> list[JSON]:
    """Return the documents whose file its sender called so."""
    ids, read = dict[int, None](), 0
    async for job in engine.iter_jobs(status="done"):
        if job["document_id"] and (job["filename"] or "").casefold() == name.casefold():
            ids[job["document_id"]] = None
        read += 1
        if read == MOST_READ or len(ids) == MOST_NAMED:
            break
    documents = []
    for document_id in ids:
        try:
            documents.append(await engine.document(document_id, chunks=1))
        except NotFound:  # deleted since
            continue
    return documents


def _folded(path: str) -> str:
    return path.casefold().strip("/ ")
