"""Duplicates in words for people."""

from __future__ import annotations


def describe_shared(total: int, shared: float | None) -> str:
    """Return the share of text that the documents of a group have in common. Only equal runs of words count as 100%."""
    if shared is None:
        return "the same content"
    least = "at least " if total > 2 and shared < 1 else ""
    return f"nearly the same text, {least}{int(100 * shared)}% in common"
