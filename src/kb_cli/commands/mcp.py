"""kb mcp: what to tell the usual clients so that they find the MCP endpoint."""

import json as json_
import shlex
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

import typer

from kb_cli.runtime import exit_codes as exits
from kb_cli.runtime import output
from kb_cli.runtime.config import read
from kb_cli.runtime.options import Json

NAME = "kb"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Client(NamedTuple):
    """A client: what it is called, where its configuration goes, and what that is for a URL and headers."""

    title: str
    place: str
    configuration: Callable[[str, dict[str, str]], str]


def clients(incomplete: str) -> list[str]:
    """The clients' names, for the shell."""
    return [name for name in CLIENTS if name.startswith(incomplete)]


def mcp(
    client: Annotated[
        str | None,
        typer.Argument(metavar="CLIENT", help="Only this client, such as cursor.", autocompletion=clients),
    ] = None,
    collections: Annotated[bool, typer.Option("--collections", help="The endpoint with collections.")] = False,
    json: Json = False,
) -> None:
    """Print what connects the usual MCP clients, ready to paste.

    It holds the address (KB_MCP_URL, or else the engine's) and the key (KB_MCP_API_KEY).
    """
    settings = read()
    url = f"{settings.mcp_url.removesuffix('/mcp')}/collections/mcp" if collections else settings.mcp_url
    headers = {"Authorization": f"Bearer {settings.mcp_api_key}"} if settings.mcp_api_key else {}
    if client is not None and client not in CLIENTS:
        raise exits.UsageError(f"There is no client {client!r} here; there are {', '.join(CLIENTS)}.")
    chosen = {name: each for name, each in CLIENTS.items() if client in (None, name)}
    if json:
        written = {
            name: {"place": each.place, "text": each.configuration(url, headers)} for name, each in chosen.items()
        }
        output.print_json({"url": url, "headers": headers, "clients": written})
    elif client is not None:
        output.say(CLIENTS[client].configuration(url, headers))
    else:
        output.say(
            "\n\n".join(
                f"# {each.title}: {each.place}\n{each.configuration(url, headers)}" for each in CLIENTS.values()
            )
        )


def claude_code(url: str, headers: dict[str, str]) -> str:
    """A command."""
    header = [part for name, value in headers.items() for part in ("--header", f"{name}: {value}")]
    return shlex.join(["claude", "mcp", "add", "--transport", "http", "--scope", "user", NAME, url, *header])


def through_mcp_remote(url: str, headers: dict[str, str]) -> str:
    """For clients that only start programs. The key goes by the environment: arguments lose their spaces on Windows."""
    parts = urlsplit(url)
    plain = ["--allow-http"] if parts.scheme == "http" and parts.hostname not in LOOPBACK else []
    header = ["--header", "Authorization:${KB_AUTHORIZATION}"] if headers else []
    server = {"command": "npx", "args": ["-y", "mcp-remote", url, *plain, *header]}
    env = {"env": {"KB_AUTHORIZATION": headers["Authorization"]}} if headers else {}
    return indented({"mcpServers": {NAME: server | env}})


def codex(url: str, headers: dict[str, str]) -> str:
    """TOML; a JSON string is a TOML string too."""
    pairs = ", ".join(f"{name} = {json_.dumps(value)}" for name, value in headers.items())
    return f"[mcp_servers.{NAME}]\nurl = {json_.dumps(url)}" + (f"\nhttp_headers = {{ {pairs} }}" if pairs else "")


def in_json(table: str, address: str, **more: object) -> Callable[[str, dict[str, str]], str]:
    """JSON with a table of servers; clients differ in what they call the table and the address."""

    def configuration(url: str, headers: dict[str, str]) -> str:
        return indented({table: {NAME: more | {address: url} | ({"headers": headers} if headers else {})}})

    return configuration


def indented(configuration: dict[str, Any]) -> str:
    """JSON for a file that people edit."""
    return json_.dumps(configuration, indent=2)


CLIENTS = {
    "claude-code": Client("Claude Code", "run", claude_code),
    "claude-desktop": Client("Claude Desktop", "claude_desktop_config.json (Settings, Developer)", through_mcp_remote),
    "cursor": Client("Cursor", "~/.cursor/mcp.json", in_json("mcpServers", "url")),
    "vscode": Client("VS Code", ".vscode/mcp.json", in_json("servers", "url", type="http")),
    "codex": Client("Codex", "~/.codex/config.toml", codex),
    "gemini": Client("Gemini CLI", "~/.gemini/settings.json", in_json("mcpServers", "httpUrl")),
    "windsurf": Client("Windsurf", "~/.codeium/windsurf/mcp_config.json", in_json("mcpServers", "serverUrl")),
    "opencode": Client("opencode", "opencode.json", in_json("mcp", "url", type="remote", enabled=True)),
    "zed": Client("Zed", "settings.json", in_json("context_servers", "url")),
    "other": Client("Any client that starts programs", "its configuration", through_mcp_remote),
}
