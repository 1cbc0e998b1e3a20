"""Add a file to the note that is being written: it becomes a document of its own, and the note links to it."""

from __future__ import annotations

import asyncio
import re
from base64 import b64decode, b64encode
from hashlib import file_digest
from io import BytesIO
from pathlib import PurePosixPath
from typing import BinaryIO, Final

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kb.api.errors import Invalid, JobDone, NotFound
from kb.asgi.security_headers import PAGE_HEADERS
from kb.web.document_html import Row, plain
from kb.web.sessions import Visit

FOLDER: Final = "attachments"
WAIT_SECONDS: Final = 20
LONGEST_STEM: Final = 80
KEPT_PICTURE: Final = re.compile(rb"!\[[^\]\n]*\]\(data:image/[a-z]+;base64,([A-Za-z0-9+/]+={0,2})\)\n")
SIGNATURES: Final = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
"""The beginnings of files that browsers show as pictures."""


async def attach(request: Request, visit: Visit) -> Response:
    """Add a file, and return the text that links to it, or the reason that it was not added."""
    form = await visit.form(request, files=1)
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise Invalid("file: choose a file.")
    name = await asyncio.to_thread(unique_name, file.filename, file.file)
    path = f"{FOLDER}/{name}"
    picture = await asyncio.to_thread(picture_type, file.file)
    job = await visit.engine.add_file(name, file.file, source_path=path, wait=WAIT_SECONDS)
    if picture and job["status"] != "done":
        job = await keep_picture(visit, job, file.file, picture, path)
    await form.close()
    error = (await visit.engine.job(job["job_id"]))["error"] if job["status"] == "failed" else None
    return JSONResponse({"text": f"{'!' if picture else ''}[[{path}]]", "error": error}, headers=PAGE_HEADERS)


async def keep_picture(visit: Visit, job: Row, picture: BinaryIO, kind: str, path: str) -> Row:
    """Keep a picture that kb cannot read, or not soon, as Markdown that contains it; return the job."""
    try:
        await visit.engine.drop_job(job["job_id"])
    except (NotFound, JobDone):  # it was read at this moment
        return await visit.engine.job(job["job_id"]) | {"job_id": job["job_id"]}
    name = path.rpartition("/")[2]
    picture.seek(0)
    text = f"![{name}](data:image/{kind};base64,{b64encode(picture.read()).decode()})\n"
    return await visit.engine.add_file(
        f"{name}.md", BytesIO(text.encode()), title=name, source_path=path, wait=WAIT_SECONDS
    )


def picture_in(markdown: bytes) -> bytes:
    """Return the picture that `keep_picture` has put into Markdown.

    Raises:
        NotFound: the text is not such a picture.
    """
    match = KEPT_PICTURE.fullmatch(markdown)
    if match is None:
        raise NotFound
    return b64decode(match[1])


def unique_name(filename: str, content: BinaryIO) -> str:
    """Return a file name that only this content has, so that it replaces no other file."""
    name = PurePosixPath(re.sub(r"[\[\]|#^\\/:*?\"<>\x00-\x1f]+", " ", plain(filename, 200)).strip(" .") or "file")
    digest = file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type] # of a temporary file
    content.seek(0)
    return f"{name.stem[:LONGEST_STEM].strip()}-{digest[:8]}{name.suffix.lower()}"


def picture_type(content: BinaryIO) -> str | None:
    """Return the type of a picture that browsers show, by its beginning; None for any other file."""
    head = content.read(16)
    content.seek(0)
    kind = next((kind for signature, kind in SIGNATURES.items() if head.startswith(signature)), None)
    return None if kind == "webp" and head[8:12] != b"WEBP" else kind
