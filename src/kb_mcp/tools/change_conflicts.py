"""The error for a change of a note that someone else changed first."""

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
"""Maximum length of the text that the engine sends with a refusal."""

VERSION: Final = re.compile(r"[0-9a-f]{8,64}")
"""The first digits of a content hash, which name a version."""


def parse_version(text: str) -> str:
    """Return the version in a text copied from an answer, in the engine's format.

    Raises:
        Invalid: the text does not contain a version.
    """
    version = text.strip(" \"'.,").lower().removeprefix("version").strip(" \"':=")
    if not VERSION.fullmatch(version):
        raise Invalid("if_match: not a version. Pass the value after 'version' in kb_get, such as 3f2a9c0d.")
    return version


async def refused_change(engine: EngineClient, document_id: int, error: Changed, text: str, read: str) -> ToolError:
    """Return an error with the difference between the current note and the new text, or failing that, the version read.

    If the history does not contain that version, the error contains the current text.
    """
    present, version = str(error.extra.get("text", "")), str(error.extra.get("content_hash", ""))
    if len(present) >= MAX_SENT:
        present = await _version_text(engine, document_id, version) or present
    if text:
        shown, what = await run_in_threadpool(difference, present, text), "The current text (-) and yours (+)"
    elif (before := await _version_text(engine, document_id, read)) is None:
        shown, what = present, "The current text"
    else:
        shown = await run_in_threadpool(difference, before, present)
        what = "The text that you read (-) and the current text (+)"
    excerpt = beginning(shown)
    begin, end = fence_for([excerpt])
    remedy = f"kb wrote nothing. Apply your change to the current text and call again with if_match={version[:16]!r}."
    head = f"if_match: note {document_id} does not have this version; it is now version {version[:16]}. {remedy}"
    lines = [head, fenced_notice(begin, end), f"{what}:", begin, visible(excerpt), end]
    if len(excerpt) < len(shown):
        lines.append(f"The text above is cut. Read the whole note with kb_get(document_id={document_id}).")
    return ToolError("\n".join(lines), log_level=logging.INFO)


async def _version_text(engine: EngineClient, document_id: int, version: str) -> str | None:
    """Return the text of the version whose hash begins with `version`; None if it is not among the latest versions."""
    try:
        for earlier in (await engine.history(document_id))["versions"]:
            if version and earlier["content_hash"].startswith(version):
                return str((await engine.version(document_id, earlier["number"]))["text"])
    except KbError:  # the change stays refused
        pass
    return None


def difference(before: str, after: str) -> str:
    """Return the changed lines with their neighbours. Takes seconds for long texts."""
    return "\n".join(list(unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm=""))[2:])


def beginning(text: str) -> str:
    """Return the first lines of a text, or the first words of a long line."""
    lines = "\n".join(text.split("\n", MAX_LINES)[:MAX_LINES])
    if len(lines) <= MAX_CHARACTERS:
        return lines
    end = max(map(lines[: MAX_CHARACTERS + 1].rfind, " \n"))
    return lines[: end if end > MAX_CHARACTERS // 2 else MAX_CHARACTERS]
