"""kb mcp: print or write the configuration with which MCP clients find kb."""

import json as json_
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

from kb_cli.agents.client_config import merge
from kb_cli.agents.plugin import write_plugin
from kb_cli.runtime import output
from kb_cli.runtime.config import key_headers, load_config
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.files import back_up, own_settings, program, replace_file
from kb_cli.runtime.options import Json, argument, option
from kb_cli.stdio_bridge import LOOPBACK

NAME = "kb"
KEY = "KB_MCP_API_KEY"


class Client(NamedTuple):
    """A client: its name, the place of its configuration, and the configuration for a URL and headers."""

    title: str
    place: str
    configuration: Callable[[str, dict[str, str]], str]
    file: str = ""
    """The configuration file, if the client has one."""
    without_file: str = ""
    """The reason and the remedy if it has no file."""


def complete_clients(incomplete: str) -> list[str]:
    """Return the clients whose names start with this text."""
    return [name for name in CLIENTS if name.startswith(incomplete)]


def mcp(
    client: Annotated[
        str | None,
        argument("CLIENT", "The client, such as cursor; without it, kb prints all.", complete=complete_clients),
    ] = None,
    write: Annotated[
        bool,
        option("--write", "Add kb to the client's own file. kb keeps its other settings and makes a backup."),
    ] = False,
    plugin: Annotated[
        Path | None,
        option("--plugin DIR", "Write a plug-in to this folder: a skill, and a brief at each start of the client."),
    ] = None,
    capture: Annotated[bool, option("--capture", "With --plugin: save each session as a note when it ends.")] = False,
    collections: Annotated[bool, option("--collections", "Use the MCP endpoint with collections.")] = False,
    json: Json = False,
) -> None:
    """Print the configuration that connects an MCP client to kb.

    You can paste it as printed. It contains the address (KB_MCP_URL or, if that is not set, the engine's address with
    /mcp) and the agent key (KB_MCP_API_KEY).
    """
    config = load_config()
    url = f"{config.mcp_url.removesuffix('/mcp')}/collections/mcp" if collections else config.mcp_url
    headers = key_headers(config.mcp_api_key)
    if client is not None and client not in CLIENTS:
        raise UsageError(f"{client!r} is not a known client. The clients are {', '.join(CLIENTS)}.")
    if plugin:
        server = json_.loads(stdio_config(url, headers))
        step = write_plugin(client, plugin.expanduser().absolute(), server, captures=capture)
        output.print_line(f"The plug-in is in {plugin}. To install it, run: {step}")
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
    """Merge the configuration into a client's file; return a message.

    Raises:
        UsageError: the client has no file, or kb cannot read the file.
    """
    if client is None or not CLIENTS[client].file:
        able = ", ".join(name for name, program in CLIENTS.items() if program.file)
        why = CLIENTS[client].without_file if client else ""
        raise UsageError(f"{why}{' ' if why else ''}--write works with these clients: {able}.")
    file = Path(CLIENTS[client].file).expanduser().resolve()
    before = file.read_bytes() if file.exists() else b""
    try:
        after = merge(file, before.decode(), CLIENTS[client].configuration(url, headers)).encode()
    except (ValueError, RecursionError, ImportError) as error:  # images lack the library that writes TOML
        reason = " ".join(str(error).split())
        raise UsageError(f"{file} is unchanged ({reason}). Paste the output of 'kb mcp {client}' into it.") from None
    backup_note = f" The previous file is in {back_up(file)}." if before and after != before else ""
    if after != before:
        replace_file(file, after)
    return f"{CLIENTS[client].title} now knows kb, through {file}.{backup_note} Restart {CLIENTS[client].title}."


def warn_of_repository(file: Path, *, has_key: bool) -> None:
    """Warn if a file with a key is in a Git repository, because a commit may include it."""
    root = next((folder for folder in file.parents if (folder / ".git").exists()), None)
    if has_key and root:
        output.print_error(
            f"{file} contains your agent key (KB_MCP_API_KEY) and is in the Git repository {root}. Add the file to"
            " .gitignore, so that no commit publishes the key."
        )


