"""Operations and the steps of an undo in words for people."""

from __future__ import annotations

from typing import Any, Final

ACTIONS: Final = {
    "delete": "goes to the bin",
    "restore": "is restored from the bin",
    "revert": "becomes version {version} again",
    "retag": "gets the tags of version {version}",
}


def describe_step(step: dict[str, Any]) -> str:
    """Return the effect of an undo on a document, or the reason if it stays unchanged."""
    return str(step["skipped"] or ACTIONS[step["action"]].format_map(step))


def count_changes(operation: dict[str, Any], nothing: str = "nothing changed") -> str:
    """Return the numbers of documents added, restored, changed and deleted, and of jobs not done yet."""
    restored = operation.get("restored", 0)
    numbers = {**operation, "added": operation["added"] - restored, "restored": restored}
    parts = [f"{numbers[name]} {name}" for name in ("added", "restored", "changed", "deleted") if numbers[name]]
    parts += [f"{operation['jobs']} still queued or running"] if operation["jobs"] else []
    return ", ".join(parts) or nothing
