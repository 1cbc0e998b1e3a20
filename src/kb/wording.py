"""Optional fields, operations, the steps of an undo, and duplicates in words for people."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kb.api.document_day import has_ended

OPTIONAL_FIELDS: Final = {"source": "from", "valid_until": "valid until"}
"""The words that every client puts before the value of an optional field of a note."""

NEARLY: Final = 0.8
"""The least share in common of texts that kb calls nearly the same."""

ACTIONS: Final = {
    "delete": "goes to the bin",
    "restore": "is restored from the bin",
    "revert": "becomes version {version} again",
    "retag": "gets the tags of version {version}",
}


def optional_facts(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the optional fields that a document has, each by the words before its value."""
    words_of = OPTIONAL_FIELDS
    if has_ended(document.get("valid_until"), datetime.now(UTC).date().isoformat()):
        words_of = words_of | {"valid_until": "ended"}
    return {words: document[name] for name, words in words_of.items() if document.get(name)}


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
    words = "nearly the same text" if shared >= NEARLY else "similar texts"
    return f"{words}, {least}{int(100 * shared)}% in common"
