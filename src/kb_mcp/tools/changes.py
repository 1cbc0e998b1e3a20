"""What is said of a change that came too late."""

from __future__ import annotations

import logging
from difflib import unified_diff
from itertools import islice
from typing import TYPE_CHECKING, Final

from fastmcp.exceptions import ToolError
from starlette.concurrency import run_in_threadpool

from kb.api.errors import KbError
from kb_mcp.tools.rendering import fence_for, fenced_notice, visible

if TYPE_CHECKING:
    from kb.api.errors import Changed
    from kb.client.client import EngineClient

MAX_CHARACTERS: Final = 4000
MAX_LINES: Final = 60
MIN_VERSION: Final = 8
"""How many digits of its hash name a version."""


async def refused_change(engine: EngineClient, document_id: int, error: Changed, text: str, read: str) -> ToolError:
    """Return an error with how what the note says now differs from a whole new text, or else from the version read.

    Where history has no such version, with what it says now.
    """
    present, version = str(error.extra.get("text", "")), str(error.extra.get("content_hash", ""))[:16]
    if text:
        shown, what = await run_in_threadpool(difference, present, text), "Its text now (-) and yours (+)"
    elif (before := await _text_of(engine, document_id, read)) is None:
        shown, what = present[:MAX_CHARACTERS], "Its text now"
    else:
        shown = await run_in_threadpool(difference, before, present)
        what = "The text that you read (-) and its text now (+)"
    begin, end = fence_for([shown])
    remedy = f"Nothing was written. Make your change to it and call again with if_match={version!r}."
    head = f"if_match: note {document_id} was changed by someone else; it is version {version} now. {remedy}"
    lines = [head, fenced_notice(begin, end), f"{what}:", begin, visible(shown), end]
    return ToolError("\n".join(lines), log_level=logging.INFO)


async def _text_of(engine: EngineClient, document_id: int, version: str) -> str | None:
    """Return the text of a version, named by the beginning of its hash; None if it is none of the last ones."""
    version = version.strip().strip('"').lower()
    try:
        for each in (await engine.history(document_id))["versions"]:
            if len(version) >= MIN_VERSION and each["content_hash"].startswith(version):
                return str((await engine.version(document_id, each["number"]))["text"])
    except KbError:  # what was refused stays refused
        pass
    return None


def difference(before: str, after: str) -> str:
    """Return the lines that differ, with those around them; of long texts it takes seconds."""
    lines = unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm="")
    return "\n".join(islice(lines, 2, MAX_LINES))[:MAX_CHARACTERS]
