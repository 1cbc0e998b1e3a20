"""What is in the knowledge base, in the server's instructions."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, Final

from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext

from kb.api.errors import KbError
from kb_mcp.tools.rendering import QUOTES_NOTICE, quoted

if TYPE_CHECKING:
    from fastmcp import FastMCP

    from kb.client.client import EngineClient

MAX_TAGS: Final = 20
WORD: Final = re.compile(r"(?=.{1,24}\Z)[^\W_]+(?:[-_][^\W_]+)?")
"""The tags that are shown: those of more words could pass as an instruction."""

SECONDS: Final = 30
"""How long what was counted is good enough."""


class Contents(Middleware):
    """Adds types and tags with their counts to the instructions before a client reads them.

    Args:
        engine: counts them.
        instructions: what stands before them.
    """

    def __init__(self, engine: EngineClient, instructions: str) -> None:
        self._engine = engine
        self._instructions = instructions
        self._counted_at = float("-inf")

    async def on_initialize(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:  # noqa: ANN401 - the protocol's
        await self._refresh(context)
        return await call_next(context)

    async def on_discover(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:  # noqa: ANN401 - the protocol's
        await self._refresh(context)
        return await call_next(context)

    async def _refresh(self, context: MiddlewareContext[Any]) -> None:
        server: FastMCP | None = context.fastmcp_context.fastmcp if context.fastmcp_context else None
        if server is None or time.monotonic() - self._counted_at < SECONDS:
            return
        try:
            tags = sorted((await self._engine.tags())["tags"], key=lambda each: -each["documents"])
            types = (await self._engine.status())["documents"]
        except KbError:
            return
        self._counted_at = time.monotonic()
        words = {quoted(each["tag"]): each["documents"] for each in tags if WORD.fullmatch(each["tag"])}
        notice = f" {QUOTES_NOTICE}" if words else ""
        server.instructions = f"{self._instructions}{_counts('Types', types)}{_counts('Tags', words)}{notice}"


def _counts(name: str, counts: dict[str, int]) -> str:
    shown = ", ".join(f"{each} ({count})" for each, count in list(counts.items())[:MAX_TAGS])
    more = f" and {len(counts) - MAX_TAGS} more" if len(counts) > MAX_TAGS else ""
    return f" {name}: {shown}{more}." if shown else ""
