"""Tools for uploading a file in chunks (requirements G-7 to G-10, G-15).

Agents read a tool's docstring word for word. What they send is kept by `kb_mcp.upload_store`.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Annotated, Final

from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_context
from fastmcp.tools import ToolResult
from pydantic import AfterValidator, Field
from starlette.concurrency import run_in_threadpool

from kb.api.errors import KbError
from kb_mcp.errors import error_text
from kb_mcp.tools.answer_limiter import tool_result
from kb_mcp.tools.documents import NOT_BOOLEAN, Tags
from kb_mcp.upload_chunks import MAX_CHUNKS

if TYPE_CHECKING:
    from kb.client.client import EngineClient
    from kb_mcp.upload_store import UploadStore


BEGIN_AGAIN: Final = (
    "The upload is over, and nothing of it is left: once that is mended, begin again with kb_upload_start."
)


def _check_hexadecimal(digest: str) -> str:
    if digest and not re.fullmatch(r"[0-9a-fA-F]{64}", digest):
        raise ValueError("must be 64 hexadecimal digits; leave it out if you cannot compute it")
    return digest


UploadId = Annotated[str, Field(description="From kb_upload_start.")]
Digest = Annotated[str, AfterValidator(_check_hexadecimal), Field(description="SHA-256 in hex, to be checked.")]


class UploadTools:
    def __init__(self, engine: EngineClient, store: UploadStore) -> None:
        self._engine = engine
        self._store = store

    async def kb_upload_start(
        self,
        filename: Annotated[str, Field(min_length=1, max_length=255)],
        total_size: Annotated[int, Field(ge=1, description="In bytes."), NOT_BOOLEAN],
        tags: Tags = [],  # noqa: B006 - pydantic copies it
    ) -> ToolResult:
        """Begin to add a file: PDF, Office, EPUB, mail, HTML, code, text; for a note, use kb_addnote.

        Then send it in chunks of 1 MiB (1048576 bytes) with kb_upload_chunk, and end with kb_upload_finish, all within
        ten minutes. Returns the upload_id for both. Example, 2500000 bytes:
        kb_upload_start(filename="report.pdf", total_size=2500000); kb_upload_chunk with chunk_index 0, 1 and 2 and
        the base64 of bytes 0-1048575, 1048576-2097151 and 2097152-2499999; kb_upload_finish.
        """
        return tool_result({"upload_id": await run_in_threadpool(self._store.start, filename, total_size, tags)})

    async def kb_upload_chunk(
        self,
        upload_id: UploadId,
        data: Annotated[str, Field(description="Its bytes in base64.")],
        chunk_index: Annotated[int, Field(ge=0, le=MAX_CHUNKS - 1, description="From 0."), NOT_BOOLEAN],
        sha256: Digest = "",
    ) -> ToolResult:
        """Send one chunk of a file that kb_upload_start began.

        Chunks may come in any order, and one sent again replaces itself: send it again after an error. Example:
        kb_upload_chunk(upload_id="…", chunk_index=0, data="JVBERi0xLjcK"). Returns the bytes received so far; when
        they are total_size, call kb_upload_finish.
        """
        received, total_size = await run_in_threadpool(self._store.add_chunk, upload_id, chunk_index, data, sha256)
        await get_context().report_progress(received, total_size)
        chunk = {"upload_id": upload_id, "chunk_index": chunk_index, "received": received, "total_size": total_size}
        return tool_result(chunk)

    async def kb_upload_finish(self, upload_id: UploadId, sha256: Digest = "") -> ToolResult:
        """Hand a complete file over to the knowledge base.

        Call it once, when every chunk was sent. If a chunk is missing or the sizes do not add up, nothing is kept:
        begin again with kb_upload_start. Example: kb_upload_finish(upload_id="…"). Returns a job_id; kb_jobs shows when
        the file can be found, or why it could not be read.
        """
        upload, file = await run_in_threadpool(self._store.take, upload_id, sha256)
        progress = get_context().report_progress
        try:
            await progress(0, upload.total_size, "sending the file to the engine")
            accepted = await self._engine.add_file(upload.filename, file, tags=upload.tags)
            await progress(upload.total_size, upload.total_size, "accepted")
        except KbError as error:
            raise ToolError(f"{error_text(error, {})} {BEGIN_AGAIN}", log_level=logging.INFO) from error
        finally:
            file.close()
            await run_in_threadpool(self._store.discard, upload)
        return tool_result(accepted)
