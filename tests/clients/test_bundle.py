"""What `make bundle` makes, as a host that installs bundles takes it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from zipfile import ZipFile

import mcp.client
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client

from kb.running_engine import find_running
from tests.conftest import ROOT, free_port, without_settings
from tests.mcp.test_session import TOOLS


@pytest.fixture
def bundle(tmp_path):
    subprocess.run(
        [sys.executable, "packaging/bundle.py", tmp_path, "https://example.org/kb.mcpb"], cwd=ROOT, check=True
    )
    with ZipFile(tmp_path / "kb.mcpb") as archive:
        archive.extractall(tmp_path / "installed")
    return tmp_path


def test_the_makers_of_the_format_find_nothing_wrong_with_it(node, bundle):
    checked = node.run("mcpb", "validate", str(bundle / "installed" / "manifest.json"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    [package] = json.loads((bundle / "server.json").read_text())["packages"]
    assert (package["registryType"], package["identifier"]) == ("mcpb", "https://example.org/kb.mcpb")


@pytest.mark.timeout(900)
async def test_a_host_installs_and_starts_it_and_sees_the_tools(bundle):
    config = json.loads((bundle / "installed" / "manifest.json").read_text())["server"]["mcp_config"]
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    own = {"KB_DATA_DIR": str(bundle / "data"), "KB_PORT": str(port), "KB_MCP_URL": url, "UV_LINK_MODE": "hardlink"}
    program = StdioServerParameters(
        command=str(ROOT / ".venv" / "bin" / config["command"]),
        args=[argument.replace("${__dirname}", str(bundle / "installed")) for argument in config["args"]],
        env=without_settings() | own,
    )
    try:
        with (bundle / "log").open("w") as errors:
            async with mcp.client.Client(stdio_client(program, errlog=errors)) as client:
                assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
    finally:
        if running := find_running(bundle / "data"):
            os.kill(running.pid, signal.SIGTERM)
