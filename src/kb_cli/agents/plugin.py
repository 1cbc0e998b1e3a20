"""Write a plug-in folder that teaches an agent to use kb: a skill, and hooks that run `kb hook`."""

import json
import shlex
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

from kb import __version__
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.files import program, replace_file

ABOUT: Final = {"name": "kb", "version": __version__, "description": "The user's own knowledge base, on this machine"}
SKILL: Final = "skills/kb/SKILL.md"
SECONDS: Final = 20
"""The timeout of a hook."""
PROMPT_SECONDS: Final = 5
MARKETPLACE: Final = {
    "name": "kb",
    "plugins": [
        {
            "name": "kb",
            "source": {"source": "local", "path": "./"},
            "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
            "category": "Productivity",
        }
    ],
}
"""Codex installs plug-ins only from a marketplace; this one lists the folder it is in."""


class ClientKind(NamedTuple):
    """An agent that supports such a folder.

    Args:
        manifest: the file that describes the folder.
        servers: the file with the MCP server, which may be the manifest.
        prompted: the agent's name of the event of a prompt.
        compacting: its name of the event before compaction.
        install: the command that installs the folder.
        unit: the length of a second in the agent's unit.
        ending_seconds: the timeout of a hook at the end of a session.
        marketplace: the file that lists the folder as a plug-in, if the agent requires one.
    """

    manifest: str
    servers: str
    prompted: str
    compacting: str
    install: str
    unit: int = 1
    ending_seconds: int = SECONDS
    marketplace: str | None = None


KINDS: Final = {
    "claude-code": ClientKind(
        ".claude-plugin/plugin.json",
        ".mcp.json",
        "UserPromptSubmit",
        "PreCompact",
        install="claude --plugin-dir {folder}",
    ),
    "gemini": ClientKind(
        "gemini-extension.json",
        "gemini-extension.json",
        "BeforeAgent",
        "PreCompress",
        install="gemini extensions link {folder}",
        unit=1000,
    ),
    "codex": ClientKind(
        ".codex-plugin/plugin.json",
        ".mcp.json",
        "UserPromptSubmit",
        "PreCompact",
        install="codex plugin marketplace add {folder} && codex plugin add kb@kb; then, in Codex, trust the hooks with"
        " /hooks",
        ending_seconds=3,
        marketplace=".agents/plugins/marketplace.json",
    ),
}


def write_plugin(client: str | None, folder: Path, server: Mapping[str, Any], *, captures: bool) -> str:
    """Write the plug-in folder of a client with the MCP servers `server`; return the command that installs it.

    With `captures`, each conversation is saved when it ends, not only before compaction.
    """
    if client not in KINDS:
        raise UsageError(f"--plugin works with these clients: {', '.join(KINDS)}.")
    if folder.exists() and any(folder.iterdir()) and not (folder / SKILL).exists():
        raise UsageError(f"{folder} is not empty and contains no kb plug-in. Choose another folder.")
    for name, content in contents(KINDS[client], server, captures=captures).items():
        replace_file(folder / name, content.encode())
    return KINDS[client].install.format(folder=shlex.quote(str(folder)))


def contents(kind: ClientKind, server: Mapping[str, Any], *, captures: bool) -> dict[str, str]:
    """Return the files of a plug-in by name."""
    tables: dict[str, dict[str, Any]] = {kind.manifest: dict(ABOUT)}
    tables[kind.servers] = tables.get(kind.servers, {}) | dict(server)
    tables["hooks/hooks.json"] = {"hooks": hooks(kind, captures=captures)}
    if kind.marketplace:
        tables[kind.marketplace] = MARKETPLACE
    texts = {name: json.dumps(table, indent=2, ensure_ascii=False) + "\n" for name, table in tables.items()}
    return texts | {SKILL: files("kb_cli.agents").joinpath("skill.md").read_text()}


def hooks(kind: ClientKind, *, captures: bool) -> dict[str, Any]:
    """Return the hooks by event."""
    seconds = {"SessionStart": SECONDS, kind.prompted: PROMPT_SECONDS, kind.compacting: SECONDS}
    seconds |= {"SessionEnd": kind.ending_seconds} if captures else {}
    command = {"type": "command", "command": shlex.join([program(), "hook"])}
    return {event: [{"hooks": [command | {"timeout": most * kind.unit}]}] for event, most in seconds.items()}
