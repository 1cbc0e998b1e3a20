"""What an operation changed and what becomes of its documents, in the words that people read."""

from __future__ import annotations

from typing import Any, Final

ACTIONS: Final = {
    "delete": "goes to the bin",
    "restore": "comes back from the bin",
    "revert": "becomes version {version} again",
    "retag": "gets the tags of version {version}",
}


def describe_step(step: dict[str, Any]) -> str:
    """Return what becomes of a document, or why it stays as it is."""
    return str(step["skipped"] or ACTIONS[step["action"]].format_map(step))


def count_changes(operation: dict[str, Any], nothing: str = "nothing changed") -> str:
    """Return how many documents were added, changed and deleted, and how many jobs are not done yet."""
    parts = [f"{operation[name]} {name}" for name in ("added", "changed", "deleted") if operation[name]]
    parts += [f"{operation['jobs']} on the way in"] if operation["jobs"] else []
    return ", ".join(parts) or nothing
