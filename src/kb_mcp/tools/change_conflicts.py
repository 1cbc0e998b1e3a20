"""What is said of a change that came too late."""

from __future__ import annotations

import logging
import re
from difflib import unified_diff
from typing import Final

from fastmcp.exceptions import ToolError
from starlette.concurrency import run_in_threadpool

from kb.api.errors import Changed, Invalid, KbError
from kb.client.client import EngineClient
from kb_mcp.tools.rendering import fence_for, fenced_notice, visible

MAX_CHARACTERS: Final = 4000
MAX_LINES: Final = 60
MAX_SENT: Final = 20_000
"""How much of its text the engine sends with a refusal."""

VERSION: Final = re.compile(r"[0-9a-f]{8,64}")
"""The beginning of a hash that names a version."""


def parse_version(text: str) -> str:
    """Return a version as the engine writes it, of one that was copied from an answer.

    Raises:
        Invalid: it is none.
    """
    version = text.strip(" \"'.,").lower().removeprefix("version").strip(" \"':=")
    if not VERSION.fullmatch(version):
        raise Invalid("if_match: not a version; give what stands behind 'version' in kb_get.")
    return version


async def refused_change(engine: EngineClient, document_id: int, error: Changed, text: str, read: str) -> ToolError:
    """Return an error with how what the note says now differs from a whole new text, or else from the version read.

    Where history has no such version, with what it says now.
    """
    present, version = str(error.extra.get("text", "")), str(error.extra.get("content_hash", ""))
    if len(present) >= MAX_SENT:
        present = await _version_text(engine, document_id, version) or present
    if text:
        shown, what = await run_in_threadpool(difference, present, text), "Its text now (-) and yours (+)"
    elif (before := await _version_text(engine, document_id, read)) is None:
        shown, what = present, "Its text now"
    else:
        shown = await run_in_threadpool(difference, before, present)
        what = "The text that you read (-) and its text now (+)"
    excerpt = beginning(shown)
    begin, end = fence_for([excerpt])
    remedy = f"Nothing was written. Make your change to it and call again with if_match={version[:16]!r}."
    head = f"if_match: note {document_id} was changed by someone else; it is version {version[:16]} now. {remedy}"
    lines = [head, fenced_notice(begin, end), f"{what}:", begin, visible(excerpt), end]
    if len(excerpt) < len(shown):
        lines.append(f"This is cut: read the whole note with kb_get(document_id={document_id}).")
    return ToolError("\n".join(lines), log_level=logging.INFO)


async def _version_text(engine: EngineClient, document_id: int, version: str) -> str | None:
    """Return the text of a version, named by the beginning of its hash; None if it is none of the last ones."""
    try:
        for earlier in (await engine.history(document_id))["versions"]:
            if version and earlier["content_hash"].startswith(version):
                return str((await engine.version(document_id, earlier["number"]))["text"])
    except KbError:  # what was refused stays refused
        pass
    return None


def difference(before: str, after: str) -> str:
    """Return the lines that differ, with those around them; of long texts it takes seconds."""
    return "\n".join(list(unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm=""))[2:])


def beginning(text: str) -> str:
    """Return the first lines of a text; of a line that is too long, its first words."""
    lines = "\n".join(text.split("\n", MAX_LINES)[:MAX_LINES])
    if len(lines) <= MAX_CHARACTERS:
        return lines
    end = max(map(lines[: MAX_CHARACTERS + 1].rfind, " \n"))
    return lines[: end if end > MAX_CHARACTERS // 2 else MAX_CHARACTERS]
