from __future__ import annotations

import os
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager

import pytest
from fastmcp import Client

from kb.client.client import EngineClient
from tests.conftest import KEY, MCP_KEY, Server, free_port, without_settings
from tests.support.eventually import eventually_async
from tests.support.fork_server import open_process

ERAS = ["legacy", "2026-07-28"]
"""The eras of the protocol. FastMCP serves both, so a few modules that use both are enough for a change of kb."""

TRIED_ERAS = ERAS if os.environ.get("KB_TEST_ERAS") == "all" else ERAS[-1:]


@pytest.fixture(params=TRIED_ERAS)
def era(request):
    """The era of the agent. A module that uses both has a fixture of its own."""
    return request.param


@pytest.fixture
async def agent(era, server):
    """A real MCP client."""
    async with Client(f"{server.url}/mcp", auth=MCP_KEY, mode=era) as client:
        yield client


@pytest.fixture
async def engine(server):
    """The engine of the gateway."""
    async with EngineClient(server.url, KEY) as client:
        yield client


@pytest.fixture
def unused_port():
    return free_port()


@pytest.fixture(scope="session")
def start_gateway(tmp_path_factory):
    """Starts gateways as their image does: `with start_gateway(KB_ENGINE_URL="…", workers=2) as gateway`."""

    @contextmanager
    def start(*, workers=1, **environment):
        log = tmp_path_factory.mktemp("gateway") / "gateway.log"
        port = free_port()
        with log.open("wb") as output:
            command = [sys.executable, "-m", "uvicorn", "kb_mcp.app:create_app", "--factory"]
            process = open_process(
                [*command, "--port", str(port), "--workers", str(workers)],
                env=without_settings() | {"FASTMCP_ENABLE_RICH_LOGGING": "false"} | environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        gateway = Server(port, process, log)
        try:
            gateway.await_ready()
            yield gateway
        finally:
            gateway.stop()

    return start


@asynccontextmanager
async def connected(gateway, path="/mcp", auth=None):
    """An agent of a gateway."""
    async with Client(f"{gateway.url}{path}", auth=auth) as client:
        yield client


async def call(client, tool, **arguments):
    """The structured content of a tool's answer."""
    return (await client.call_tool(tool, arguments)).structured_content


async def refusal(client, tool, **arguments):
    """The text of a tool's error."""
    result = await client.call_tool(tool, arguments, raise_on_error=False)
    assert result.is_error, result
    return result.content[0].text


async def done(client, accepted):
    """The id of a job's document."""

    async def job():
        return (await call(client, "kb_jobs", job_id=accepted["job_id"]))["jobs"][0]

    ended = await eventually_async("the job has ended", job, lambda job: job["status"] in ("done", "failed"))
    assert ended["status"] == "done", ended
    return ended["document_id"]


async def noted(client, **note):
    """The answer for a note that is stored at once, as soon as its vectors exist. The note is sent until this happens."""
    for _ in range(20):
        accepted = await call(client, "kb_addnote", **note)
        await done(client, accepted)
        if "document_id" in accepted:
            return accepted
    raise TimeoutError
