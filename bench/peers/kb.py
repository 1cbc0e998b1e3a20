"""kb itself, over MCP like the others."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastmcp import Client

from bench.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path


@asynccontextmanager
async def connected(folder: Path, environment: Path, embeddings: str) -> AsyncIterator[Client[Any]]:
    """A client of a fresh server, whose model is its own."""
    with serving(folder) as url:
        async with Client(f"{url}/mcp") as agent:
            yield agent


async def add(agent: Client[Any], documents: Mapping[str, str]) -> None:
    """Keep each text under its name."""
    for name, text in documents.items():
        await agent.call_tool("kb_addnote", {"text": text, "source_path": name})


async def search(agent: Client[Any], query: str, top: int) -> str:
    """Return the text of the best results that a model reads."""
    return (await agent.call_tool("kb_search", {"query": query, "top": top})).content[0].text
