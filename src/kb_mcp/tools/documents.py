"""Tools for searching, reading, notes, deletion, status and jobs (requirements G-5, G-6, G-11 to G-16).

Agents read a tool's docstring word for word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastmcp.tools import ToolResult
from pydantic import BeforeValidator, Field, WithJsonSchema

from kb.api import models
from kb.api.errors import Invalid
from kb_mcp.tools.answer_limiter import shorten_names, tool_result, with_notice

if TYPE_CHECKING:
    from kb.client.client import EngineClient
    from kb_mcp.tools.answer_limiter import AnswerLimiter


def _refuse_boolean(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    return value


NOT_BOOLEAN = BeforeValidator(_refuse_boolean)
"""Refuses true and false. It stands behind a number's bounds: before them, pydantic leaves them out of the schema."""

Tag = Annotated[models.Tag, WithJsonSchema({"type": "string"})]
Tags = Annotated[list[Tag], Field(fail_fast=True, description="Exactly these tags are set.")]
DocumentId = Annotated[int, Field(ge=1, description="The document's id."), NOT_BOOLEAN]


class DocumentTools:
    def __init__(self, engine: EngineClient, limiter: AnswerLimiter) -> None:
        self._engine = engine
        self._limiter = limiter

    async def kb_search(
        self,
        query: Annotated[str, Field(description="A question, a phrase or words.")],
        top: Annotated[int, Field(ge=1, le=100, description="How many passages."), NOT_BOOLEAN] = 10,
        tags: Annotated[list[str], Field(fail_fast=True, description="Only documents with all of these.")] = [],  # noqa: B006 - pydantic copies it
        doc_type: Annotated[str, Field(description="Only this type, such as note or pdf.")] = "",
        fts_only: Annotated[bool, Field(description="Match words only: names, codes, errors.")] = False,
        vec_only: Annotated[bool, Field(description="Match meaning only: the words may differ.")] = False,
    ) -> ToolResult:
        """Find the passages of the knowledge base that answer a question, best first.

        Use it before answering from memory, and whenever the user's own notes or files matter; not for one document
        you know: kb_get. For a complex question, write 2-3 variant phrasings, search once for each, and deduplicate
        the results by chunk_id; then rerank them by your own judgement of what answers the question. Each result has
        its text, scores, tags and a citation to give with what you use. Read on with kb_get and its document_id.
        """
        request: dict[str, Any] = {"query": query, "top": top, "tags": tags, "doc_type": doc_type or None}
        reply = await self._engine.search(**request, fts_only=fts_only, vec_only=vec_only)
        data = self._limiter.search_results(reply)
        if not data["results"] and (tags or doc_type):
            data["rest"] = "Nothing was found under these filters: search without them; kb_status names the types."
        return tool_result(data)

    async def kb_addnote(
        self,
        text: Annotated[str, Field(min_length=1, description="Plain text or Markdown.")],
        title: Annotated[str, Field(description="Empty: the first line.")] = "",
        tags: Tags = [],  # noqa: B006 - pydantic copies it
    ) -> ToolResult:
        """Remember a text: a fact, a decision, a preference, a summary.

        Write it so that it makes sense on its own. Search first, and change what is known with kb_update_note instead.
        Returns a job_id at once; the note can be found a moment later, when kb_jobs shows the job done with its
        document_id.
        """
        return tool_result(await self._engine.add_note(text=text, title=title or None, tags=tags))

    async def kb_update_note(
        self,
        document_id: DocumentId,
        text: Annotated[str, Field(min_length=1, description="The whole new text.")],
    ) -> ToolResult:
        """Replace the text of a note in place.

        Use it when what a note says has changed, rather than adding a second one that contradicts it. Only notes can
        be updated, not files. The note keeps its id, tags and creation time, and kb_search finds its new text when
        this returns. Returns the updated document.
        """
        return tool_result(self._limiter.chunk_page(await self._engine.update_note(document_id, text), from_chunk=0))

    async def kb_get(
        self,
        document_id: Annotated[int, Field(ge=0, description="0 to look up by path."), NOT_BOOLEAN] = 0,
        source_path: Annotated[str, Field(description="The path it was added under.")] = "",
        from_chunk: Annotated[int, Field(ge=0, description="Read on here: next_chunk."), NOT_BOOLEAN] = 0,
    ) -> ToolResult:
        """Read a whole document, or list the documents that were added under a path.

        Give document_id for its text in chunks, or source_path for a list without text. Of a long document a part
        comes back; while next_chunk is not null, call again with it as from_chunk. When you do not know which document
        you want, use kb_search.
        """
        if bool(document_id) == bool(source_path):
            raise Invalid("document_id, source_path: give one of the two.")
        if document_id:
            chunks = self._limiter.max_chunks
            document = await self._engine.document(document_id, from_chunk=from_chunk, chunks=chunks)
            return tool_result(self._limiter.chunk_page(document, from_chunk))
        return tool_result(self._limiter.document_list(await self._engine.documents(source_path=source_path)))

    async def kb_delete(self, document_id: DocumentId) -> ToolResult:
        """Delete one document; kb_history can restore it while it is in the bin.

        Delete only what the user wants gone, and make sure of the id with kb_get first. To correct a note, use
        kb_update_note. Returns the title of what was deleted.
        """
        return tool_result(with_notice(await self._engine.delete_document(document_id)))

    async def kb_history(
        self,
        document_id: DocumentId,
        action: Literal["list", "show", "revert", "restore"] = "list",
        version: Annotated[int, Field(ge=0, description="For show and revert."), NOT_BOOLEAN] = 0,
    ) -> ToolResult:
        """See what a document was, and take a mistake back.

        list names its versions, newest first, also of a deleted one; show gives the text of one; revert makes the
        document that version again; restore brings a deleted document back. Nothing is lost by either: what was there
        becomes a version itself. kb_get reads the document as it is.
        """
        if (action in ("show", "revert")) != bool(version):
            raise Invalid("version: give one to show or revert, and none to list or restore.")
        if action == "list":
            return tool_result(self._limiter.version_list(await self._engine.history(document_id)))
        if action == "show":
            return tool_result(self._limiter.version(await self._engine.version(document_id, version)))
        if action == "revert":
            return tool_result(with_notice(await self._engine.revert(document_id, version)))
        return tool_result(with_notice(await self._engine.restore(document_id)))

    async def kb_status(self) -> ToolResult:
        """See whether the knowledge base works and what is in it.

        Use it when a search finds less than expected: documents may still be queued. Returns version, model, device,
        the number of documents by type, and the queue; kb_jobs shows the jobs themselves.
        """
        return tool_result(await self._engine.status())

    async def kb_jobs(
        self,
        status: Annotated[
            Literal["any", "queued", "running", "done", "failed"], Field(description="Only jobs in this state.")
        ] = "any",
        job_id: Annotated[int, Field(ge=0, description="Only this job; 0 for the latest."), NOT_BOOLEAN] = 0,
        limit: Annotated[int, Field(ge=1, le=500, description="How many."), NOT_BOOLEAN] = 20,
        cursor: Annotated[str, Field(description="Go on here: next_cursor.")] = "",
    ) -> ToolResult:
        """See how far notes and files are that were added, newest first.

        Call it with the job_id after kb_addnote or kb_upload_finish: a job that is done names its document_id for
        kb_get, and one that failed says why in error. Others are waiting or being read; look again in a second. It
        does not search: use kb_search.
        """
        if job_id:
            return tool_result(with_notice({"jobs": [await self._engine.job(job_id)], "next_cursor": None}))
        query = {"status": None if status == "any" else status, "cursor": cursor or None}
        reply = await self._engine.jobs(limit=limit, **query)
        fitting = self._limiter.count_fitting(shorten_names(reply["jobs"]))
        if fitting < len(reply["jobs"]):
            reply = await self._engine.jobs(limit=fitting, **query)
        return tool_result(with_notice(reply))