def claude_command(url: str, headers: dict[str, str]) -> str:
    """Return the command that adds kb to Claude Code."""
    header = [part for name, value in headers.items() for part in ("--header", f"{name}: {value}")]
    return shlex.join(["claude", "mcp", "add", "--transport", "http", "--scope", "user", NAME, url, *header])


def stdio_config(url: str, headers: dict[str, str]) -> str:
    """Return the configuration for clients that only start programs, with the settings of a server that kb starts.

    Keys are in the environment, which other users cannot read.
    """
    key = headers.get("Authorization", "").removeprefix("Bearer ")
    own = own_settings() if urlsplit(url).hostname in LOOPBACK else {}
    env = own | {"KB_MCP_URL": url} | ({"KB_MCP_API_KEY": key} if key else {})
    return to_json({"mcpServers": {NAME: {"command": program(), "args": ["stdio"], "env": env}}})


def codex_config(url: str, headers: dict[str, str]) -> str:
    """Return TOML; every JSON string is a TOML string. Codex reads the key from the environment."""
    key = f'\nbearer_token_env_var = "{KEY}"  # set it before you start Codex' if headers else ""
    return f"[mcp_servers.{NAME}]\nurl = {json_.dumps(url)}{key}"


def vscode_config(url: str, headers: dict[str, str]) -> str:
    """Return JSON with which VS Code asks once for the key, and keeps it in its own store."""
    server = {"type": "http", "url": url} | (
        {"headers": {"Authorization": "Bearer ${input:kb-agent-key}"}} if headers else {}
    )
    asked = {"type": "promptString", "id": "kb-agent-key", "description": f"Agent key of kb ({KEY})", "password": True}
    return to_json(({"inputs": [asked]} if headers else {}) | {"servers": {NAME: server}})


def continue_config(url: str, headers: dict[str, str]) -> str:
    """Return YAML for a file of its own; every JSON value is a YAML value."""
    server: dict[str, Any] = {"name": NAME, "type": "streamable-http", "url": url}
    server |= {"requestOptions": {"headers": headers}} if headers else {}
    return f"name: {NAME}\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - {json_.dumps(server)}"


def librechat_config(url: str, headers: dict[str, str]) -> str:
    """Return YAML; every JSON value is a YAML value."""
    server = {"type": "streamable-http", "url": url} | ({"headers": headers} if headers else {})
    return f"mcpServers:\n  {NAME}: {json_.dumps(server)}"


def goose_config(url: str, headers: dict[str, str]) -> str:
    """Return YAML; every JSON value is a YAML value."""
    extension = {"name": NAME, "type": "streamable_http", "enabled": True, "uri": url, "headers": headers}
    return f"extensions:\n  {NAME}: {json_.dumps(extension)}"


def plain_address(url: str, headers: dict[str, str]) -> str:
    """Return the address and headers, for clients with a form."""
    return "\n".join([f"URL: {url}", *(f"{name}: {value}" for name, value in headers.items())])


def json_config(table: str, address: str, **more: object) -> Callable[[str, dict[str, str]], str]:
    """Return a function that makes JSON; clients use different names for the table of servers and the address."""

    def configuration(url: str, headers: dict[str, str]) -> str:
        return to_json({table: {NAME: more | {address: url} | ({"headers": headers} if headers else {})}})

    return configuration


def to_json(configuration: dict[str, Any]) -> str:
    """Return indented JSON, for a file that people edit."""
    return json_.dumps(configuration, indent=2, ensure_ascii=False)


def own_folder(unix: str, windows: str, macos: str = "") -> str:
    """Return the settings folder of a client on this system."""
    if sys.platform == "win32":
        return f"{os.environ.get('APPDATA') or '~/AppData/Roaming'}/{windows}"
    if sys.platform == "darwin":
        return f"~/Library/Application Support/{macos}" if macos else f"~/.config/{unix}"
    return f"{os.environ.get('XDG_CONFIG_HOME') or '~/.config'}/{unix}"


