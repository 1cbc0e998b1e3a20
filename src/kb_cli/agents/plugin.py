"""The folder that teaches an agent to use kb: a skill, and hooks that run `kb hook`."""

from __future__ import annotations

import json
import shlex
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kb import __version__
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.files import replace_file
from kb_cli.runtime.program import program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ABOUT: Final = {"name": "kb", "version": __version__, "description": "The user's own knowledge base, on this machine"}
SKILL: Final = "skills/kb/SKILL.md"
SECONDS: Final = 20
"""How long a hook may take."""


class Kind(NamedTuple):
    """An agent that takes such a folder.

    Args:
        manifest: the file that says what the folder is; none for an agent that reads nothing but the skill.
        servers: the file with the MCP server, which may be the manifest.
        starting, compacting, ending: its names of the three events.
        unit: what it counts a second as.
        install: what to do with the folder.
    """

    manifest: str | None
    servers: str | None
    starting: str = ""
    compacting: str = ""
    ending: str = ""
    unit: int = 1
    install: str = ""


KINDS: Final = {
    "claude-code": Kind(
        ".claude-plugin/plugin.json",
        ".mcp.json",
        *("SessionStart", "PreCompact", "SessionEnd"),
        install="claude --plugin-dir {folder}",
    ),
    "gemini": Kind(
        "gemini-extension.json",
        "gemini-extension.json",
        *("SessionStart", "PreCompress", "SessionEnd"),
        unit=1000,
        install="gemini extensions link {folder}",
    ),
    "codex": Kind(None, None, install="mkdir -p ~/.codex/skills && cp -r {folder}/skills/kb ~/.codex/skills/"),
}


def write_plugin(client: str | None, folder: Path, server: Mapping[str, Any], *, captures: bool) -> str:
    """Write the folder of a client whose MCP servers are `server`; return what to do with it.

    With `captures` each conversation is kept when it ends, not only before it is compacted.

    Raises:
        UsageError: the client takes no such folder, or the folder is another one.
    """
    if client not in KINDS:
        raise UsageError(f"--plugin goes with one of these clients: {', '.join(KINDS)}.")
    if folder.exists() and any(folder.iterdir()) and not (folder / SKILL).exists():
        raise UsageError(f"{folder} is there and is no plug-in of kb: name another folder.")
    for name, content in contents(KINDS[client], server, captures=captures).items():
        replace_file(folder / name, content.encode())
    return KINDS[client].install.format(folder=shlex.quote(str(folder)))


def contents(kind: Kind, server: Mapping[str, Any], *, captures: bool) -> dict[str, str]:
    """Return the files of a folder by their names."""
    tables: dict[str, dict[str, Any]] = {}
    if kind.manifest and kind.servers:
        tables = {kind.manifest: dict(ABOUT)}
        tables[kind.servers] = tables.get(kind.servers, {}) | dict(server)
        tables["hooks/hooks.json"] = {"hooks": hooks(kind, captures=captures)}
    texts = {name: json.dumps(table, indent=2, ensure_ascii=False) + "\n" for name, table in tables.items()}
    return texts | {SKILL: files("kb_cli.agents").joinpath("skill.md").read_text()}


def hooks(kind: Kind, *, captures: bool) -> dict[str, Any]:
    """Return the hooks of a folder by event."""
    command = {"type": "command", "command": shlex.join([program(), "hook"]), "timeout": SECONDS * kind.unit}
    events = [kind.starting, kind.compacting, *([kind.ending] if captures else [])]
    return {event: [{"hooks": [command]}] for event in events}
