"""Tools for uploading a file (requirements G-7 to G-10, G-15).

Agents read the docstring of a tool as its description. `kb_mcp.upload_store` stores the parts of a file.
"""

import hashlib
import io
import logging
import re
from contextlib import nullcontext
from pathlib import PurePath
from typing import Annotated, BinaryIO, Final

from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_context, get_http_request
from fastmcp.tools import ToolResult
from pydantic import AfterValidator, Field
from starlette.concurrency import run_in_threadpool

from kb.api.errors import Invalid, KbError
from kb.api.file_types import UNREADABLE
from kb.api.limits import MAX_LABEL
from kb.client.client import EngineClient
from kb_mcp.auth import current_name
from kb_mcp.clients import client_name
from kb_mcp.error_wording import error_text
from kb_mcp.tools.compact_answers import receipt
from kb_mcp.tools.documents import WAIT_SECONDS, WHOLE, Tags
from kb_mcp.tools.path_hints import check_path
from kb_mcp.tools.token_budget import tool_result
from kb_mcp.upload_chunks import MAX_CHUNKS
from kb_mcp.upload_store import UploadStore
from kb_mcp.upload_url import upload_url
from kb_mcp.url_fetch import Fetcher, public_url

BEGIN_AGAIN: Final = "kb discarded the upload. After you solve the problem, start again with kb_upload_start."
KINDS: Final = {suffix: kind for kind, suffixes in UNREADABLE.items() for suffix in suffixes}


def _check_hexadecimal(digest: str) -> str:
    if digest and not re.fullmatch(r"[0-9a-fA-F]{64}", digest):
        raise ValueError("must be 64 hexadecimal digits; omit it if you cannot compute it")
    return digest


UploadId = Annotated[str, Field(description="The id from kb_upload_start.")]
Digest = Annotated[str, AfterValidator(_check_hexadecimal), Field(description="The SHA-256, which kb checks.")]


class UploadTools:
    def __init__(self, engine: EngineClient, store: UploadStore, fetcher: Fetcher) -> None:
        self._engine = engine
        self._fetcher = fetcher
        self._store = store

    async def kb_upload_start(
        self,
        filename: Annotated[str, Field(min_length=1, max_length=MAX_LABEL, description="The name with its extension.")],
        total_size: Annotated[int, Field(ge=0, description="Its size in bytes."), WHOLE] = 0,
        text: Annotated[str, Field(description="The text of a text file.")] = "",
        tags: Annotated[Tags, Field(description="Tags, such as work.")] = [],  # noqa: B006 - pydantic copies it
        source_path: Annotated[str, Field(description="Its path. Replaces any file there.")] = "",
        sha256: Digest = "",
        url: Annotated[str, Field(description="Fetch the file from this address.")] = "",
    ) -> ToolResult:
        """Add a file: PDF, Office, EPUB, mail, HTML, code or text.

        If you have a shell on the machine that runs kb, run `kb add FILE` instead. Otherwise send the file to the
        upload_url within ten minutes. Example: kb_upload_start(filename="a.pdf", total_size=2500000), then `curl -T
        a.pdf URL`. Without curl, send parts of 1 MiB with kb_upload_chunk, then call kb_upload_finish.
        """
        _check_type(filename)
        if url and (text or total_size):
            raise Invalid("url: cannot be combined with text or total_size.")
        if not (text or total_size or url):
            raise Invalid("total_size: pass the size of the file in bytes, or pass text if it is a text file.")
        if source_path:
            await check_path(self._engine, source_path, is_note=False)
        else:  # fail now if the engine is unreachable, before the agent sends the file
            await self._engine.own_rights()
        if text or url:
            path = source_path or (public_url(url) if url else None)
            async with self._fetcher.fetched(url) if url else nullcontext(io.BytesIO(text.encode())) as file:
                check_digest(file, sha256)
                added = await self._engine.add_file(filename, file, tags=tags, source_path=path, wait=WAIT_SECONDS)
            return tool_result(receipt(added))
        upload_id = await run_in_threadpool(
            self._store.start,
            filename,
            total_size,
            tags,
            source_path=source_path or None,
            sha256=sha256,
            by=current_name(),
            client=client_name(),
        )
        return tool_result({"upload_id": upload_id, "upload_url": upload_url(get_http_request(), upload_id)})

    async def kb_upload_chunk(
        self,
        upload_id: UploadId,
        data: Annotated[str, Field(description="The part in base64.")],
        chunk_index: Annotated[int, Field(ge=0, le=MAX_CHUNKS - 1, description="Its number, from 0."), WHOLE],
        sha256: Digest = "",
    ) -> ToolResult:
        """Send one part of a file after kb_upload_start, if you cannot use its upload_url.

        To replace a part, send it again. Example: kb_upload_chunk(upload_id="…", chunk_index=0,
        data="JVBE"). When received equals total_size, call kb_upload_finish.
        """
        await run_in_threadpool(self._store.check_sender, upload_id, current_name())
        received, total_size = await run_in_threadpool(self._store.add_chunk, upload_id, chunk_index, data, sha256)
        await get_context().report_progress(received, total_size)
        chunk = {"upload_id": upload_id, "chunk_index": chunk_index, "received": received, "total_size": total_size}
        return tool_result(chunk)

    async def kb_upload_finish(self, upload_id: UploadId, sha256: Digest = "") -> ToolResult:
        """Finish uploading a file that you sent in parts with kb_upload_chunk; do not call it if you used curl.

        An error names the missing parts. Pass the job_id to kb_jobs to see when the file is searchable
        or why it failed.
        """
        await run_in_threadpool(self._store.check_sender, upload_id, current_name())
        upload, file = await run_in_threadpool(self._store.take, upload_id, sha256)
        progress = get_context().report_progress
        try:
            await progress(0, upload.total_size, "sending the file to the engine")
            accepted = await self._engine.add_file(
                upload.filename, file, tags=upload.tags, source_path=upload.source_path
            )
            await progress(upload.total_size, upload.total_size, "accepted")
        except KbError as error:
            raise ToolError(f"{error_text(error, {})} {BEGIN_AGAIN}", log_level=logging.INFO) from error
        finally:
            file.close()
            await run_in_threadpool(self._store.discard, upload)
        return tool_result(receipt(accepted))


def check_digest(file: BinaryIO, sha256: str) -> None:
    """Refuse a file with another digest.

    Raises:
        Invalid: the digest differs.
    """
    if not sha256:
        return
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    if digest.hexdigest() != sha256.lower():
        raise Invalid(f"sha256: does not match; the file's digest is {digest.hexdigest()}.")
    file.seek(0)


def _check_type(filename: str) -> None:
    """Refuse a file without readable text before the agent sends it.

    Raises:
        Invalid: kb does not read files of this type.
    """
    if kind := KINDS.get(PurePath(filename).suffix.removeprefix(".").lower()):
        raise Invalid(
            f"filename: this is {kind}, and kb cannot read text from it. Describe its content with kb_addnote instead."
        )
