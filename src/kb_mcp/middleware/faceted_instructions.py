"""Add the contents of the knowledge base to the server's instructions."""

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
"""Tags that may be shown: longer ones could pass as an instruction."""

SECONDS: Final = 30
"""How long counts are cached."""


class FacetedInstructions(Middleware):
    """Adds document types and tags with counts to the instructions, as far as the client's key may see them.

    Args:
        engine: provides the counts.
        instructions: the text before them.
    """

    def __init__(self, engine: EngineClient, instructions: str) -> None:
        self._engine = engine
        self._instructions = instructions
        self._counted_at, self._counted = float("-inf"), ""

    async def on_initialize(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:  # noqa: ANN401 - the protocol's
        result = await call_next(context)  # these are the server's own instructions, the same for all keys
        return result.model_copy(update={"instructions": f"{self._instructions}{await self._facets()}"})

    on_discover = on_initialize

    async def _facets(self) -> str:
        """Return the counts for the caller, cached for the gateway's own keys; empty if the engine is unreachable."""
        is_own = current_name() is None
        if is_own and time.monotonic() - self._counted_at < SECONDS:
            return self._counted
        try:
            tags = sorted((await self._engine.tags())["tags"], key=lambda tag: -tag["branch"])
            types = (await self._engine.status())["documents"]
        except KbError:
            return self._counted if is_own else ""
        words = {quoted(tag["tag"]): tag["branch"] for tag in tags if WORD.fullmatch(tag["tag"])}
        notice = f" {QUOTES_NOTICE}" if words else ""
        facets = f"{_counts('Types', types)}{_counts('Tags', words)}{notice}"
        if is_own:
            self._counted_at, self._counted = time.monotonic(), facets
        return facets


def _counts(name: str, counts: dict[str, int]) -> str:
    shown = ", ".join(f"{label} ({count})" for label, count in list(counts.items())[:MAX_TAGS])
    more = f" and {len(counts) - MAX_TAGS} more" if len(counts) > MAX_TAGS else ""
    return f" {name}: {shown}{more}." if shown else ""
