"""mcp-memory-service: memories with tags and vectors."""

from __future__ import annotations

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


@asynccontextmanager
async def connected(folder: Path, environment: Path, embeddings: str) -> AsyncIterator[Client[Any]]:
    """A client of a fresh server, which asks kb's model for its vectors."""
    settings = {
        "HOME": str(folder),
        "MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec",
        "MCP_MEMORY_BASE_DIR": str(folder),
        "MCP_MEMORY_SQLITE_PATH": str(folder / "memory.db"),
        "MCP_EXTERNAL_EMBEDDING_URL": f"{embeddings}/embeddings",
        "MCP_EXTERNAL_EMBEDDING_MODEL": MODEL,
    }
    transport = StdioTransport(
        str(environment / "bin" / "memory"), ["server"], env=settings, keep_alive=False, log_file=LOG
    )
    async with Client(transport, timeout=300, mode="legacy") as agent:
        yield agent


async def add(agent: Client[Any], documents: Mapping[str, str]) -> None:
    """Keep each text; as of one conversation, so that it leaves out none that is like another one."""
    for text in documents.values():
        await agent.call_tool("memory_store", {"content": text, "conversation_id": "turns"})


async def search(agent: Client[Any], query: str, top: int) -> str:
    """Return the text of the best results that a model reads."""
    return (await agent.call_tool("memory_search", {"query": query, "limit": top})).content[0].text
