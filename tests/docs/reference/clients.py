"""The configuration of MCP clients, as `kb mcp` prints it."""

from __future__ import annotations

from kb_cli.agents.clients import Client, load_clients
from kb_cli.runtime.config import DEFAULT_ENGINE_URL, MCP_PATH
from kb_cli.runtime.files import program
from tests.docs.reference import markdown

INTRO = (
    "The configuration of each client. `kb mcp NAME` prints it with your own key and addresses;"
    " [Connect agents](../agents.md) explains the steps."
)
KEY = "YOUR-KEY"
PROGRAM = "/home/you/.local/bin/kb"
LANGUAGES = {"{": "json", "[": "toml"}


def page() -> str:
    """Return a section for each client."""
    return markdown.page("# MCP clients", INTRO, *map(part, load_clients().values()))


def part(client: Client) -> str:
    """Return the section of a client: the place of its configuration, and the configuration."""
    text = client.configuration(DEFAULT_ENGINE_URL + MCP_PATH, {"Authorization": f"Bearer {KEY}"}).replace(
        program(), PROGRAM
    )
    place = "Run:" if client.place == "run" else f"Add to {client.place}:"
    return markdown.page(f"## {client.title}", place, markdown.block(LANGUAGES.get(text[0], "console"), text))
