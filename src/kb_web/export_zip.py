"""Export selected documents as a ZIP file, which 'kb add' reads again."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import count
from pathlib import PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Final
from zipfile import ZIP_DEFLATED, ZipFile

from starlette.responses import Response, StreamingResponse

from kb.api.errors import NotFound
from kb.asgi.security_headers import PAGE_HEADERS
from kb.folders.safe_names import safe_name
from kb_web.document_html import Row
from kb_web.documents import markdown_of, note_name
from kb_web.sessions import Visit

BLOCK: Final = 1 << 18


async def exported(visit: Visit, ids: Sequence[int]) -> Response:
    """Return the documents in a ZIP file: notes as Markdown, and files as they were added."""
    file = await asyncio.to_thread(TemporaryFile)
    try:
        with ZipFile(file, "w", ZIP_DEFLATED) as archive:
            taken = set[str]()
            for number in ids:
                shown = await visit.engine.document(number, chunks=1)
                if not shown["part_of"]:  # its mail or archive contains it
                    name, content = await content_of(visit, shown)
                    await asyncio.to_thread(archive.writestr, free_name(name, taken), content)
    except BaseException:
        file.close()
        raise
    headers = {"Content-Disposition": 'attachment; filename="kb-export.zip"'}
    return StreamingResponse(blocks(file), 200, PAGE_HEADERS | headers, "application/zip")


async def content_of(visit: Visit, shown: Row) -> tuple[str, bytes]:
    """Return the path of a document in the ZIP file, and its content: its text, if it has no file."""
    path = shown["source_path"] or ""
    folder = "/".join(safe_name(part) for part in path.split("/")[:-1] if part not in ("", ".", ".."))
    if shown["doc_type"] != "note":
        try:
            return f"{folder}/{safe_name(PurePosixPath(path).name or shown['title'])}", await visit.engine.file(
                shown["id"]
            )
        except NotFound:
            pass
    return f"{folder}/{note_name(shown)}", (await markdown_of(visit, shown)).encode()


def free_name(name: str, taken: set[str]) -> str:
    """Return a path that no other file of the ZIP file has, also without regard to case: with a number if need be."""
    path = given = PurePosixPath(name.lstrip("/"))
    numbers = count(2)
    while str(path).casefold() in taken:
        path = given.with_name(f"{given.stem} ({next(numbers)}){given.suffix}")
    taken.add(str(path).casefold())
    return str(path)


async def blocks(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        await asyncio.to_thread(file.seek, 0)
        while block := await asyncio.to_thread(file.read, BLOCK):
            yield block
