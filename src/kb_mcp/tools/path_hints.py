"""Find documents and folders by a path or file name that is almost right."""

from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Final

from starlette.concurrency import run_in_threadpool

from kb.api.errors import Invalid, NotFound
from kb.api.fields import NOTE
from kb.client.client import JSON, EngineClient

MOST_NAMED: Final = 3
MOST_READ: Final = 500
"""Maximum number of documents or jobs to search, most recently added or changed first."""

MAX_COMPARED: Final = 100
"""Maximum number of characters to compare, from the end of a path."""

NEAR: Final = 0.6


async def check_path(engine: EngineClient, source_path: str, *, is_note: bool) -> None:
    """Refuse a source path of a document of the other kind, which the new document would replace.

    Raises:
        Invalid: the path belongs to a file, and the new document is a note, or the other way round.
    """
    for holder in (await engine.documents(source_path=source_path, limit=1))["documents"]:
        number, doc_type = holder["id"], holder["doc_type"]
        if is_note and doc_type != NOTE:
            what = f"source_path: document {number}, of type {doc_type}, has this path"
            raise Invalid(f"{what}. To say where a note comes from, use source instead.")
        if doc_type == NOTE and not is_note:
            raise Invalid(
                f"source_path: note {number} has this path. Change it with kb_update_note, or use another path."
            )


async def documents_called(engine: EngineClient, name: str) -> list[JSON]:
    """Return the documents with a path, or failing that, with a path that ends in it, or with that file name."""
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
    """Return an existing path that differs from a prefix only in case; otherwise the prefix unchanged."""
    if (await engine.documents(source_prefix=prefix, limit=1))["documents"]:
        return prefix
    return next((path for path in await _paths(engine) if _folded(path) == _folded(prefix)), prefix)


async def nearest_paths(engine: EngineClient, path: str) -> list[str]:
    """Return the most similar folders and paths, the most similar first."""
    folded = {_folded(known_path)[-MAX_COMPARED:]: known_path for known_path in reversed(await _paths(engine))}
    near = await run_in_threadpool(get_close_matches, _folded(path)[-MAX_COMPARED:], folded, MOST_NAMED, NEAR)
    return [folded[known_path] for known_path in near]


async def _paths(engine: EngineClient) -> list[str]:
    pages = engine.document_pages(MOST_READ, sort="recent")
    files = [
        document["source_path"] async for page in pages for document in page["documents"] if document["source_path"]
    ]
    folders = [f"{folder}/" for file in files for folder in PurePosixPath(file).parents if folder.name]
    return list(dict.fromkeys([*folders, *files]))


async def _uploaded_as(engine: EngineClient, name: str) -> list[JSON]:
    """Return the documents whose file had this name when it was sent."""
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
