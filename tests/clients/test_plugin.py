"""The plug-in of `kb mcp claude-code --plugin` in Claude Code itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.clients.model import scripted_model
from tests.conftest import KEY, MCP_KEY, without_settings


@pytest.fixture
def plugin(tmp_path, server):
    """The folder, of a user whose settings name this server."""
    settings = {"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY, "KB_MCP_API_KEY": MCP_KEY}
    command = [sys.executable, "-m", "kb_cli.main", "mcp", "claude-code", "--plugin", str(tmp_path / "plugin")]
    subprocess.run(command, check=True, env=without_settings() | settings)
    return tmp_path / "plugin", settings


def test_the_program_itself_finds_nothing_wrong_with_it(node, plugin):
    folder, _ = plugin
    checked = node.run("claude", "plugin", "validate", str(folder))
    assert (checked.returncode, "Validation passed" in checked.stdout) == (0, True), checked.stdout


def test_a_session_begins_with_the_brief_and_has_the_tools(node, plugin):
    folder, settings = plugin
    heard = []
    with scripted_model("none", {}, heard) as model:
        ended = node.run(
            *("claude", "--print", "Where is the walrus?", "--plugin-dir", str(folder)),
            *("--output-format", "stream-json", "--verbose"),
            **settings | {"ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "none"},
            PYTHONPATH=os.environ.get("PYTHONPATH", ""),
        )
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    [start] = [event for event in events if event.get("subtype") == "init"]
    assert {server["name"]: server["status"] for server in start["mcp_servers"]} == {"plugin:kb:kb": "connected"}
    assert "kb:kb" in start["skills"]
    assert any("The user's knowledge base, kb, has" in json.dumps(asked["messages"]) for asked in heard)
