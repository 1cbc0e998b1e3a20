"""The number of examples for a property."""

from __future__ import annotations

import os

IS_FULL = bool(os.environ.get("KB_TEST_FULL"))


def examples(count, fast=None):
    """Return the full number of examples, or fewer in the fast suite: a fifth of it, if no number is given."""
    return count if IS_FULL else fast or max(1, count // 5)
