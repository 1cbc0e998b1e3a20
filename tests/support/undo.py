"""Revert all changes after a time."""

from __future__ import annotations

from kb.documents.undo import Scope, carry_out, plan
from kb.store.rows import NOBODY


def undo(store, originals, since, key=None, author=NOBODY, checkpoint=lambda: None):
    """The result."""
    return carry_out(store, originals, plan(store, Scope(since=since, key=key)), author, checkpoint)
