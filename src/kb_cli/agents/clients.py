"""The programs that use kb through MCP, from `clients.toml`, and the configuration that connects each."""

import json
import os
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from kb_cli.runtime.files import own_settings, program
from kb_cli.stdio_bridge import LOOPBACK

NAME: Final = "kb"
KEY: Final = "KB_MCP_API_KEY"
CLINE: Final = "settings/cline_mcp_settings.json"
Headers = dict[str, str]


@dataclass(frozen=True)
class Client:
    """A client, with the fields of its table in `clients.toml`.

    Args:
        file: the configuration file; empty if the client has none.
    """

    title: str
    place: str = ""
    file: str = ""
    form: str = "json"
    json: Mapping[str, Any] = field(default_factory=dict)
    without_file: str = ""

    def configuration(self, url: str, headers: Headers) -> str:
        if self.form != "json":
            return FORMS[self.form](url, headers)
        server = {name: value for name, value in self.json.items() if name not in ("table", "address")}
        server |= {self.json["address"]: url} | with_headers(headers)
        return to_json({self.json["table"]: {NAME: server}})


def load_clients() -> dict[str, Client]:
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return {name: to_client(**table) for name, table in tables.items()}


def to_client(*, file: str = "", folder: Mapping[str, str] | None = None, **table: Any) -> Client:  # noqa: ANN401 - TOML
    if folder:
        path = f"{settings_folder(**folder)}/{file}"
    else:
        path = file.replace("$CODEX_HOME", os.environ.get("CODEX_HOME") or "~/.codex")
        path = path.replace("$CLINE_MCP_SETTINGS_PATH", os.environ.get("CLINE_MCP_SETTINGS_PATH") or cline_file())
    return Client(**{"place": file} | table, file=path)


def settings_folder(unix: str, windows: str, macos: str = "") -> str:
    if sys.platform == "win32":
        return f"{os.environ.get('APPDATA') or '~/AppData/Roaming'}/{windows}"
    if sys.platform == "darwin":
        return f"~/Library/Application Support/{macos}" if macos else f"~/.config/{unix}"
    return f"{os.environ.get('XDG_CONFIG_HOME') or '~/.config'}/{unix}"


def cline_file() -> str:
    """Return Cline's file: one for all editors since its version 4, before that a file in VS Code's folder."""
    file = f"~/.cline/data/{CLINE}"
    old = f"{settings_folder('Code', 'Code', 'Code')}/User/globalStorage/saoudrizwan.claude-dev/{CLINE}"
    return old if Path(old).expanduser().exists() and not Path(file).expanduser().exists() else file


def to_json(configuration: dict[str, Any]) -> str:
    return json.dumps(configuration, indent=2, ensure_ascii=False)


def with_headers(headers: Headers) -> dict[str, Any]:
    return {"headers": headers} if headers else {}


def claude_command(url: str, headers: Headers) -> str:
    header = [part for name, value in headers.items() for part in ("--header", f"{name}: {value}")]
    return shlex.join(["claude", "mcp", "add", "--transport", "http", "--scope", "user", NAME, url, *header])


def stdio_config(url: str, headers: Headers) -> str:
    """Return the configuration for clients that only start programs, with the settings of a server that kb starts.

    Keys are in the environment, which other users cannot read.
    """
    key = headers.get("Authorization", "").removeprefix("Bearer ")
    own = own_settings() if urlsplit(url).hostname in LOOPBACK else {}
    env = own | {"KB_MCP_URL": url} | ({KEY: key} if key else {})
    return to_json({"mcpServers": {NAME: {"command": program(), "args": ["stdio"], "env": env}}})


def codex_config(url: str, headers: Headers) -> str:
    """Return TOML; every JSON string is a TOML string. Codex reads the key from the environment."""
    key = f'\nbearer_token_env_var = "{KEY}"  # set it before you start Codex' if headers else ""
    return f"[mcp_servers.{NAME}]\nurl = {json.dumps(url)}{key}"


def vscode_config(url: str, headers: Headers) -> str:
    """Return JSON with which VS Code asks once for the key, and keeps it in its own store."""
    asked = {"type": "promptString", "id": "kb-agent-key", "description": f"kb agent key ({KEY})", "password": True}
    shown = {"Authorization": "Bearer ${input:kb-agent-key}"} if headers else {}
    server = {"type": "http", "url": url} | with_headers(shown)
    return to_json(({"inputs": [asked]} if headers else {}) | {"servers": {NAME: server}})


# Every JSON value is a YAML value.
def continue_config(url: str, headers: Headers) -> str:
    server = {"name": NAME, "type": "streamable-http", "url": url}
    options = {"requestOptions": {"headers": headers}} if headers else {}
    return f"name: {NAME}\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - {json.dumps(server | options)}"


def librechat_config(url: str, headers: Headers) -> str:
    return f"mcpServers:\n  {NAME}: {json.dumps({'type': 'streamable-http', 'url': url} | with_headers(headers))}"


def goose_config(url: str, headers: Headers) -> str:
    extension = {"name": NAME, "type": "streamable_http", "enabled": True, "uri": url, "headers": headers}
    return f"extensions:\n  {NAME}: {json.dumps(extension)}"


def plain_address(url: str, headers: Headers) -> str:
    return "\n".join([f"URL: {url}", *(f"{name}: {value}" for name, value in headers.items())])


FORMS: Final[Mapping[str, Callable[[str, Headers], str]]] = {
    "address": plain_address,
    "claude": claude_command,
    "codex": codex_config,
    "continue": continue_config,
    "goose": goose_config,
    "librechat": librechat_config,
    "stdio": stdio_config,
    "vscode": vscode_config,
}
