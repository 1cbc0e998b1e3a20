"""Offer each key only what it may do, and add the contents of the knowledge base to the server's instructions."""

import re
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import Tool

from kb.api.errors import KbError
from kb.client.client import EngineClient
from kb_mcp.auth import current_caller, current_name
from kb_mcp.tools.rendering import QUOTES_NOTICE, quoted

MAX_TAGS: Final = 20
WORD: Final = re.compile(r"(?=.{1,24}\Z)[^\W_]+(?:[-_][^\W_]+)?")
"""Tags that may be shown: longer ones could pass as an instruction."""

SECONDS: Final = 30
"""How long counts are cached."""


MOST_BYTES: Final = 1500
"""Maximum length of the counts; some clients cut the instructions at 2 KiB."""


def offered(tools: Iterable[Tool]) -> list[Tool]:
    """Return the tools that the caller may use."""
    return list(tools) if current_caller().may("write") else reading_only(tools)


def reading_only(tools: Iterable[Tool]) -> list[Tool]:
    return [tool for tool in tools if tool.annotations and tool.annotations.read_only_hint]


class OfferedSurface(Middleware):
    """Lists the tools that the client's key may use, and completes the instructions.

    These get document types and tags with counts, as far as the key may see them.

    Args:
        engine: provides the counts.
        instructions: the text before the counts.
        on_writing: the part of it for keys that may write.
    """

    def __init__(self, engine: EngineClient, instructions: str, on_writing: str = "") -> None:
        self._engine = engine
        self._instructions = instructions
        self._on_writing = on_writing
        self._counted_at, self._counted = float("-inf"), ""

    async def on_initialize(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:  # noqa: ANN401 - the protocol's
        result = await call_next(context)  # these are the server's own instructions, the same for all keys
        text = self._instructions if current_caller().may("write") else self._instructions.replace(self._on_writing, "")
        return result.model_copy(update={"instructions": f"{text}{await self._facets()}"})

    on_discover = on_initialize

    async def on_list_tools(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Sequence[Tool]]
    ) -> list[Tool]:
        return offered(await call_next(context))

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
        texts = (f"{_counts('Types', types, most)}{_counts('Tags', words, most)}{notice}" for most in (MAX_TAGS, 8, 4))
        facets = next((text for text in texts if len(text.encode()) <= MOST_BYTES), "")
        if is_own:
            self._counted_at, self._counted = time.monotonic(), facets
        return facets


def _counts(name: str, counts: dict[str, int], most: int) -> str:
    shown = ", ".join(f"{label} ({count})" for label, count in list(counts.items())[:most])
    more = f" and {len(counts) - most} more" if len(counts) > most else ""
    return f" {name}: {shown}{more}." if shown else ""
