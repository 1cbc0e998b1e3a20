"""What is said of a change that came too late."""

from __future__ import annotations

import logging
from difflib import unified_diff
from itertools import islice
from typing import TYPE_CHECKING, Final

from fastmcp.exceptions import ToolError

from kb_mcp.tools.rendering import fence_for, fenced_notice, visible

if TYPE_CHECKING:
    from kb.api.errors import Changed

MAX_CHARACTERS: Final = 4000
MAX_LINES: Final = 60


def refused_change(document_id: int, error: Changed, text: str) -> ToolError:
    """Return an error with what the note says now; where a whole new text was given, how that differs from it."""
    present, version = str(error.extra.get("text", "")), str(error.extra.get("content_hash", ""))[:16]
    shown = difference(present, text) if text else present[:MAX_CHARACTERS]
    what = "Its text now (-) and yours (+)" if text else "Its text now"
    begin, end = fence_for([shown])
    remedy = f"Nothing was written. Make your change to it and call again with if_match={version!r}."
    head = f"if_match: note {document_id} was changed by someone else; it is version {version} now. {remedy}"
    lines = [head, fenced_notice(begin, end), f"{what}:", begin, visible(shown), end]
    return ToolError("\n".join(lines), log_level=logging.INFO)


def difference(present: str, text: str) -> str:
    """Return the lines that differ, with those around them."""
    lines = unified_diff(present.splitlines(), text.splitlines(), n=1, lineterm="")
    return "\n".join(islice(lines, 2, MAX_LINES))[:MAX_CHARACTERS]