def cline_file() -> str:
    """Return Cline's file: one for all editors since its version 4, before that a file in VS Code's folder."""
    if named := os.environ.get("CLINE_MCP_SETTINGS_PATH"):
        return named
    name = "settings/cline_mcp_settings.json"
    file = f"~/.cline/data/{name}"
    old_file = f"{own_folder('Code', 'Code', 'Code')}/User/globalStorage/saoudrizwan.claude-dev/{name}"
    is_old = Path(old_file).expanduser().exists() and not Path(file).expanduser().exists()
    return old_file if is_old else file


CLIENTS = {
    "claude-code": Client(
        *("Claude Code", "run", claude_command),
        without_file="Claude Code uses a command instead: run the output of 'kb mcp claude-code'.",
    ),
    "claude-desktop": Client(
        *("Claude Desktop", "claude_desktop_config.json (Settings, Developer)"),
        stdio_config,
        f"{own_folder('Claude', 'Claude', 'Claude')}/claude_desktop_config.json",
    ),
    "cursor": Client("Cursor", "~/.cursor/mcp.json", json_config("mcpServers", "url"), "~/.cursor/mcp.json"),
    "vscode": Client("VS Code", ".vscode/mcp.json", vscode_config, ".vscode/mcp.json"),
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
        without_file="Open WebUI keeps its settings in a database: enter the output of 'kb mcp open-webui' in its Admin"
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
    "continue": Client("Continue", ".continue/mcpServers/kb.yaml", continue_config, ".continue/mcpServers/kb.yaml"),
    "roo": Client(
        *("Roo Code", ".roo/mcp.json"), json_config("mcpServers", "url", type="streamable-http"), ".roo/mcp.json"
    ),
    "kilo": Client(
        *("Kilo Code", "~/.config/kilo/kilo.json"),
        json_config("mcp", "url", type="remote", enabled=True),
        "~/.config/kilo/kilo.json",
    ),
    "kiro": Client("Kiro", "~/.kiro/settings/mcp.json", json_config("mcpServers", "url"), "~/.kiro/settings/mcp.json"),
    "junie": Client("Junie (JetBrains)", "~/.junie/mcp/mcp.json", stdio_config, "~/.junie/mcp/mcp.json"),
    "jetbrains": Client(
        *("JetBrains AI Assistant", "Settings, Tools, AI Assistant, Model Context Protocol, As JSON", stdio_config),
        without_file="JetBrains AI Assistant keeps its settings itself: paste the output of 'kb mcp jetbrains' under"
        " Settings, Tools, AI Assistant, Model Context Protocol.",
    ),
    "amp": Client(
        *("Amp", "~/.config/amp/settings.json"),
        json_config("amp.mcpServers", "url"),
        "~/.config/amp/settings.json",
    ),
    "qwen": Client("Qwen Code", "~/.qwen/settings.json", json_config("mcpServers", "httpUrl"), "~/.qwen/settings.json"),
    "crush": Client(
        *("Crush", "~/.config/crush/crush.json"),
        json_config("mcp", "url", type="http"),
        "~/.config/crush/crush.json",
    ),
    "librechat": Client("LibreChat", "librechat.yaml", librechat_config, "librechat.yaml"),
    "anythingllm": Client(
        *("AnythingLLM", "plugins/anythingllm_mcp_servers.json in its storage folder"),
        json_config("mcpServers", "url", type="streamable"),
        without_file="The storage folder of AnythingLLM depends on its installation: paste the output of"
        " 'kb mcp anythingllm' into plugins/anythingllm_mcp_servers.json there.",
    ),
    "jan": Client(
        *("Jan", "Settings, MCP Servers, transport HTTP", plain_address),
        without_file="Jan keeps its settings itself: enter the output of 'kb mcp jan' under Settings, MCP Servers.",
    ),
    "other": Client("Any client that starts programs", "its configuration", stdio_config),
}
