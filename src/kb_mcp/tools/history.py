"""Tools for earlier versions, the bin and undo. Agents read the docstring of a tool as its description."""

import hashlib
from typing import Annotated, Final

from fastmcp.tools import ToolResult
from pydantic import Field
from pydantic_core import to_json

from kb.api.date_parsing import moment
from kb.api.errors import Invalid
from kb.client.client import JSON, EngineClient
from kb.wording import count_changes, describe_step
from kb_mcp.auth import current_name
from kb_mcp.clients import client_name
from kb_mcp.tools import compact_answers
from kb_mcp.tools.documents import WHOLE, DocumentId, rendered
from kb_mcp.tools.token_budget import AnswerLimiter, with_notice

MOST_STEPS: Final = 100
"""Maximum number of documents that an answer lists."""


class HistoryTools:
    def __init__(self, engine: EngineClient, limiter: AnswerLimiter) -> None:
        self._engine = engine
        self._limiter = limiter

    async def kb_history(
        self,
        document_id: DocumentId,
        version: Annotated[int, Field(ge=0, description="Show the text of this version."), WHOLE] = 0,
        start: Annotated[int, Field(ge=0, description="Start at this character."), WHOLE] = 0,
    ) -> ToolResult:
        """List the versions of a document, even a deleted one, newest first, or show one.

        For the current text, use kb_get; to go back to a version, use kb_undo.
        """
        if start and not version:
            raise Invalid("start: can be used only with version.")
        if not version:
            reply = await self._engine.history(document_id)
            return rendered("kb_history", self._limiter.version_list(reply, current_name() or client_name()))
        return rendered("kb_history", self._limiter.version(await self._engine.version(document_id, version), start))

    async def kb_undo(
        self,
        document_id: Annotated[int, Field(ge=0, description="The document to restore or revert."), WHOLE] = 0,
        version: Annotated[int, Field(ge=0, description="The version to revert to."), WHOLE] = 0,
        since: Annotated[str, Field(description="Preview your changes since this time: 2 hours ago.")] = "",
        confirm: Annotated[str, Field(description="The code from the preview.")] = "",
    ) -> ToolResult:
        """Restore a document, revert it to a version, or undo your own changes.

        Pass since to preview them and get the call that undoes them. kb_list(deleted=true) lists the bin, and
        kb_history the versions.
        """
        if bool(document_id) == bool(since):
            raise Invalid("document_id, since: pass exactly one of them.")
        if since:
            if version:
                raise Invalid("version: can be used only with document_id.")
            return rendered("kb_undo", await self._since(moment(since, "since") or "", confirm=confirm))
        if version:
            document = await self._engine.revert(document_id, version)
        elif (await self._engine.history(document_id, limit=1))["deleted_at"]:
            document = await self._engine.restore(document_id)
        else:
            raise Invalid(
                "version: this document is not in the bin. To go back to an earlier version, pass its number;"
                f" kb_history(document_id={document_id}) lists them."
            )
        return rendered("kb_undo", with_notice(compact_answers.document(document)))

    async def _since(self, since: str, *, confirm: str) -> JSON:
        """Return the changes of this key and program since a time, undone if `confirm` is their code."""
        undone = await self._engine.undo(since, mine=True, dry_run=True)
        code = hashlib.sha256(to_json(undone["steps"])).hexdigest()[:8]
        is_confirmed = bool(undone["steps"]) and confirm == code
        if is_confirmed:
            undone = await self._engine.undo(since, mine=True)
        steps = [
            {"document_id": step["document_id"], "title": step["title"], "effect": describe_step(step)}
            for step in undone["steps"]
        ]
        shown = steps[: min(MOST_STEPS, self._limiter.count_fitting(steps))]
        skipped = sum(bool(step["skipped"]) for step in undone["steps"])
        what = count_changes(undone)
        rest = "Nothing to undo." if not steps else f"Undone: {what}." if is_confirmed else f"Would be undone: {what}."
        if skipped:
            rest += f" {skipped} cannot be undone, for the reasons above."
        if len(shown) < len(steps):
            rest += f" {len(steps) - len(shown)} more documents are not listed."
        if steps and not is_confirmed:
            rest = f"Nothing has been undone, because confirm does not match these changes. {rest}" if confirm else rest
            rest += f" To undo these changes, call kb_undo(since={since!r}, confirm={code!r})."
        return with_notice({"steps": shown, "rest": rest})
