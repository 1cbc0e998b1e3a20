from __future__ import annotations

import asyncio

import pytest
from fastmcp import Client

from tests.conftest import MCP_KEY

ERAS = ["legacy", "2026-07-28"]


@pytest.fixture(params=ERAS)
async def agent(request, server):
    """A real MCP client, speaking each era of the protocol in turn."""
    async with Client(f"{server.url}/mcp", auth=MCP_KEY, mode=request.param) as client:
        yield client


async def call(client, tool, **arguments):
    """What a tool answers, in its structured form."""
    return (await client.call_tool(tool, arguments)).structured_content


async def done(client, accepted):
    """The id of the document that a job became."""
    while True:
        [job] = (await call(client, "kb_jobs", job_id=accepted["job_id"]))["jobs"]
        if job["status"] in ("done", "failed"):
            assert job["status"] == "done", job
            return job["document_id"]
        await asyncio.sleep(0.01)
