"""The files that the engine already has, so that kb only sends the missing ones.

Nothing is cached here: each call queries the engine. The result is therefore correct after an interruption, from
another machine, and after a document was deleted.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final

from kb.api.job_error_phrases import remedy_for
from kb.client.client import EngineClient
from kb_cli.runtime.engine_call import run_parallel

MAX_SINGLE_QUERIES: Final = 50
"""Up to this many paths below a folder are queried one by one."""
MAX_QUERIES: Final = 8
"""Concurrent queries."""
NOTE: Final = "note"
MAIL: Final = ("eml", "mbox", "msg")
PART_SEPARATOR: Final = "#"
"""Separates the path of a message from the name of its attachment."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """The document at a source path, present or expected from a job."""

    content_hash: str | None
    title: str | None
    tags: frozenset[str]
    document_id: int | None = None
    job_id: int | None = None
    doc_type: str | None = None
    is_part: bool = False
    """Whether it came inside another file, such as an attachment, as far as known."""
    is_new: bool = False
    """Whether a job will create the first document at this path."""


async def fetch_files(client: EngineClient, source_paths: Iterable[str]) -> dict[str, RemoteFile]:
    pending = await fetch_pending(client)
    files: dict[str, RemoteFile] = {}

    async def fetch(query: dict[str, Any]) -> None:
        await collect(client.iter_documents(**query), files)

    await run_parallel(fetch, build_queries(filter(is_unicode, source_paths)), MAX_QUERIES)
    return with_pending(files, pending)


async def fetch_files_below(client: EngineClient, prefix: str) -> dict[str, RemoteFile]:
    pending = {path: file for path, file in (await fetch_pending(client)).items() if path.startswith(prefix)}
    files: dict[str, RemoteFile] = {}
    await collect(client.iter_documents(source_prefix=prefix), files)
    return with_pending(files | await fetch_parts(client, files), pending)


def with_pending(files: Mapping[str, RemoteFile], pending: Mapping[str, RemoteFile]) -> dict[str, RemoteFile]:
    """Return the files at each path after all pending jobs."""
    return {**files, **{path: replace(file, is_new=path not in files) for path, file in pending.items()}}


async def fetch_parts(client: EngineClient, files: Mapping[str, RemoteFile]) -> dict[str, RemoteFile]:
    """Return those files that came inside another one.

    The separator in a path shows it, unless a file is simply named that way. The engine is queried for certainty,
    except for mails, which are many, and for containers without a document.
    """
    parts = {path: replace(file, is_part=True) for path, file in files.items() if PART_SEPARATOR in path}
    nearest = {path: max(filter(files.__contains__, wholes(path)), key=len, default="") for path in parts}
    asked = {path: whole for path, whole in nearest.items() if whole and files[whole].doc_type not in MAIL}
    known: set[int] = set()

    async def fetch(whole: str) -> None:
        async for document in client.iter_documents(part_of=files[whole].document_id):
            known.add(document["id"])

    await run_parallel(fetch, set(asked.values()), MAX_QUERIES)
    return {path: file for path, file in parts.items() if path not in asked or file.document_id in known}


def wholes(path: str) -> Iterator[str]:
    """Yield the paths of the files that may contain the one at this path."""
    yield from (path[:at] for at, character in enumerate(path) if character == PART_SEPARATOR)


async def fetch_extracted(client: EngineClient) -> frozenset[str]:
    return frozenset((await client.status())["parser"]["extracts"])


async def fetch_rejected(client: EngineClient) -> dict[str, tuple[str, str]]:
    """Return the unreadable files by source path, each with the content hash and the error of its newest job."""
    rejected: dict[str, tuple[str, str]] = {}
    extracted: frozenset[str] | None = None
    async for job in client.iter_jobs(status="failed"):
        remedy = remedy_for(job["error"])
        if remedy == "extractor":
            extracted = await fetch_extracted(client) if extracted is None else extracted
            if PurePosixPath(str(job["source_path"]).lower()).suffix in extracted:
                continue
        if job["source_path"] and remedy != "retry":
            rejected.setdefault(job["source_path"], (job["content_hash"], job["error"]))
    return rejected


async def collect(documents: AsyncIterator[dict[str, Any]], files: dict[str, RemoteFile]) -> None:
    """Add documents that are not notes to the files; the first at a path wins."""
    async for document in documents:
        if document["doc_type"] != NOTE:
            file = RemoteFile(
                document["content_hash"],
                document["title"],
                frozenset(document["tags"]),
                document_id=document["id"],
                doc_type=document["doc_type"],
            )
            files.setdefault(document["source_path"], file)


async def fetch_pending(client: EngineClient) -> dict[str, RemoteFile]:
    """Return the files with a pending job by source path, the newest job for each.

    Call this before fetching documents, so that a job that finishes in between appears in at least one of the results.
    """
    jobs = [job for status in ("queued", "running") async for job in client.iter_jobs(status=status)]
    return {
        job["source_path"]: RemoteFile(job["content_hash"], job["title"], frozenset(job["tags"]), job_id=job["id"])
        for job in sorted(jobs, key=lambda job: int(job["id"]))
        if job["source_path"] and job["kind"] == "file"
    }


def build_queries(source_paths: Iterable[str]) -> Iterable[dict[str, str]]:
    """Yield queries for documents at these paths: one by one, or by folder if there are many."""
    for folder, paths in group_by_top_folder(source_paths).items():
        if len(paths) > MAX_SINGLE_QUERIES:
            yield {"source_prefix": folder.rstrip("/") + "/"}
        else:
            yield from ({"source_path": path} for path in paths)


def is_unicode(path: str) -> bool:
    """Return whether a path is valid Unicode and can be sent; a file name may be any bytes."""
    return not any("\ud800" <= character <= "\udfff" for character in path)


def group_by_top_folder(source_paths: Iterable[str]) -> dict[str, list[str]]:
    """Group the paths by folder; paths in nested folders join the outermost one."""
    groups: dict[str, list[str]] = defaultdict(list)
    tops: set[str] = set()
    for path in sorted(source_paths, key=lambda path: path.count("/")):
        parents = [str(parent) for parent in PurePosixPath(path).parents]
        top = next((parent for parent in reversed(parents) if parent in tops), parents[0])
        tops.add(top)
        groups[top].append(path)
    return groups
