"""Add a file to the note that is being written: it becomes a document of its own, and the note links to it."""

import asyncio
import re
from hashlib import file_digest
from pathlib import PurePosixPath
from typing import BinaryIO, Final

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kb.api.errors import Invalid
from kb.asgi.security_headers import PAGE_HEADERS
from kb_web.document_html import plain
from kb_web.sessions import Visit

FOLDER: Final = "attachments"
WAIT_SECONDS: Final = 20
LONGEST_STEM: Final = 80
SIGNATURES: Final = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
"""The beginnings of files that browsers show as pictures."""


async def attach(request: Request, visit: Visit) -> Response:
    """Add a file, and return the text that links to it, or the reason that it was not added."""
    form = await visit.form(request, files=1)
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise Invalid("file: choose a file.")
    name = await asyncio.to_thread(unique_name, file.filename, file.file)
    vault = await vault_of(visit, str(form.get("id", "")))
    path = f"{vault}{FOLDER}/{name}"
    picture = await asyncio.to_thread(picture_type, file.file)
    if kept := await kept_file(visit, vault, name):
        return JSONResponse({"text": f"{'!' if picture else ''}[[{kept}]]", "error": None}, headers=PAGE_HEADERS)
    job = await visit.engine.add_file(name, file.file, source_path=path, wait=WAIT_SECONDS)
    await form.close()
    error = (await visit.engine.job(job["job_id"]))["error"] if job["status"] == "failed" else None
    return JSONResponse({"text": f"{'!' if picture else ''}[[{FOLDER}/{name}]]", "error": error}, headers=PAGE_HEADERS)


async def kept_file(visit: Visit, vault: str, name: str) -> str | None:
    """Return the path of an attachment that was added before with the same content, under this or another name."""
    digest = PurePosixPath(name).stem.rpartition("-")[2]
    page = await visit.engine.documents(name=f"*-{digest}.*", source_prefix=f"{vault}{FOLDER}/")
    paths = (document["source_path"] for document in page["documents"] if document["content_hash"].startswith(digest))
    return next((path.removeprefix(vault) for path in paths), None)


async def vault_of(visit: Visit, document_id: str) -> str:
    """Return the beginning of the paths in the folder that kb writes a note to; empty for other notes.

    A note that is not saved yet has no id, and goes to the folder for new notes.
    """
    folders = (await visit.engine.folders())["folders"]
    kept = [row for row in folders if row["watch"] and row["watch"]["both"]]
    if document_id.isdigit():
        path = (await visit.engine.document(int(document_id)))["source_path"] or ""
        return next((row["prefix"] for row in kept if path.startswith(row["prefix"])), "")
    takes_new = [row["prefix"] for row in kept if row["watch"]["new_notes"] is not None]
    return takes_new[0] if takes_new and not (await visit.engine.status())["notes_folder"] else ""


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
