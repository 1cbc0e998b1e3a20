"""What connects the usual MCP clients, as `kb mcp` prints it."""

from __future__ import annotations

from kb_cli.commands.mcp import CLIENTS, Client
from kb_cli.runtime.config import DEFAULT_ENGINE_URL, MCP_PATH
from reference import markdown

INTRO = "The configuration of each client, as `kb mcp` prints it. See [Connect agents](../agents.md)."
KEY = "YOUR-KEY"
LANGUAGES = {"{": "json", "[": "toml"}


def page() -> str:
    """One part for each client."""
    return markdown.page("# MCP clients", INTRO, *map(part, CLIENTS.values()))


def part(client: Client) -> str:
    """A client, where its configuration goes, and what that is."""
    text = client.configuration(DEFAULT_ENGINE_URL + MCP_PATH, {"Authorization": f"Bearer {KEY}"})
    place = "Run:" if client.place == "run" else f"Goes into {client.place}:"
    return markdown.page(f"## {client.title}", place, markdown.block(LANGUAGES.get(text[0], "console"), text))
