"""kb mcp: what to tell the usual clients so that they find the MCP endpoint."""

import json as json_
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

import typer

from kb_cli.agents.client_config import merge
from kb_cli.agents.plugin import write_plugin
from kb_cli.runtime import output
from kb_cli.runtime.config import load_config
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.files import back_up, own_settings, program, replace_file
from kb_cli.runtime.options import Json
from kb_cli.stdio_bridge import LOOPBACK

NAME = "kb"


class Client(NamedTuple):
    """A client: what it is called, where its configuration goes, and what that is for a URL and headers."""

    title: str
    place: str
    configuration: Callable[[str, dict[str, str]], str]
    file: str = ""
    """Its file, if it has one."""
    without_file: str = ""
    """Why it has none."""


def complete_clients(incomplete: str) -> list[str]:
    """Return the clients whose names begin so."""
    return [name for name in CLIENTS if name.startswith(incomplete)]


def mcp(
    client: Annotated[
        str | None,
        typer.Argument(metavar="CLIENT", help="Only this client, such as cursor.", autocompletion=complete_clients),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write it into the client's own file; what is there stays, with a backup.")
    ] = False,
    plugin: Annotated[
        Path | None,
        typer.Option("--plugin", metavar="DIR", help="Make a plug-in: with a skill, and a brief at each start."),
    ] = None,
    capture: Annotated[bool, typer.Option("--capture", help="With --plugin: keep each session when it ends.")] = False,
    collections: Annotated[bool, typer.Option("--collections", help="Use the endpoint with collections.")] = False,
    json: Json = False,
) -> None:
    """Print the configuration of the usual MCP clients.

    It is ready to paste, with the address (KB_MCP_URL, or else the engine's) and the key (KB_MCP_API_KEY).
    """
    config = load_config()
    url = f"{config.mcp_url.removesuffix('/mcp')}/collections/mcp" if collections else config.mcp_url
    headers = {"Authorization": f"Bearer {config.mcp_api_key}"} if config.mcp_api_key else {}
    if client is not None and client not in CLIENTS:
        raise UsageError(f"There is no client {client!r} here; there are {', '.join(CLIENTS)}.")
    if plugin:
        server = json_.loads(stdio_config(url, headers))
        step = write_plugin(client, plugin.expanduser().absolute(), server, captures=capture)
        output.print_line(f"The plug-in is in {plugin}. Next: {step}")
        return
    if write:
        output.print_line(write_configuration(client, url, headers))
        warn_of_repository(Path(CLIENTS[client or ""].file).expanduser().resolve(), has_key=bool(headers))
        return
    chosen = {name: program for name, program in CLIENTS.items() if client in (None, name)}
    if json:
        configurations = {
            name: {"place": program.place, "text": program.configuration(url, headers)}
            for name, program in chosen.items()
        }
        output.print_json({"url": url, "headers": headers, "clients": configurations})
    elif client is not None:
        output.print_line(CLIENTS[client].configuration(url, headers))
    else:
        output.print_line(
            "\n\n".join(
                f"# {program.title}: {program.place}\n{program.configuration(url, headers)}"
                for program in CLIENTS.values()
            )
        )


def write_configuration(client: str | None, url: str, headers: dict[str, str]) -> str:
    """Merge what a client needs into its file; return what was done.

    Raises:
        UsageError: it has no file, or what is there cannot be read.
    """
    if client is None or not CLIENTS[client].file:
        able = ", ".join(name for name, program in CLIENTS.items() if program.file)
        why = CLIENTS[client].without_file if client else ""
        raise UsageError(f"{why}{' ' if why else ''}--write goes with one of these clients: {able}.")
    file = Path(CLIENTS[client].file).expanduser().resolve()
    before = file.read_bytes() if file.exists() else b""
    try:
        after = merge(file, before.decode(), CLIENTS[client].configuration(url, headers)).encode()
    except (ValueError, RecursionError, ImportError) as error:  # images lack what writes TOML
        reason = " ".join(str(error).split())
        raise UsageError(f"{file} stays as it is ({reason}): paste what 'kb mcp {client}' prints.") from None
    backup_note = f"; what was there is in {back_up(file)}" if before and after != before else ""
    if after != before:
        replace_file(file, after)
    return f"{CLIENTS[client].title} knows kb now, by {file}{backup_note}. Start it anew."


def warn_of_repository(file: Path, *, has_key: bool) -> None:
    """Say that a file with a key is where the next commit may take it along."""
    root = next((folder for folder in file.parents if (folder / ".git").exists()), None)
    if has_key and root:
        output.print_error(
            f"{file} holds your key (KB_MCP_API_KEY) and is in a Git repository, {root}: add it to .gitignore there,"
            " or the key is published with the next commit"
        )


def claude_command(url: str, headers: dict[str, str]) -> str:
    """Return the command that adds the server."""
    header = [part for name, value in headers.items() for part in ("--header", f"{name}: {value}")]
    return shlex.join(["claude", "mcp", "add", "--transport", "http", "--scope", "user", NAME, url, *header])


def stdio_config(url: str, headers: dict[str, str]) -> str:
    """For clients that only start programs, with what a server needs that kb starts for them.

    Keys go by the environment, which other users cannot read.
    """
    key = headers.get("Authorization", "").removeprefix("Bearer ")
    own = own_settings() if urlsplit(url).hostname in LOOPBACK else {}
    env = own | {"KB_MCP_URL": url} | ({"KB_MCP_API_KEY": key} if key else {})
    return to_json({"mcpServers": {NAME: {"command": program(), "args": ["stdio"], "env": env}}})


