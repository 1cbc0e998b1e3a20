"""What connects the usual MCP clients, as `kb mcp` prints it."""

from __future__ import annotations

from reference import markdown

from kb_cli.config import ENGINE_URL, MCP_PATH
from kb_cli.mcp import CLIENTS

KEY = "YOUR-KEY"
LANGUAGES = {"{": "json", "[": "toml"}


def page() -> str:
    """One part for each client."""
    headers = {"Authorization": f"Bearer {KEY}"}
    return markdown.page(
        *(
            markdown.page(f"### {client.title}", f"Goes into: {client.place}", written(client.configuration, headers))
            if client.place != "run"
            else markdown.page(f"### {client.title}", "Run:", written(client.configuration, headers))
            for client in CLIENTS.values()
        )
    )


def written(configuration: object, headers: dict[str, str]) -> str:
    """The configuration in its language."""
    text = configuration(ENGINE_URL + MCP_PATH, headers)
    return markdown.block(LANGUAGES.get(text[0], "console"), text)
