"""basic-memory: Markdown notes with a graph, text and vector search."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from bench.peers.embeddings import MODEL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

LOG = Path(os.devnull)
SETTLED_SECONDS = 10
"""How long after the last note its vectors may be made."""


@asynccontextmanager
async def connected(folder: Path, environment: Path, embeddings: str) -> AsyncIterator[Client[Any]]:
    """A client of a fresh server, which asks kb's model for its vectors."""
    settings = {
        "HOME": str(folder),
        "BASIC_MEMORY_HOME": str(folder / "notes"),
        "BASIC_MEMORY_SEMANTIC_EMBEDDING_PROVIDER": "litellm",
        "BASIC_MEMORY_SEMANTIC_EMBEDDING_MODEL": f"openai/{MODEL}",
        "BASIC_MEMORY_SEMANTIC_EMBEDDING_API_BASE": embeddings,
        "BASIC_MEMORY_SEMANTIC_EMBEDDING_API_KEY": "none",
        "BASIC_MEMORY_SEMANTIC_EMBEDDING_DIMENSIONS": "384",
        "BASIC_MEMORY_SEMANTIC_EMBEDDING_FORWARD_DIMENSIONS": "false",
        # Its own bound is made for another model, whose cosines are higher.
        "BASIC_MEMORY_SEMANTIC_MIN_SIMILARITY": "0",
    }
    transport = StdioTransport(
        str(environment / "bin" / "basic-memory"), ["mcp"], env=settings, keep_alive=False, log_file=LOG
    )
    async with Client(transport, timeout=300, mode="legacy") as agent:
        yield agent


async def add(agent: Client[Any], documents: Mapping[str, str]) -> None:
    """Keep each text under its name."""
    for name, text in documents.items():
        note = {"title": name.replace("/", " "), "content": text, "directory": "turns", "project": "main"}
        await agent.call_tool("write_note", note)
    await asyncio.sleep(SETTLED_SECONDS)


async def search(agent: Client[Any], query: str, top: int) -> str:
    """Return the text of the best results that a model reads."""
    asked = {"query": query, "page_size": top, "project": "main"}
    return (await agent.call_tool("search_notes", asked)).content[0].text
