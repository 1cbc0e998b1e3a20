"""Operations, the steps of an undo, and duplicates in words for people."""

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


def describe_shared(total: int, shared: float | None) -> str:
    """Return the share of text that the documents of a group have in common. Only equal runs of words count as 100%."""
    if shared is None:
        return "the same content"
    least = "at least " if total > 2 and shared < 1 else ""
    return f"nearly the same text, {least}{int(100 * shared)}% in common"
