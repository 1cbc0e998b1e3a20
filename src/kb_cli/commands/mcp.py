"""kb mcp: print or write the configuration with which MCP clients find kb."""

import json as json_
from pathlib import Path
from typing import Annotated

from kb_cli.agents.clients import Client, load_clients, stdio_config
from kb_cli.agents.config_files import merge
from kb_cli.agents.plugin import write_plugin
from kb_cli.runtime import output
from kb_cli.runtime.config import key_headers, load_config
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.files import back_up, replace_file
from kb_cli.runtime.options import Json, argument, option


def complete_clients(incomplete: str) -> list[str]:
    return [name for name in load_clients() if name.startswith(incomplete)]


def mcp(
    client: Annotated[
        str | None,
        argument("CLIENT", "The client, such as cursor; by default, kb prints all of them.", complete=complete_clients),
    ] = None,
    write: Annotated[
        bool, option("--write", "Add kb to the client's own configuration file, after making a backup of it.")
    ] = False,
    plugin: Annotated[
        Path | None,
        option("--plugin DIR", "Write a plug-in to this folder: a skill, and a brief each time the client starts."),
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
    clients = load_clients()
    if client is not None and client not in clients:
        raise UsageError(f"{client!r} is not a known client. The clients are {', '.join(clients)}.")
    if plugin:
        server = json_.loads(stdio_config(url, headers))
        step = write_plugin(client, plugin.expanduser().absolute(), server, captures=capture)
        output.print_line(f"The plug-in is in {plugin}. To install it, run: {step}")
    elif write:
        if client is None or not clients[client].file:
            able = ", ".join(name for name, each in clients.items() if each.file)
            why = f"{clients[client].without_file} " if client else ""
            raise UsageError(f"{why.lstrip()}--write works with these clients: {able}.")
        write_configuration(client, clients[client], url, headers)
    elif json:
        chosen = {name: each for name, each in clients.items() if client in (None, name)}
        texts = {name: {"place": each.place, "text": each.configuration(url, headers)} for name, each in chosen.items()}
        output.print_json({"url": url, "headers": headers, "clients": texts})
    elif client:
        output.print_line(clients[client].configuration(url, headers))
    else:
        parts = [f"# {each.title}: {each.place}\n{each.configuration(url, headers)}" for each in clients.values()]
        output.print_line("\n\n".join([*parts, "# To print one: kb mcp cursor. To write it: kb mcp cursor --write"]))


def write_configuration(name: str, client: Client, url: str, headers: dict[str, str]) -> None:
    """Merge the configuration into a client's file."""
    file = Path(client.file).expanduser().resolve()
    before = file.read_bytes() if file.exists() else b""
    try:
        after = merge(file, before.decode(), client.configuration(url, headers)).encode()
    except (ValueError, RecursionError, ImportError) as error:  # images lack the library that writes TOML
        reason = " ".join(str(error).split())
        raise UsageError(f"{file} is unchanged ({reason}). Paste the output of 'kb mcp {name}' into it.") from None
    backup_note = f" The previous file is in {back_up(file)}." if before and after != before else ""
    if after != before:
        replace_file(file, after)
    output.print_line(f"kb is now set up in {file}.{backup_note} Restart {client.title}.")
    warn_of_repository(file, has_key=bool(headers))


def warn_of_repository(file: Path, *, has_key: bool) -> None:
    """Warn if a file with a key is in a Git repository, because a commit may include it."""
    root = next((folder for folder in file.parents if (folder / ".git").exists()), None)
    if has_key and root:
        output.print_error(
            f"{file} contains your agent key (KB_MCP_API_KEY) and is in the Git repository {root}. Add the file to"
            " .gitignore so that you do not commit the key."
        )
