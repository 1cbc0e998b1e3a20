"""Shell completions. They never fail and never wait long: in doubt they offer nothing."""

from collections.abc import Callable
from typing import Final

import typer

from kb.api.errors import KbError
from kb.api.file_types import KINDS, OWN_TYPES

TIMEOUT: Final = 1.0


def complete_tags(incomplete: str) -> list[str]:
    """Return comma-separated lists of tags with the last one completed."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{tag}" for tag in fetch_tags() if tag.startswith(last)]


def fetch_tags() -> list[str]:
    from kb_cli.runtime.engine_call import call

    try:
        return [row["tag"] for row in call(lambda client: client.tags(), timeout=TIMEOUT)["tags"]]
    except KbError:
        return []


def complete_types(incomplete: str) -> list[str]:
    """Return the document types and kinds with this prefix, also from other packages that the engine uses."""
    from kb_cli.runtime.engine_call import call

    try:
        types = call(lambda client: client.status(), timeout=TIMEOUT).get("doc_types", OWN_TYPES)
    except KbError:
        types = OWN_TYPES
    return [name for name in (*types, *KINDS) if name.startswith(incomplete)]


def complete_actions(*actions: str) -> Callable[[typer.Context, str], list[str]]:
    """Return a completion for the actions of a command, which only completes the first word."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        return [] if context.params.get("words") else [action for action in actions if action.startswith(incomplete)]

    return complete


def complete_profiles(incomplete: str) -> list[str]:
    from kb_cli.runtime.config import load_config

    try:
        return [name for name in load_config().profiles if name.startswith(incomplete)]
    except KbError:
        return []