def codex_config(url: str, headers: dict[str, str]) -> str:
    """Return TOML; a JSON string is a TOML string too."""
    pairs = ", ".join(f"{name} = {json_.dumps(value)}" for name, value in headers.items())
    return f"[mcp_servers.{NAME}]\nurl = {json_.dumps(url)}" + (f"\nhttp_headers = {{ {pairs} }}" if pairs else "")


def goose_config(url: str, headers: dict[str, str]) -> str:
    """Return YAML; JSON is YAML too."""
    extension = {"name": NAME, "type": "streamable_http", "enabled": True, "uri": url, "headers": headers}
    return f"extensions:\n  {NAME}: {json_.dumps(extension)}"


def plain_address(url: str, headers: dict[str, str]) -> str:
    """For clients whose settings are a form."""
    return "\n".join([f"URL: {url}", *(f"{name}: {value}" for name, value in headers.items())])


def json_config(table: str, address: str, **more: object) -> Callable[[str, dict[str, str]], str]:
    """Make JSON with a table of servers; clients differ in what they call the table and the address."""

    def configuration(url: str, headers: dict[str, str]) -> str:
        return to_json({table: {NAME: more | {address: url} | ({"headers": headers} if headers else {})}})

    return configuration


def to_json(configuration: dict[str, Any]) -> str:
    """Return JSON for a file that people edit."""
    return json_.dumps(configuration, indent=2, ensure_ascii=False)


def own_folder(unix: str, windows: str, macos: str = "") -> str:
    """Return the folder of a client's settings on this system."""
    if sys.platform == "win32":
        return f"{os.environ.get('APPDATA') or '~/AppData/Roaming'}/{windows}"
    if sys.platform == "darwin":
        return f"~/Library/Application Support/{macos}" if macos else f"~/.config/{unix}"
    return f"{os.environ.get('XDG_CONFIG_HOME') or '~/.config'}/{unix}"


def cline_file() -> str:
    """Return Cline's file: since its version 4 one for all editors, before that one of VS Code's."""
    if named := os.environ.get("CLINE_MCP_SETTINGS_PATH"):
        return named
    name = "settings/cline_mcp_settings.json"
    file = f"~/.cline/data/{name}"
    former = f"{own_folder('Code', 'Code', 'Code')}/User/globalStorage/saoudrizwan.claude-dev/{name}"
    is_former = Path(former).expanduser().exists() and not Path(file).expanduser().exists()
    return former if is_former else file


CLIENTS = {
    "claude-code": Client(
        *("Claude Code", "run", claude_command),
        without_file="Claude Code has a command of its own: run what 'kb mcp claude-code' prints.",
    ),
    "claude-desktop": Client(
        *("Claude Desktop", "claude_desktop_config.json (Settings, Developer)"),
        stdio_config,
        f"{own_folder('Claude', 'Claude', 'Claude')}/claude_desktop_config.json",
    ),
    "cursor": Client("Cursor", "~/.cursor/mcp.json", json_config("mcpServers", "url"), "~/.cursor/mcp.json"),
    "vscode": Client("VS Code", ".vscode/mcp.json", json_config("servers", "url", type="http"), ".vscode/mcp.json"),
    "codex": Client(
        *("Codex", "~/.codex/config.toml", codex_config),
        f"{os.environ.get('CODEX_HOME') or '~/.codex'}/config.toml",
    ),
    "gemini": Client(
        "Gemini CLI", "~/.gemini/settings.json", json_config("mcpServers", "httpUrl"), "~/.gemini/settings.json"
    ),
    "windsurf": Client(
        "Windsurf",
        "~/.codeium/windsurf/mcp_config.json",
        json_config("mcpServers", "serverUrl"),
        "~/.codeium/windsurf/mcp_config.json",
    ),
    "lmstudio": Client("LM Studio", "~/.lmstudio/mcp.json", json_config("mcpServers", "url"), "~/.lmstudio/mcp.json"),
    "cline": Client(
        *("Cline", "cline_mcp_settings.json (MCP Servers, Configure)"),
        json_config("mcpServers", "url", type="streamableHttp"),
        cline_file(),
    ),
    "copilot-cli": Client(
        *("GitHub Copilot CLI", "~/.copilot/mcp-config.json"),
        json_config("mcpServers", "url", type="http", tools=["*"]),
        "~/.copilot/mcp-config.json",
    ),
    "goose": Client(
        *("Goose", "~/.config/goose/config.yaml", goose_config),
        f"{own_folder('goose', 'Block/goose/config')}/config.yaml",
    ),
    "open-webui": Client(
        *("Open WebUI", "Admin Settings, External Tools, type MCP (Streamable HTTP)", plain_address),
        without_file="Open WebUI keeps its settings in a database: enter what 'kb mcp open-webui' prints in its Admin"
        " Settings, External Tools.",
    ),
    "opencode": Client(
        *("opencode", "~/.config/opencode/opencode.json"),
        json_config("mcp", "url", type="remote", enabled=True),
        "~/.config/opencode/opencode.json",
    ),
    "zed": Client(
        *("Zed", "~/.config/zed/settings.json (zed: open settings)", json_config("context_servers", "url")),
        f"{own_folder('zed', 'Zed')}/settings.json",
    ),
    "other": Client("Any client that starts programs", "its configuration", stdio_config),
}
