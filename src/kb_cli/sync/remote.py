"""What the engine has of files already, so that only what is missing is sent.

Nothing of this is kept here: it is asked anew each time, so it is also right after a break, from another machine, and
when someone deleted a document.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from kb_cli.runtime.call import in_parallel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from kb.client.client import EngineClient

PAGE: Final = 500
FEW: Final = 50
"""So many paths below a folder are asked for one by one."""
AT_ONCE: Final = 8
NOTE: Final = "note"


@dataclass(frozen=True, slots=True)
class Known:
    """What the engine has at a source path, or will have when a job is done."""

    content_hash: str | None
    title: str | None
    tags: frozenset[str]
    document_id: int | None = None
    job_id: int | None = None


async def known_at(engine: EngineClient, source_paths: Iterable[str]) -> dict[str, Known]:
    """What is known at these paths."""
    pending = await pending_files(engine)
    known: dict[str, Known] = {}

    async def look(query: dict[str, Any]) -> None:
        async for document in documents(engine, **query):
            if document["doc_type"] != NOTE:
                known.setdefault(document["source_path"], of_document(document))

    await in_parallel(look, queries(filter(is_text, source_paths)), AT_ONCE)
    return known | pending


async def known_below(engine: EngineClient, prefix: str) -> dict[str, Known]:
    """What is known at all paths that begin so."""
    pending = {path: known for path, known in (await pending_files(engine)).items() if path.startswith(prefix)}
    known: dict[str, Known] = {}
    async for document in documents(engine, source_prefix=prefix):
        if document["doc_type"] != NOTE:
            known.setdefault(document["source_path"], of_document(document))
    return known | pending


def of_document(document: dict[str, Any]) -> Known:
    """What a document is to a file."""
    return Known(document["content_hash"], document["title"], frozenset(document["tags"]), document_id=document["id"])


async def pending_files(engine: EngineClient) -> dict[str, Known]:
    """The files that wait for their job, by source path; the newest of each.

    To be asked for before the documents: what is done in between is then seen as one or the other.
    """
    newest_first = [job for status in ("queued", "running") async for job in jobs(engine, status)]
    return {
        job["source_path"]: Known(job["content_hash"], job["title"], frozenset(job["tags"]), job_id=job["id"])
        for job in sorted(newest_first, key=lambda job: int(job["id"]))
        if job["source_path"] and job["kind"] == "file"
    }


async def jobs(engine: EngineClient, status: str) -> AsyncIterator[dict[str, Any]]:
    """All jobs in a state, newest first."""
    cursor = None
    while True:
        page = await engine.jobs(status=status, limit=PAGE, cursor=cursor)
        for job in page["jobs"]:
            yield job
        if (cursor := page["next_cursor"]) is None:
            return


async def documents(engine: EngineClient, **query: object) -> AsyncIterator[dict[str, Any]]:
    """All documents that a query finds."""
    cursor = None
    while True:
        page = await engine.documents(**query, limit=PAGE, cursor=cursor)
        for document in page["documents"]:
            yield document
        if (cursor := page["next_cursor"]) is None:
            return


def queries(source_paths: Iterable[str]) -> Iterable[dict[str, str]]:
    """How to ask for documents at these paths: one by one, or all below a folder where there are many."""
    for folder, inside in by_topmost_folder(source_paths).items():
        if len(inside) > FEW:
            yield {"source_prefix": folder.rstrip("/") + "/"}
        else:
            yield from ({"source_path": path} for path in inside)


def is_text(path: str) -> bool:
    """Whether the path can be sent: a file's name may be any bytes."""
    return not any("\ud800" <= character <= "\udfff" for character in path)


def by_topmost_folder(source_paths: Iterable[str]) -> dict[str, list[str]]:
    """The paths by the folders they are in; those of a folder within another one of them are with that one."""
    by_folder: dict[str, list[str]] = defaultdict(list)
    tops: set[str] = set()
    for path in sorted(source_paths, key=lambda path: path.count("/")):
        parents = [str(parent) for parent in PurePosixPath(path).parents]
        top = next((parent for parent in reversed(parents) if parent in tops), parents[0])
        tops.add(top)
        by_folder[top].append(path)
    return by_folder
