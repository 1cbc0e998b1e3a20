"""Completion looks at all documents, however long ago they were added."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fastmcp import Client
from mcp_types import PromptReference, ResourceTemplateReference

from kb.client.client import EngineClient
from tests.conftest import ALL_APPS, KEY, MCP_KEY
from tests.mcp.conftest import TRIED_ERAS
from tests.support.documents import content
from tests.support.stores import Database

DOCUMENTS = 1200
MOST = 100


@pytest.fixture(scope="module")
def crowded(start_server, embedder, tmp_path_factory):
    """A server with many documents, those of the year 1990 the oldest of them."""
    folder = tmp_path_factory.mktemp("crowded")
    vectors = np.full((1, embedder.spec.dimensions), embedder.spec.dimensions**-0.5, np.float32)
    with Database(folder)() as store, store.write() as tx:
        for number in range(1, DOCUMENTS + 1):
            path = f"/Archive/1990/Letter {number}.md" if number <= 40 else f"/daily/{number}.md"
            tx.documents.add(replace(content(f"letter {number}"), vectors=vectors), path, [])
    with start_server(folder, KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY, KB_APPS=ALL_APPS) as server:
        yield server


async def complete(agent, name, value):
    template = ResourceTemplateReference(uri="kb://documents/{id}{?from_chunk}")
    reference = template if name == "id" else PromptReference(name="answer")
    return (await agent.complete(reference, {"name": name, "value": value})).values


@pytest.mark.parametrize("mode", TRIED_ERAS)
async def test_paths_and_ids_of_the_oldest_documents_are_completed_too(crowded, mode):
    async with Client(f"{crowded.url}/mcp", auth=MCP_KEY, mode=mode) as agent:
        assert await complete(agent, "source_path", "letter 7.") == ["/Archive/1990/Letter 7.md"]
        assert len(await complete(agent, "source_path", "archive/1990")) == 40
        assert set(await complete(agent, "source_path", "/Archive/1990/Letter 3")) == {
            f"/Archive/1990/Letter {number}.md" for number in (3, *range(30, 40))
        }
        assert await complete(agent, "source_path", "100%") == []
        assert len(await complete(agent, "source_path", "")) == MOST
        assert len(await complete(agent, "id", "7")) == MOST
        assert set(await complete(agent, "id", "12")) == {"12", *map(str, range(120, 130)), "1200"}
        for none in ("0", "x", "-1", "1" * 30):
            assert await complete(agent, "id", none) == []


async def test_documents_are_listed_by_a_part_of_their_path_and_by_how_their_id_begins(crowded):
    async with EngineClient(crowded.url, KEY) as engine:
        assert await engine.count_documents(source_part="ARCHIVE") == 40
        assert await engine.count_documents(source_part="_") == 0
        assert await engine.count_documents(id_prefix="12") == 1 + 10 + 1
        assert await engine.count_documents(id_prefix="12", source_part="etter") == 1
