"""What is in the knowledge base, in the server's instructions."""

from __future__ import annotations

import re
import time
from typing import Any, Final

from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext

from kb.api.errors import KbError
from kb.client.client import EngineClient
from kb_mcp.auth import current_name
from kb_mcp.tools.rendering import QUOTES_NOTICE, quoted

MAX_TAGS: Final = 20
WORD: Final = re.compile(r"(?=.{1,24}\Z)[^\W_]+(?:[-_][^\W_]+)?")
"""The tags that are shown: those of more words could pass as an instruction."""

SECONDS: Final = 30
"""How long what was counted is good enough."""


class FacetedInstructions(Middleware):
    """Adds types and tags with their counts to the instructions before a client reads them, as its key may see them.

    Args:
        engine: counts them.
        instructions: what stands before them.
    """

    def __init__(self, engine: EngineClient, instructions: str) -> None:
        self._engine = engine
        self._instructions = instructions
        self._counted_at, self._counted = float("-inf"), ""

    async def on_initialize(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:  # noqa: ANN401 - the protocol's
        result = await call_next(context)  # its instructions are the server's own, the same for all keys
        return result.model_copy(update={"instructions": f"{self._instructions}{await self._facets()}"})

    on_discover = on_initialize

    async def _facets(self) -> str:
        """Return what the caller may know of, nothing while the engine is away; for the gateway's keys as of lately."""
        is_own = current_name() is None
        if is_own and time.monotonic() - self._counted_at < SECONDS:
            return self._counted
        try:
            tags = sorted((await self._engine.tags())["tags"], key=lambda tag: -tag["documents"])
            types = (await self._engine.status())["documents"]
        except KbError:
            return self._counted if is_own else ""
        words = {quoted(tag["tag"]): tag["documents"] for tag in tags if WORD.fullmatch(tag["tag"])}
        notice = f" {QUOTES_NOTICE}" if words else ""
        facets = f"{_counts('Types', types)}{_counts('Tags', words)}{notice}"
        if is_own:
            self._counted_at, self._counted = time.monotonic(), facets
        return facets


def _counts(name: str, counts: dict[str, int]) -> str:
    shown = ", ".join(f"{label} ({count})" for label, count in list(counts.items())[:MAX_TAGS])
    more = f" and {len(counts) - MAX_TAGS} more" if len(counts) > MAX_TAGS else ""
    return f" {name}: {shown}{more}." if shown else ""
