"""The reference memory server: entities with observations in one file, found by a part of a word."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

LOG = Path(os.devnull)
PROGRAM = "node_modules/@modelcontextprotocol/server-memory/dist/index.js"


@asynccontextmanager
async def connected(folder: Path, environment: Path, embeddings: str) -> AsyncIterator[Client[Any]]:
    """A client of a fresh server, which has no vectors."""
    settings = {"MEMORY_FILE_PATH": str(folder / "memory.jsonl"), "PATH": os.environ["PATH"]}
    transport = StdioTransport("node", [str(environment / PROGRAM)], env=settings, keep_alive=False, log_file=LOG)
    async with Client(transport, timeout=300, mode="legacy") as agent:
        yield agent


async def add(agent: Client[Any], documents: Mapping[str, str]) -> None:
    """Keep each text as the observation of an entity with its name."""
    for name, text in documents.items():
        entity = {"name": name, "entityType": "note", "observations": [text]}
        await agent.call_tool("create_entities", {"entities": [entity]})


async def search(agent: Client[Any], query: str, top: int) -> str:
    """Return the text of all matches; the program has no limit."""
    return (await agent.call_tool("search_nodes", {"query": query})).content[0].text
